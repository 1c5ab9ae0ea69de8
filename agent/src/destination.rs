//! The destination of reports.

use std::time::SystemTime;

use activity_report::Report;
use jiff::Timestamp;

use crate::ec2::Ec2;
use crate::lease::Lease;
use crate::log::Problem;

/// The destination on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// Standard output, for people.
    Stdout,
    /// A tag of the agent's own instance.
    Ec2,
    /// An annotation of a Lease.
    Lease {
        /// The namespace of the Lease.
        namespace: String,
        /// The name of the Lease.
        name: String,
    },
}

impl To {
    /// Parses `stdout`, `ec2`, or `lease` and `NAMESPACE/NAME`.
    pub fn read(words: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["stdout"] => Ok(Self::Stdout),
            ["ec2"] => Ok(Self::Ec2),
            ["lease", lease] => {
                let (namespace, name) = lease.split_once('/').unwrap_or_default();
                if namespace.is_empty() || name.is_empty() || name.contains('/') {
                    return Err(format!("--to lease: {lease:?} is not NAMESPACE/NAME"));
                }
                let (namespace, name) = (namespace.to_owned(), name.to_owned());
                Ok(Self::Lease { namespace, name })
            }
            _ => Err("--to: want stdout, ec2, or lease NAMESPACE/NAME".into()),
        }
    }
}

/// The destination of reports.
pub enum Destination {
    /// Standard output, for people.
    Stdout,
    /// A tag of the agent's own instance.
    Ec2(Box<Ec2>),
    /// An annotation of a Lease.
    Lease(Lease),
}

impl Destination {
    /// Sends a report.
    pub fn send(&mut self, report: &Report, now: SystemTime) -> Result<(), Problem> {
        match self {
            Self::Stdout => {
                println!("{report}");
                Ok(())
            }
            Self::Ec2(ec2) => ec2.send(report, now),
            Self::Lease(lease) => {
                let now = Timestamp::try_from(now)
                    .map_err(|error| Problem::new("clock", error.to_string()))?;
                lease.send(report, now)
            }
        }
    }

    /// Sends the result of the machine's setup. None if there is nothing new to send. Pods have no
    /// setup.
    pub fn send_setup(&mut self, now: SystemTime) -> Option<Result<(), Problem>> {
        match self {
            Self::Stdout | Self::Lease(_) => None,
            Self::Ec2(ec2) => ec2.send_setup(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_destination_is_refused() {
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            To::read(&words)
        };
        assert_eq!(read(&["ec2"]), Ok(To::Ec2));
        let (namespace, name) = ("team".to_owned(), "alice".to_owned());
        assert_eq!(
            read(&["lease", "team/alice"]),
            Ok(To::Lease { namespace, name })
        );
        for wrong in [
            &["ec3"][..],
            &["lease"],
            &["lease", "alice"],
            &["lease", "a/b/c"],
            &["ec2", "x"],
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
