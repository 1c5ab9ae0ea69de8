//! SSH host keys that a machine reports about itself.
//!
//! The owner of a machine can report any text. People copy host keys into their `known_hosts`, where
//! one more line could name every host. So the function reads a key and never passes its text on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The types of host keys that OpenSSH's `ssh-keygen -A` makes.
const TYPES: [&str; 5] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
];

/// Type and base64 data of the public key in a line; none if it is no host key. The comment is left
/// out: it names the machine that made the key.
pub fn read(line: &str) -> Option<String> {
    let mut words = line.trim_end_matches('\n').split(' ');
    let (kind, data) = (words.next()?, words.next()?);
    if !TYPES.contains(&kind) || line.trim_end_matches('\n').contains(char::is_control) {
        return None;
    }
    let blob = STANDARD.decode(data).ok()?;
    // RFC 4253, section 6.6: the data begins with the length and the name of its type.
    let (length, rest) = blob.split_first_chunk::<4>()?;
    let named = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let holds_its_type = named == kind.len() && rest.starts_with(kind.as_bytes());
    (holds_its_type && rest.len() > named).then(|| format!("{kind} {data}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

    #[test]
    fn a_host_key_is_read_without_its_comment() {
        assert_eq!(read(KEY).as_deref(), Some(KEY));
        assert_eq!(
            read(&format!("{KEY} root@ip-10-0-0-7\n")).as_deref(),
            Some(KEY)
        );
    }

    #[test]
    fn a_machine_adds_no_line_to_somebodys_known_hosts() {
        let other = "* ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIIIIIII";
        let data = KEY.split(' ').nth(1).unwrap();
        for text in [
            format!("{KEY}\n{other}"),
            format!("{KEY}\r{other}"),
            format!("{KEY} comment\n{other}"),
            format!("* {KEY}"),
            format!("@cert-authority {KEY}"),
            format!("ssh-dss {data}"),
            format!("ssh-rsa {data}"),
            format!("ssh-ed25519\t{data}"),
            "ssh-ed25519 not-base64".to_owned(),
            "ssh-ed25519 AAAA".to_owned(),
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5".to_owned(),
            "ssh-ed25519".to_owned(),
            String::new(),
        ] {
            assert_eq!(read(&text), None, "{text:?}");
        }
    }
}
