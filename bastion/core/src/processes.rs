//! Which process asks the broker. The kernel tells the broker, and processes cannot change it.
//!
//! All processes of sshd have one user id, so a user id says little. The kernel tells the broker the
//! process at the other end of a socket (unix(7), `SO_PEERCRED`), and `/proc` tells its ancestors. A
//! process cannot choose them.
//!
//! ```text
//! sshd, which listens ── sshd of a connection ─┬─ keys       (before the login)
//!                                              └─ sshd ── session   (after it)
//! ```

/// A process. An id alone may be another process later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// The process id.
    pub id: i32,
    /// When it started, in ticks of the kernel (`proc_pid_stat(5)`, `starttime`).
    pub started: u64,
}

/// The most ancestors that are looked at. A session has three.
const DEPTH: usize = 8;

/// A process and its ancestors, the process first. `parent` gives the parent's id of a process.
pub fn ancestors(id: i32, parent: impl Fn(i32) -> Option<(Process, i32)>) -> Vec<Process> {
    let mut found = Vec::new();
    let mut next = id;
    while found.len() < DEPTH && next > 0 {
        let Some((process, parent)) = parent(next) else {
            break;
        };
        found.push(process);
        next = parent;
    }
    found
}

/// The process of the connection for which sshd asks for keys; none for a process that sshd did not
/// start for that. sshd starts it as a grandchild of the process that listens.
pub fn connection(chain: &[Process], listener: Process) -> Option<Process> {
    let parents = chain.get(1..)?;
    let connection = parents.first().copied();
    connection.filter(|_| is_connection(parents, listener))
}

/// Whether a process is sshd's of a connection.
pub fn is_connection(chain: &[Process], listener: Process) -> bool {
    chain.get(1) == Some(&listener)
}

/// Reads a line of `/proc/PID/stat`: the process, and its parent's id.
pub fn read(stat: &str) -> Option<(Process, i32)> {
    // The name of the program is in parentheses, and may have any character.
    let (id, rest) = stat.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let process = Process {
        id: id.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    };
    Some((process, fields.get(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: i32) -> Process {
        Process { id, started: 7 }
    }

    /// 10 listens, 20 is a connection with keys 21 and the session 23 below 22, and 30 was left to the
    /// first process.
    fn parent(id: i32) -> Option<(Process, i32)> {
        let parents = [
            (1, 0),
            (10, 1),
            (20, 10),
            (21, 20),
            (22, 20),
            (23, 22),
            (30, 1),
            (31, 30),
        ];
        let parent = parents.iter().find(|(one, _)| *one == id)?.1;
        Some((process(id), parent))
    }

    fn asked_by(id: i32) -> Option<Process> {
        connection(&ancestors(id, parent), process(10))
    }

    #[test]
    fn only_what_sshd_starts_before_a_login_asks_for_keys() {
        assert_eq!(asked_by(21), Some(process(20)));
        for other in [1, 10, 20, 23, 30, 31, 99] {
            assert_eq!(asked_by(other), None, "{other}");
        }
    }

    #[test]
    fn another_process_of_the_same_id_is_not_the_one_that_listens() {
        let listener = Process { id: 10, started: 8 };
        assert_eq!(connection(&ancestors(21, parent), listener), None);
    }

    #[test]
    fn a_ring_of_processes_ends() {
        let ring = |id| Some((process(id), id));
        assert_eq!(ancestors(5, ring).len(), DEPTH);
    }

    #[test]
    fn a_program_whose_name_looks_like_the_end_of_the_field_is_read() {
        let after = "S 20 3 3 0 -1 4 1 1 1 1 1 1 1 1 20 0 1 0 777 1 1";
        let line = format!("42 (a) S 1 (b) {after}");
        let process = Process {
            id: 42,
            started: 777,
        };
        assert_eq!(read(&line), Some((process, 20)));
        assert_eq!(read("42 (a) S"), None);
    }
}
