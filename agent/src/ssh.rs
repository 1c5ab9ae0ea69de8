//! SSH sessions: established connections to sshd's port, from the tables of the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::time::Duration;

use crate::log::Log;
use crate::places::Places;
use crate::signs::Look;
use crate::watching;

/// The shortest session. Shorter connections are probes or attempts to guess passwords.
pub const SHORTEST: Duration = Duration::from_secs(10);

/// Socket states, from `include/net/tcp_states.h` of Linux.
const ESTABLISHED: &str = "01";
const LISTEN: &str = "0A";

/// The sockets of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// Whether a process listens on the port.
    pub is_served: bool,
    /// Established connections, each by its two addresses and the number of its socket.
    pub connections: BTreeSet<String>,
}

/// Established connections, with the time at which each was first seen.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    since: BTreeMap<String, Duration>,
}

impl Sockets {
    /// Adds the sockets of a table such as /proc/net/tcp (`proc_net(5)`).
    pub fn add(&mut self, table: &str, port: u16) {
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, local, remote, state, ..] = fields[..] else {
                continue;
            };
            let Some((_, number)) = local.rsplit_once(':') else {
                continue;
            };
            if u16::from_str_radix(number, 16) != Ok(port) {
                continue;
            }
            if state == LISTEN {
                self.is_served = true;
            } else if state == ESTABLISHED {
                let socket = fields.get(9).unwrap_or(&"");
                self.connections
                    .insert(format!("{local} {remote} {socket}"));
            }
        }
    }
}

impl Sockets {
    /// Leaves out connections that only watch. Each is a local and a remote address.
    pub fn leave_out(&mut self, watching: &BTreeSet<String>) {
        let is_use = |connection: &String| {
            let addresses = connection.rsplit_once(' ').map(|(addresses, _)| addresses);
            addresses.is_none_or(|addresses| !watching.contains(addresses))
        };
        self.connections.retain(is_use);
    }
}

impl Sessions {
    /// The use that the connections show. `now` is from a monotonic clock.
    pub fn look(&mut self, sockets: &Sockets, now: Duration) -> Look {
        self.since
            .retain(|one, _| sockets.connections.contains(one));
        for connection in &sockets.connections {
            self.since.entry(connection.clone()).or_insert(now);
        }
        let mut ages = self.since.values().map(|since| now.saturating_sub(*since));
        if ages.any(|age| age >= SHORTEST) {
            Look::Active
        } else if sockets.is_served || !sockets.connections.is_empty() {
            Look::Idle { last: None }
        } else {
            Look::Absent
        }
    }
}

/// Reads the machine's connections.
pub fn look(places: &Places, port: u16, sessions: &mut Sessions, now: Duration, log: &Log) -> Look {
    match sockets(places, port) {
        Ok(mut sockets) => {
            sockets.leave_out(&watching::connections(&places.watching()));
            log.fine("ssh");
            sessions.look(&sockets, now)
        }
        Err(error) => {
            log.problem("ssh", "proc", &format!("/proc/net/tcp: {error}"));
            Look::Unknown
        }
    }
}

fn sockets(places: &Places, port: u16) -> io::Result<Sockets> {
    let mut sockets = Sockets::default();
    sockets.add(&fs::read_to_string(places.at("/proc/net/tcp"))?, port);
    match fs::read_to_string(places.at("/proc/net/tcp6")) {
        Ok(table) => sockets.add(&table, port),
        // The kernel has no IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(sockets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
    const SERVER: &str = "   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n";
    const SESSION: &str = "   1: 0A00000A:0016 0B00000A:C350 01 00000000:00000000 02:000A 00000000     0        0 4712 2 0 20 4 1 10 -1\n";
    // A connection to the sshd of another machine.
    const OUTGOING: &str = "   2: 0A00000A:C351 0C00000A:0016 01 00000000:00000000 02:000A 00000000     0        0 4713 2 0 20 4 1 10 -1\n";
    const SIXTH: &str = "   0: 0000000000000000FFFF00000A00000A:0016 0000000000000000FFFF00000B00000A:C352 01 0:0 00:0 0 0 0 4714 1 0\n";

    fn sockets(lines: &[&str]) -> Sockets {
        let mut sockets = Sockets::default();
        sockets.add(&[HEAD, &lines.concat()].concat(), 22);
        sockets
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const IDLE: Look = Look::Idle { last: None };

    #[test]
    fn a_session_is_use_and_a_probe_is_not() {
        let mut sessions = Sessions::default();
        let (nobody, somebody) = (sockets(&[SERVER]), sockets(&[SERVER, SESSION]));
        assert_eq!(sessions.look(&nobody, seconds(0)), IDLE);
        assert_eq!(sessions.look(&somebody, seconds(5)), IDLE);
        assert_eq!(sessions.look(&somebody, seconds(14)), IDLE);
        assert_eq!(sessions.look(&somebody, seconds(15)), Look::Active);
        assert_eq!(sessions.look(&nobody, seconds(20)), IDLE);
    }

    #[test]
    fn a_connection_that_only_watches_is_no_use() {
        let mut sessions = Sessions::default();
        let mut seen = sockets(&[SERVER, SESSION]);
        seen.leave_out(&BTreeSet::from(["0A00000A:0016 0B00000A:C351".to_owned()]));
        assert_eq!(seen.connections.len(), 1, "another connection");
        seen.leave_out(&BTreeSet::from(["0A00000A:0016 0B00000A:C350".to_owned()]));
        assert_eq!(sessions.look(&seen, seconds(0)), IDLE);
        assert_eq!(sessions.look(&seen, seconds(60)), IDLE);
    }

    #[test]
    fn probes_one_after_the_other_are_no_session() {
        let mut sessions = Sessions::default();
        for n in 0..10 {
            let probe = SESSION.replace("4712", &(5000 + n).to_string());
            let seen = sockets(&[SERVER, &probe]);
            assert_eq!(sessions.look(&seen, seconds(5 * n)), IDLE);
        }
    }

    #[test]
    fn connections_to_other_machines_do_not_count() {
        let seen = sockets(&[SERVER, OUTGOING]);
        assert!(seen.is_served && seen.connections.is_empty());
    }

    #[test]
    fn ipv6_counts_and_a_machine_without_sshd_has_no_such_source() {
        assert_eq!(sockets(&[SIXTH]).connections.len(), 1);
        let look = Sessions::default().look(&sockets(&[OUTGOING]), seconds(0));
        assert_eq!(look, Look::Absent);
    }

    #[test]
    fn invalid_lines_of_the_table_are_skipped() {
        assert_eq!(
            sockets(&["x\n", "0: : : 01\n", "0: a:zz b 01\n"]),
            Sockets::default()
        );
    }
}
