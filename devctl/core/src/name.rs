//! Names of workspaces, and the host names that ssh uses for them.

use std::fmt;
use std::str::FromStr;

/// The domain of workspaces in ssh's configuration.
pub const DOMAIN: &str = ".ws";
/// The longest name of an object that is also a label in Kubernetes (RFC 1123).
const LONGEST: usize = 63;

/// A name of a workspace or of a namespace: a DNS label. So it never begins with `-`, and no program
/// takes it for an option.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_edge = |c: Option<char>| c.is_some_and(|c| c != '-');
        let fits = text.len() <= LONGEST && text.chars().all(inner);
        if fits && is_edge(text.chars().next()) && is_edge(text.chars().last()) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "a name has lower-case letters, digits and hyphens, {LONGEST} at most, and begins and ends \
             with a letter or a digit"
        ))
    }
}

/// A host of ssh: `my-dev.ws`, `0.my-dev.ws` for a pod, `my-dev.team-vision.ws` for another namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The workspace.
    pub workspace: Name,
    /// The pod, from 0; none for the first one.
    pub replica: Option<u16>,
    /// The namespace; none for the current one.
    pub namespace: Option<Name>,
}

impl Host {
    /// A host of the current namespace.
    pub fn new(workspace: Name, replica: Option<u16>) -> Self {
        Self {
            workspace,
            replica,
            namespace: None,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(replica) = self.replica {
            write!(f, "{replica}.")?;
        }
        f.write_str(self.workspace.as_str())?;
        if let Some(namespace) = &self.namespace {
            write!(f, ".{namespace}")?;
        }
        f.write_str(DOMAIN)
    }
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let labels: Vec<&str> = text
            .strip_suffix(DOMAIN)
            .unwrap_or(text)
            .split('.')
            .collect();
        let replica = |label: &str| label.parse::<u16>().ok();
        let (number, workspace, namespace) = match labels.as_slice() {
            [workspace] => (None, *workspace, None),
            [first, second] => match replica(first) {
                Some(number) => (Some(number), *second, None),
                None => (None, *first, Some(*second)),
            },
            [first, second, third] if replica(first).is_some() => {
                (replica(first), *second, Some(*third))
            }
            _ => return Err(format!("write NAME{DOMAIN}, or 0.NAME{DOMAIN} for a pod")),
        };
        Ok(Self {
            workspace: workspace.parse()?,
            replica: number,
            namespace: namespace.map(str::parse).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_taken_for_an_option_or_a_path() {
        for name in [
            "-oProxyCommand=x",
            "--help",
            "",
            "a.b",
            "../a",
            "A",
            "a b",
            "a\n",
            "a-",
        ] {
            assert!(name.parse::<Name>().is_err(), "{name:?}");
        }
        assert!("a".repeat(64).parse::<Name>().is_err());
        assert!("my-dev2".parse::<Name>().is_ok());
    }

    #[test]
    fn a_host_is_written_as_it_is_read() {
        for text in [
            "my-dev.ws",
            "0.my-dev.ws",
            "my-dev.team-vision.ws",
            "3.a.b.ws",
        ] {
            assert_eq!(text.parse::<Host>().unwrap().to_string(), text);
        }
        let host: Host = "0.my-dev.ws".parse().unwrap();
        assert_eq!((host.workspace.as_str(), host.replica), ("my-dev", Some(0)));
        for text in ["a.b.c.d.ws", "-x.ws", "0.-x.ws", "x.y.z.ws", ".ws"] {
            assert!(text.parse::<Host>().is_err(), "{text}");
        }
    }
}
