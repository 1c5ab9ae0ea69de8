//! The report of a workspace's agent: when each source last showed use of the workspace. A report
//! is one line of text, for a tag of an instance or an annotation of a Lease.
//!
//! `v1 at=2026-11-22T10:00:00Z ssh=2026-11-22T09:58:00Z job=none gpu=absent kernel=unknown`
//!
//! `at` is the time of the report. Each source has the time at which it last showed use. It has
//! `at` itself if it is in use, `none` if it has shown no use since the machine started, `absent`
//! if the machine does not have the source, and `unknown` if the agent could not read it.

pub mod host_key;
pub mod setup;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

/// The key of the instance's tag with the report.
pub const REPORT: &str = "gpu.platform.acme.io:activity";
/// The annotation of the Lease with the report. Kubernetes needs a slash where EC2 allows none.
pub const REPORT_ANNOTATION: &str = "gpu.platform.acme.io/activity";
/// The key of the instance's tag with its SSH host key: type and base64 data.
pub const HOST_KEY: &str = "gpu.platform.acme.io:host-key";
/// The key of the instance's tag with the result of its setup: `done`, or `FAILED: ` and the step.
pub const SETUP: &str = "gpu.platform.acme.io:setup";

const FORMAT: &str = "v1";

/// A report of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The time of the report.
    pub at: Timestamp,
    /// Use by established SSH sessions.
    pub ssh: Sign,
    /// Use by registered jobs.
    pub job: Sign,
    /// Use of GPUs.
    pub gpu: Sign,
    /// Use by busy Jupyter kernels.
    pub kernel: Sign,
}

/// The use that a source shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The machine does not have this source.
    Absent,
    /// The agent could not read the source.
    Unknown,
    /// The source has shown no use since the machine started.
    Never,
    /// When the source last showed use.
    At(Timestamp),
}

/// Why a text is not a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoReport(pub String);

impl Report {
    /// The sources with their names, in the order of the text.
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
    fn a_written_report_can_be_read_again() {
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
    fn an_invalid_report_is_refused() {
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
