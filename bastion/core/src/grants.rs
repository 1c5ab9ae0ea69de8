//! Grants: how a login's process shows whose it is.
//!
//! sshd asks for a person's keys, and the broker answers with a line that starts a session with a grant.
//! The grant is for one login of one person by one key, within ten seconds. Nothing that a client sends
//! can name another person.

use std::collections::HashMap;
use std::time::Duration;

use crate::accounts::Key;

/// How long a grant lasts. sshd asks for keys before the client has signed.
const LIFE: Duration = Duration::from_secs(10);
/// The most grants that wait for their login. sshd's own limit of logins that have not ended
/// (`MaxStartups`) is far lower.
const MOST: usize = 4_096;

/// The secret of a grant: 32 random bytes in hexadecimal digits.
pub type Secret = String;

/// For whom a grant is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The name of the person.
    pub user: String,
    /// The key by which the person logs in.
    pub key: Key,
}

/// The grants that no session has shown yet. Times are durations since the broker's start, so no clock
/// that jumps prolongs a grant.
#[derive(Debug, Default)]
pub struct Grants(HashMap<Secret, (Grant, Duration)>);

impl Grants {
    /// Keeps a grant, unless too many wait.
    pub fn issue(&mut self, secret: Secret, grant: Grant, now: Duration) -> bool {
        self.0.retain(|_, (_, until)| *until > now);
        if self.0.len() >= MOST {
            return false;
        }
        self.0.insert(secret, (grant, now + LIFE));
        true
    }

    /// Takes a grant: it is good for one login.
    pub fn take(&mut self, secret: &str, now: Duration) -> Option<Grant> {
        let (grant, until) = self.0.remove(secret)?;
        (until > now).then_some(grant)
    }
}

/// The line of `authorized_keys` that lets a key in (`sshd(8)`, "`AUTHORIZED_KEYS` FILE FORMAT").
pub fn line(secret: &str, key: &Key) -> String {
    format!("restrict,pty,command=\"gpu-bastion session --grant {secret}\" {key}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    fn grant(user: &str) -> Grant {
        Grant {
            user: user.into(),
            key: Key::new("ssh-ed25519", "AAA").unwrap(),
        }
    }

    #[test]
    fn a_grant_is_good_for_one_login_of_its_person() {
        let mut grants = Grants::default();
        assert!(grants.issue("1".into(), grant("alice"), at(0)));
        assert!(grants.issue("2".into(), grant("bob"), at(0)));
        assert_eq!(grants.take("1", at(9)), Some(grant("alice")));
        assert_eq!(grants.take("1", at(9)), None);
        assert_eq!(grants.take("3", at(9)), None);
        assert_eq!(grants.take("2", at(9)), Some(grant("bob")));
    }

    #[test]
    fn a_grant_ends_after_ten_seconds() {
        let mut grants = Grants::default();
        grants.issue("1".into(), grant("alice"), at(0));
        assert_eq!(grants.take("1", at(10)), None);
    }

    #[test]
    fn keys_that_nobody_logs_in_with_fill_no_memory() {
        let mut grants = Grants::default();
        let issued = |grants: &mut Grants, at| {
            let secrets = 0..2 * MOST;
            let kept = secrets.filter(|one| grants.issue(format!("{at:?}{one}"), grant("a"), at));
            kept.count()
        };
        assert_eq!(issued(&mut grants, at(0)), MOST);
        assert_eq!(issued(&mut grants, at(10)), MOST);
    }

    #[test]
    fn a_line_of_a_key_starts_nothing_but_a_session() {
        let key = Key::new("ssh-ed25519", "AAA").unwrap();
        assert_eq!(
            line("0f", &key),
            "restrict,pty,command=\"gpu-bastion session --grant 0f\" ssh-ed25519 AAA\n"
        );
    }
}
