//! Grants: how a login's process shows whose it is.
//!
//! sshd asks for a person's keys, and the broker answers with a line that starts a session with a grant.
//! The grant is for one person, one key or certificate, and one connection of sshd. It ends with that
//! connection. All sessions of the connection show the same grant, for ssh may open several. Nothing that a
//! client sends can name another person, and no process of another connection can show the grant.

use std::collections::HashMap;
use std::time::Duration;

use crate::accounts::{Credential, Key};
use crate::processes::Process;

/// How long the first session may take to begin. sshd asks for keys before the client has signed, and
/// gives a login a minute (`LoginGraceTime`); the client opens its session after that.
const LIFE: Duration = Duration::from_secs(90);
/// The most grants. sshd's own limit of connections is far lower.
const MOST: usize = 4_096;

/// The secret of a grant: 32 random bytes in hexadecimal digits.
pub type Secret = String;

/// For whom a grant is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The name of the person.
    pub user: String,
    /// By what the person logs in.
    pub by: Credential,
    /// The process of sshd's connection.
    pub connection: Process,
}

/// The grants of connections. Times are durations since the broker's start, so no clock that jumps
/// prolongs a grant.
#[derive(Debug, Default)]
pub struct Grants(HashMap<Secret, (Grant, State)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No session has shown it. It ends at this time.
    Waiting(Duration),
    /// A session has shown it.
    Shown,
}

impl Grants {
    /// Keeps a grant, unless its connection has a session already, or there are too many.
    pub fn issue(
        &mut self,
        secret: Secret,
        grant: Grant,
        now: Duration,
        is_alive: impl Fn(Process) -> bool,
    ) -> bool {
        self.0.retain(|_, (grant, state)| {
            let is_over = matches!(state, State::Waiting(until) if *until <= now);
            !is_over && is_alive(grant.connection)
        });
        let mut shown = self.0.values().filter(|(_, state)| *state == State::Shown);
        let has_session = shown.any(|(other, _)| other.connection == grant.connection);
        if has_session || self.0.len() >= MOST {
            return false;
        }
        self.0.insert(secret, (grant, State::Waiting(now + LIFE)));
        true
    }

    /// The grant that a process shows. `chain` has the process and its ancestors.
    pub fn show(&mut self, secret: &str, chain: &[Process], now: Duration) -> Option<Grant> {
        let (grant, state) = self.0.get_mut(secret)?;
        let is_over = matches!(state, State::Waiting(until) if *until <= now);
        // The process itself is a session, and never the connection.
        let ancestors = chain.get(1..)?;
        if is_over || !ancestors.contains(&grant.connection) {
            return None;
        }
        *state = State::Shown;
        Some(grant.clone())
    }
}

/// The line of `authorized_keys` that lets a key in (`sshd(8)`, "`AUTHORIZED_KEYS` FILE FORMAT").
pub fn line(secret: &str, key: &Key) -> String {
    format!("{} {key}\n", options(secret))
}

/// The line that lets a certificate in whose principal is the person (`sshd_config(5)`,
/// `AuthorizedPrincipalsCommand`).
pub fn principal(secret: &str, user: &str) -> String {
    format!("{} {user}\n", options(secret))
}

fn options(secret: &str) -> String {
    format!("restrict,pty,command=\"gpu-bastion session --grant {secret}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    fn process(id: i32) -> Process {
        Process { id, started: 7 }
    }

    fn grant(user: &str, connection: i32) -> Grant {
        Grant {
            user: user.into(),
            by: Credential::Key(Key::new("ssh-ed25519", "AAA").unwrap()),
            connection: process(connection),
        }
    }

    fn issued(grants: &mut Grants, secret: &str, grant: Grant, now: u64) -> bool {
        grants.issue(secret.into(), grant, at(now), |_| true)
    }

    /// A session of a connection.
    fn session(connection: i32) -> [Process; 3] {
        [connection + 2, connection + 1, connection].map(process)
    }

    #[test]
    fn all_sessions_of_a_connection_are_of_the_person_who_logged_in() {
        let mut grants = Grants::default();
        assert!(issued(&mut grants, "1", grant("alice", 20), 0));
        assert!(issued(&mut grants, "2", grant("bob", 40), 0));
        for second in [1, 1, 5_000] {
            assert_eq!(
                grants.show("1", &session(20), at(second)),
                Some(grant("alice", 20))
            );
        }
        assert_eq!(
            grants.show("2", &session(40), at(1)),
            Some(grant("bob", 40))
        );
    }

    #[test]
    fn a_process_of_another_connection_cannot_show_a_grant_that_it_has_read() {
        let mut grants = Grants::default();
        issued(&mut grants, "1", grant("alice", 20), 0);
        assert_eq!(grants.show("1", &session(40), at(1)), None);
        assert_eq!(grants.show("1", &[process(20)], at(1)), None);
        assert_eq!(grants.show("1", &[], at(1)), None);
        let mut younger = session(20);
        younger[2].started = 8;
        assert_eq!(grants.show("1", &younger, at(1)), None);
    }

    #[test]
    fn a_session_cannot_get_a_grant_for_somebody_else() {
        let mut grants = Grants::default();
        issued(&mut grants, "1", grant("mallory", 20), 0);
        grants.show("1", &session(20), at(1));
        assert!(!issued(&mut grants, "2", grant("alice", 20), 2));
        assert_eq!(grants.show("2", &session(20), at(2)), None);
    }

    #[test]
    fn a_grant_that_nobody_shows_ends() {
        let mut grants = Grants::default();
        issued(&mut grants, "1", grant("alice", 20), 0);
        issued(&mut grants, "2", grant("bob", 40), 0);
        assert_eq!(grants.show("1", &session(20), LIFE), None);
        let in_time = LIFE.checked_sub(Duration::from_secs(1)).unwrap();
        assert!(grants.show("2", &session(40), in_time).is_some());
    }

    #[test]
    fn a_login_that_takes_as_long_as_sshd_lets_it_still_has_its_grant() {
        let sshd = include_str!("../../../images/bastion/files/etc/gpu-bastion/sshd_config");
        let grace = sshd
            .lines()
            .find_map(|line| line.strip_prefix("LoginGraceTime "));
        let grace = Duration::from_secs(grace.unwrap().parse().unwrap());
        assert!(LIFE > grace, "{LIFE:?}, {grace:?}");
    }

    #[test]
    fn a_stranger_who_shows_a_public_key_again_and_again_locks_nobody_out() {
        let mut grants = Grants::default();
        let asks = |grants: &mut Grants, number: usize| {
            let connection = i32::try_from(number).unwrap();
            let asked = grant("alice", connection);
            let secret = number.to_string();
            // The stranger's earlier connections have ended.
            grants.issue(secret, asked, at(1), |process| process.id == connection)
        };
        assert!((0..2 * MOST).all(|number| asks(&mut grants, number)));
        assert!(grants.0.len() <= 2);
    }

    #[test]
    fn neither_keys_without_a_login_nor_old_connections_fill_the_memory() {
        let mut grants = Grants::default();
        let flood = |grants: &mut Grants, now: Duration| {
            let secrets = 0..MOST + 2;
            let kept = secrets.filter(|one| {
                let connection = i32::try_from(*one).unwrap();
                let secret = format!("{now:?}-{one}");
                grants.issue(secret, grant("a", connection), now, |_| true)
            });
            kept.count()
        };
        assert_eq!(flood(&mut grants, at(0)), MOST);
        assert_eq!(flood(&mut grants, LIFE), MOST);
        let mut grants = Grants::default();
        issued(&mut grants, "1", grant("a", 20), 0);
        grants.show("1", &session(20), at(1));
        grants.issue("2".into(), grant("a", 40), at(30), |_| false);
        assert_eq!(grants.0.len(), 1);
    }

    #[test]
    fn a_line_of_a_key_or_a_person_starts_nothing_but_a_session() {
        let key = Key::new("ssh-ed25519", "AAA").unwrap();
        assert_eq!(
            line("0f", &key),
            "restrict,pty,command=\"gpu-bastion session --grant 0f\" ssh-ed25519 AAA\n"
        );
        assert_eq!(
            principal("0f", "alice"),
            "restrict,pty,command=\"gpu-bastion session --grant 0f\" alice\n"
        );
    }
}
