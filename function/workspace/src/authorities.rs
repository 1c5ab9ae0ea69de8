//! The certificate authorities of a policy: their certificates log in beside the owner's keys.

use api::policy::WorkspacePolicy;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use function_runtime::validation::Violation;

use crate::claim;

const PATH: &str = "input.ssh.userAuthorities";

/// A line of `authorized_keys` for each authority (sshd(8), section about the format of
/// `authorized_keys`). It names the owner as the only principal. There is none for a text that is no
/// owner's name: a quote or a comma in it would end the principal.
pub(crate) fn lines(policy: &WorkspacePolicy, owner: &str) -> Vec<String> {
    if !claim::is_owner(owner) {
        return Vec::new();
    }
    let line = |key| format!("cert-authority,principals=\"{owner}\" {key}");
    keys(policy).map(line).collect()
}

/// The violations of a policy's authorities. The schema has checked that each is one line without
/// options, of a known type. sshd ignores a line with damaged data, and no certificate would log in.
pub(crate) fn violations(policy: &WorkspacePolicy) -> Vec<Violation> {
    let damaged = keys(policy).enumerate().filter(|(_, key)| !is_whole(key));
    damaged
        .map(|(n, _)| {
            let problem = "is damaged: its data is no public key of its type; copy the whole line \
                           of the authority's .pub file";
            Violation::new(format!("{PATH}[{n}]"), problem)
        })
        .collect()
}

fn keys(policy: &WorkspacePolicy) -> impl Iterator<Item = &String> {
    policy.ssh.iter().flat_map(|ssh| &ssh.user_authorities)
}

/// Whether the data of a public key is that of its type, and complete.
fn is_whole(key: &str) -> bool {
    let mut words = key.split(' ');
    let (Some(kind), Some(data)) = (words.next(), words.next()) else {
        return false;
    };
    let Ok(blob) = STANDARD.decode(data) else {
        return false;
    };
    let fields = fields(&blob).unwrap_or_default();
    let Some((named, parts)) = fields.split_first() else {
        return false;
    };
    *named == kind.as_bytes() && has_parts(kind, parts)
}

/// Whether a public key of this type has these parts after the name of the type: RFC 8709, section
/// 4; RFC 4253, section 6.6; RFC 5656, section 3.1; OpenSSH's PROTOCOL.u2f. sshd takes RSA keys from
/// 1024 bits on.
fn has_parts(kind: &str, parts: &[&[u8]]) -> bool {
    match (kind, parts) {
        ("ssh-ed25519", [key]) => key.len() == 32,
        ("ssh-rsa", [exponent, modulus]) => !exponent.is_empty() && modulus.len() >= 128,
        ("ecdsa-sha2-nistp256", [b"nistp256", point]) => point.len() == 65,
        ("ecdsa-sha2-nistp384", [b"nistp384", point]) => point.len() == 97,
        ("ecdsa-sha2-nistp521", [b"nistp521", point]) => point.len() == 133,
        ("sk-ssh-ed25519@openssh.com", [key, application]) => {
            key.len() == 32 && !application.is_empty()
        }
        ("sk-ecdsa-sha2-nistp256@openssh.com", [b"nistp256", point, application]) => {
            point.len() == 65 && !application.is_empty()
        }
        _ => false,
    }
}

/// The fields of a public key, each with its length before it (RFC 4251, section 5); none if the last
/// one is cut off.
fn fields(mut blob: &[u8]) -> Option<Vec<&[u8]>> {
    let mut fields = Vec::new();
    while !blob.is_empty() {
        let (length, rest) = blob.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (field, rest) = rest.split_at_checked(length)?;
        fields.push(field);
        blob = rest;
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::policy;

    /// Keys that `ssh-keygen` made, or reads (`-lf`).
    const KEYS: [&str; 7] = [
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIwc2CyRtbeMW58jaqt5CGwsuuH3eB1lV+2bzjyIoBP+ ca",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQCrw2OFUXSn1SoRKLdgG0QyUU6MgjtrYsQ+5q9J7kBIBRpYWKDoukuftRXtJTFMx/uCrCbNVTJpbi16sYPPk7EqXXM8FiCrf5/K846UNEVLt3IT1gOYcBLe7anlITRkU9ZL1CPqAT1bJanwMpazAtsy941n5i623OaNZOAvUQX4XLNY/zg0HZFWWkVPLmfelsV+alJlDcDKMcSpc8RCy3du0q7SPBshbbnCkAzky9KDI3XVxUy9nBhEcpMWYO7YbIrQxxEJXB+eynsbt3N7vWWlsGDUY4F4+3puyS4gRPHGcuNKF4hGDszrEgyjFVv1v7u5cxb84U+dEYw0YANeT9fns2KwFwAMbzm5+25brIzm+F0N7vgNlzaXMjG7+YSxGtgrcGyAH8A8lBFMo8TNDNNt7E50TslZgvK+ZOdBiUHpOkAVrGpRDTyC8gBMiEePHHH8Axh0OCgyLNMMp39FCtQvD9PwerzNb3YE+4OIVkt7J7EtM9BI34rHH+PTKLh/CfM=",
        "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBOeuFIOmQsbLE21LmIonZS/JUZV/o+jDqCQmoLp9CDdTaaOgTSWJffiH/8zJTNg+mFPBWSRR0/23Kn2Q5bpSMs0=",
        "ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBB4PgNjNF8u+trEc3t5p2a/ClThIYb5wD9cGYmG9iSznc9rMHNVWz7Pkcnd26FzXOwh60D18storJPROnHkvPWbgSo80QbC7YVoHOKXBWNmyVtq3biArLLeqzUeWr4iVkw==",
        "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBACnqJOF/v4B6vH8V2mmf2byyzRhwvUAQs/TtoUkGdDuaJ/zeJhB6+TmHfgKieBSrO9ZX4WyjTj9Fa2HYprp6kzrcQE90lH/nYkuaaPhl6hEcwxMth7HvVYId4jY5FInMEYDBwpMLP5T9nIQEs77splNJuTqvTy17aQOLP+weebKd298zw==",
        "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIIwc2CyRtbeMW58jaqt5CGwsuuH3eB1lV+2bzjyIoBP+AAAABHNzaDo=",
        "sk-ecdsa-sha2-nistp256@openssh.com AAAAInNrLWVjZHNhLXNoYTItbmlzdHAyNTZAb3BlbnNzaC5jb20AAAAIbmlzdHAyNTYAAABBBOeuFIOmQsbLE21LmIonZS/JUZV/o+jDqCQmoLp9CDdTaaOgTSWJffiH/8zJTNg+mFPBWSRR0/23Kn2Q5bpSMs0AAAAEc3NoOg==",
    ];

    fn read(authorities: &[&str]) -> Result<WorkspacePolicy, String> {
        let input: Value = json!({
            "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
            "kind": "WorkspacePolicy",
            "behaviourVersion": "v3",
            "catalogue": {"name": "gpu-workspaces"},
            "allowedInstanceTypes": ["g4dn.*"],
            "ssh": {"userAuthorities": authorities},
        });
        policy::read(Some(&input)).map_err(|violations| violations.to_string())
    }

    /// The principal and the key of a line, read as sshd(8) describes it: a quote ends the value of
    /// an option, and a space ends the options.
    fn principal_and_key(line: &str) -> Option<(&str, &str)> {
        let options = line.strip_prefix("cert-authority,principals=\"")?;
        let (principal, rest) = options.split_once('"')?;
        Some((principal, rest.strip_prefix(' ')?))
    }

    #[test]
    fn an_authority_of_every_type_is_accepted() {
        for key in KEYS {
            let policy = read(&[key]).unwrap();
            let lines = lines(&policy, "alice");
            let [line] = lines.as_slice() else {
                panic!("{lines:?}")
            };
            assert_eq!(principal_and_key(line), Some(("alice", key)));
        }
        assert!(read(&KEYS[..4]).is_ok());
        let refused = read(&KEYS[..5]).unwrap_err();
        let path = "input.ssh.userAuthorities: ";
        assert!(refused.starts_with(path), "{refused}");
    }

    #[test]
    fn a_text_that_is_more_or_less_than_a_key_is_no_authority() {
        let key = KEYS[0];
        let data = key.split(' ').nth(1).unwrap();
        let of_another_type = format!("ssh-rsa {data}");
        let (short, long) = (&data[..64], format!("{data}AAAA"));
        for text in [
            String::new(),
            data.to_owned(),
            format!("cert-authority {key}"),
            format!("principals=\"mallory\" {key}"),
            format!("{key}\n{key}"),
            format!("{key}\r{key}"),
            format!("{key}\n"),
            format!(" {key}"),
            format!("{key} two words"),
            format!("{key} \"quoted\""),
            format!("# {key}"),
            format!("ssh-ed25519\t{data}"),
            format!("ssh-dss {data}"),
            format!("ssh-ed25519-cert-v01@openssh.com {data}"),
            format!("ssh-ed25519 {short}"),
            format!("ssh-ed25519 {long}"),
            format!("ssh-ed25519 {}", "A".repeat(68)),
            "ssh-ed25519 AAAA".to_owned(),
            of_another_type,
        ] {
            let refused = read(&[KEYS[2], &text]).unwrap_err();
            let path = "input.ssh.userAuthorities[1]: ";
            assert!(refused.starts_with(path), "{text:?}: {refused}");
        }
        let damaged = read(&["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"]).unwrap_err();
        assert_eq!(
            damaged,
            "input.ssh.userAuthorities[0]: is damaged: its data is no public key of its type; copy \
             the whole line of the authority's .pub file"
        );
    }

    /// sshd would take the rest of such a name for options of its own, or for another principal.
    #[test]
    fn no_name_of_an_owner_ends_the_quotes_of_its_principal() {
        let policy = read(&[KEYS[0]]).unwrap();
        let hostile = [
            "alice,bob",
            "alice\",no-pty",
            "alice\" ssh-ed25519 AAAA\n",
            "*",
            "!bob",
            "",
        ];
        let characters = (0..=0x2ff).chain(0x2000..0x2100).chain(0xff00..0xff60);
        let names = characters.filter_map(char::from_u32).flat_map(|c| {
            [
                format!("{c}"),
                format!("{c}a"),
                format!("a{c}"),
                format!("a{c}a"),
            ]
        });
        let mut accepted = 0;
        for name in names.chain(hostile.map(str::to_owned)) {
            let lines = lines(&policy, &name);
            for line in &lines {
                assert_eq!(principal_and_key(line), Some((&*name, KEYS[0])), "{name:?}");
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
                assert!(name.chars().all(is_plain), "{name:?} is a principal");
            }
            accepted += lines.len();
        }
        // 36 letters and digits in four places, and three other characters between two letters.
        assert_eq!(accepted, 36 * 4 + 3);
        for name in hostile {
            assert!(super::lines(&policy, name).is_empty(), "{name:?}");
        }
    }
}
