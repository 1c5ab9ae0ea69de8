//! Connections that only watch. They do not count as use of the workspace.
//!
//! While `sample` runs, it registers the SSH connection of its session. A file without a lock, and a file
//! that names no connection, have no effect: what is unclear counts as use.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::Path;

use crate::registration::{self, Registration};

/// Every user may write to the folder, so the number and the size of the files that are read are
/// limited.
const MOST: usize = 100;
const LONGEST: u64 = 256;

/// Registers a connection, as sshd names it in `SSH_CONNECTION` (`ssh(1)`).
pub fn register(folder: &Path, connection: &str) -> io::Result<Registration> {
    let file_name = format!("{}.connection", std::process::id());
    registration::register(folder, &file_name, connection.as_bytes())
}

/// The registered connections, as the kernel's tables write them: the local and the remote address.
pub fn connections(folder: &Path) -> BTreeSet<String> {
    // A folder that cannot be read hides no use.
    let files = registration::locked(folder, MOST).unwrap_or_default();
    let texts = files.into_iter().filter_map(|file| {
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).ok()?;
        Some(text)
    });
    texts.flat_map(|text| in_tables(&text)).collect()
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
    use std::fs;

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
