//! Connections that only watch. They do not count as use of the workspace.
//!
//! `sample` registers the SSH connection in which it runs, as long as it runs. A file that nobody
//! locks, or that names no connection, has no effect: what is unclear counts as use.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::file;

/// Every user may write to the folder, so the number and the size of the files that are read are
/// limited.
const MOST: usize = 100;
const LONGEST: u64 = 256;

/// The registration of this process's connection. It ends when the value is dropped.
#[derive(Debug)]
pub struct Registration {
    path: PathBuf,
    _lock: Flock<File>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // A file without a lock has no effect.
        let _ = fs::remove_file(&self.path);
    }
}

/// Registers a connection, as sshd names it in `SSH_CONNECTION` (`ssh(1)`).
pub fn register(folder: &Path, connection: &str) -> io::Result<Registration> {
    let path = folder.join(format!("{}.connection", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&path)?;
    file.write_all(connection.as_bytes())?;
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock);
    let lock = lock.map_err(|(_, error)| io::Error::from(error))?;
    Ok(Registration { path, _lock: lock })
}

/// The registered connections, as the kernel's tables write them: the local and the remote address.
pub fn connections(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return BTreeSet::new();
    };
    let mut found = BTreeSet::new();
    for entry in entries.take(MOST).flatten() {
        let Ok(file) = file::open(&entry.path()) else {
            continue;
        };
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Err((file, Errno::EWOULDBLOCK)) => {
                let mut text = String::new();
                if file.take(LONGEST).read_to_string(&mut text).is_ok() {
                    found.extend(in_tables(&text));
                }
            }
            Ok(_unlocked) => {
                // Its process has ended. In a pod, the file may belong to another user.
                let _ = fs::remove_file(entry.path());
            }
            Err(_) => {}
        }
    }
    found
}

/// The ways in which /proc/net/tcp and tcp6 write a connection (`proc_net(5)`).
fn in_tables(connection: &str) -> Vec<String> {
    let fields: Vec<&str> = connection.split_whitespace().collect();
    let [client, client_port, server, server_port] = fields[..] else {
        return Vec::new();
    };
    let (Ok(client), Ok(server)) = (client.parse::<IpAddr>(), server.parse::<IpAddr>()) else {
        return Vec::new();
    };
    let (Ok(client_port), Ok(server_port)) =
        (client_port.parse::<u16>(), server_port.parse::<u16>())
    else {
        return Vec::new();
    };
    let pairs = written(server).into_iter().zip(written(client));
    pairs
        .map(|(server, client)| format!("{server}:{server_port:04X} {client}:{client_port:04X}"))
        .collect()
}

/// An address in hexadecimal digits, as IPv4 and mapped into IPv6 where it is one of IPv4. The kernel
/// writes each four bytes as one number of the machine's byte order.
fn written(address: IpAddr) -> Vec<String> {
    let number = |bytes: &[u8]| match bytes {
        [a, b, c, d] => format!("{:08X}", u32::from_ne_bytes([*a, *b, *c, *d])),
        _ => String::new(),
    };
    match address.to_canonical() {
        IpAddr::V4(four) => {
            let mapped = four.to_ipv6_mapped().octets();
            vec![
                number(&four.octets()),
                mapped.chunks(4).map(number).collect(),
            ]
        }
        IpAddr::V6(six) => vec![six.octets().chunks(4).map(number).collect()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_found_as_the_kernel_writes_it() {
        // Byte order of x86-64 and of ARM as Linux runs it.
        assert_eq!(
            in_tables("10.0.0.11 50000 10.0.0.10 22"),
            [
                "0A00000A:0016 0B00000A:C350",
                "0000000000000000FFFF00000A00000A:0016 0000000000000000FFFF00000B00000A:C350",
            ]
        );
        for unclear in [
            "",
            "a b c d",
            "10.0.0.11 50000 10.0.0.10",
            "10.0.0.11 x 10.0.0.10 22",
        ] {
            assert!(in_tables(unclear).is_empty(), "{unclear}");
        }
    }

    #[test]
    fn a_registration_ends_with_its_process() {
        let folder = std::env::temp_dir().join(format!("agent-watching-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let watching = register(&folder, "10.0.0.11 50000 10.0.0.10 22").unwrap();
        assert_eq!(connections(&folder).len(), 2);
        drop(watching);
        assert!(connections(&folder).is_empty());
        fs::write(
            folder.join("left.connection"),
            "10.0.0.11 50000 10.0.0.10 22",
        )
        .unwrap();
        assert!(connections(&folder).is_empty(), "nobody locks it");
        fs::remove_dir_all(&folder).unwrap();
    }
}
