//! What the agent of a workspace reports: when each source last showed that somebody
//! uses it. One line of text, for a tag of an instance or an annotation of a Lease.
//!
//! `v1 at=2026-11-22T10:00:00Z ssh=2026-11-22T09:58:00Z job=none gpu=absent kernel=unknown`
//!
//! A source has the time of its last sign of use; `none` where there was none since the
//! machine started, `absent` where the machine has no such source, `unknown` where it could
//! not be looked at. `at` is the time of the report. A source that is in use has `at` itself.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

/// The tag of an instance, and the annotation of a Lease, that holds a report.
pub const REPORT: &str = "gpu.platform.acme.io:activity";
/// The annotation of a Lease with it: Kubernetes wants a slash where EC2 allows none.
pub const REPORT_ANNOTATION: &str = "gpu.platform.acme.io/activity";
/// The tag of an instance with its SSH host key: type and base64.
pub const HOST_KEY: &str = "gpu.platform.acme.io:host-key";

const FORMAT: &str = "v1";

/// A report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// When it was made.
    pub at: Timestamp,
    /// Established SSH sessions.
    pub ssh: Sign,
    /// Registered jobs.
    pub job: Sign,
    /// GPUs at work.
    pub gpu: Sign,
    /// Busy Jupyter kernels.
    pub kernel: Sign,
}

/// What a source shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The machine has no such source.
    Absent,
    /// It could not be looked at.
    Unknown,
    /// No sign of use since the machine started.
    Never,
    /// Its last sign of use.
    At(Timestamp),
}

/// A text that is no report: what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoReport(pub String);

impl Report {
    /// The sources by name, in the order of the text.
    pub fn sources(&self) -> [(&'static str, Sign); 4] {
        [
            ("ssh", self.ssh),
            ("job", self.job),
            ("gpu", self.gpu),
            ("kernel", self.kernel),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORMAT} at={:.0}", self.at)?;
        for (name, sign) in self.sources() {
            write!(f, " {name}={sign}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("absent"),
            Self::Unknown => f.write_str("unknown"),
            Self::Never => f.write_str("none"),
            Self::At(time) => write!(f, "{time:.0}"),
        }
    }
}

impl FromStr for Report {
    type Err = NoReport;

    fn from_str(text: &str) -> Result<Self, NoReport> {
        let mut words = text.split(' ');
        if words.next() != Some(FORMAT) {
            return Err(NoReport(format!("it does not begin with {FORMAT}")));
        }
        let mut field = |name: &str| {
            let word = words.next().unwrap_or_default();
            let value = word.split_once('=').filter(|(key, _)| *key == name);
            value
                .map(|(_, value)| value)
                .ok_or_else(|| NoReport(format!("it lacks {name}=")))
        };
        let report = Self {
            at: time(field("at")?)?,
            ssh: field("ssh")?.parse()?,
            job: field("job")?.parse()?,
            gpu: field("gpu")?.parse()?,
            kernel: field("kernel")?.parse()?,
        };
        match words.next() {
            None => Ok(report),
            Some(_) => Err(NoReport("something follows its end".into())),
        }
    }
}

impl FromStr for Sign {
    type Err = NoReport;

    fn from_str(text: &str) -> Result<Self, NoReport> {
        match text {
            "absent" => Ok(Self::Absent),
            "unknown" => Ok(Self::Unknown),
            "none" => Ok(Self::Never),
            text => time(text).map(Self::At),
        }
    }
}

impl fmt::Display for NoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoReport {}

fn time(text: &str) -> Result<Timestamp, NoReport> {
    let time = text.strip_suffix('Z').and_then(|_| text.parse().ok());
    time.ok_or_else(|| NoReport("one of its times is none".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "v1 at=2026-11-22T10:00:00Z ssh=2026-11-22T09:58:00Z job=none gpu=absent kernel=unknown";

    #[test]
    fn what_the_agent_writes_is_what_the_function_reads() {
        let report: Report = TEXT.parse().unwrap();
        assert_eq!(report.to_string(), TEXT);
        let exact: Timestamp = "2026-11-22T10:00:00.9Z".parse().unwrap();
        let report = Report {
            at: exact,
            ssh: Sign::At(exact),
            ..report
        };
        let read: Report = report.to_string().parse().unwrap();
        assert_eq!(read.ssh, Sign::At(read.at));
    }

    #[test]
    fn a_report_fits_a_tag_of_ec2() {
        let longest = "v1 at=T ssh=T job=T gpu=T kernel=T".replace('T', "2026-11-22T10:00:00Z");
        assert!(longest.len() <= 256 && longest.parse::<Report>().is_ok());
        let allowed = |c: char| c.is_alphanumeric() || " +-=._:/@".contains(c);
        assert!(longest.chars().all(allowed));
    }

    #[test]
    fn garbage_is_no_report() {
        for garbage in [
            "",
            "idle",
            "v2 at=2026-11-22T10:00:00Z ssh=absent job=absent gpu=absent kernel=absent",
            "v1 at=2026-11-22T10:00:00Z ssh=absent job=absent gpu=absent",
            "v1 at=2026-11-22T10:00:00Z job=absent ssh=absent gpu=absent kernel=absent",
            "v1 at=now ssh=absent job=absent gpu=absent kernel=absent",
            "v1 at=2026-11-22T10:00:00Z ssh=absent job=absent gpu=absent kernel=absent more=absent",
            "v1 at=2026-11-22T10:00:00Z ssh=yes job=absent gpu=absent kernel=absent",
        ] {
            assert!(garbage.parse::<Report>().is_err(), "{garbage}");
        }
    }
}
