//! Makes reports from the readings of the sources.

use activity_report::{Report, Sign};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One reading of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The machine does not have this source.
    Absent,
    /// The agent could not read the source.
    Unknown,
    /// The source is not in use.
    Idle {
        /// When the source was last in use; none if it does not know.
        last: Option<Timestamp>,
    },
    /// The source is in use.
    Active,
}

/// One reading of all sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    /// The reading of SSH sessions.
    pub ssh: Look,
    /// The reading of registered jobs.
    pub job: Look,
    /// The reading of GPUs.
    pub gpu: Look,
    /// The reading of Jupyter kernels.
    pub kernel: Look,
}

/// When each source was last in use since the machine started.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    ssh: Option<Timestamp>,
    job: Option<Timestamp>,
    gpu: Option<Timestamp>,
    kernel: Option<Timestamp>,
}

impl Memory {
    /// Remembers a reading, and makes a report from it and from earlier readings.
    pub fn report(&mut self, at: Timestamp, looks: &Looks) -> Report {
        Report {
            at,
            ssh: sign(&mut self.ssh, at, looks.ssh),
            job: sign(&mut self.job, at, looks.job),
            gpu: sign(&mut self.gpu, at, looks.gpu),
            kernel: sign(&mut self.kernel, at, looks.kernel),
        }
    }
}

/// Whether a report shows use of any source.
pub fn is_active(report: &Report) -> bool {
    let mut signs = report.sources().into_iter();
    signs.any(|(_, sign)| sign == Sign::At(report.at))
}

/// The sign of a source. A source that was once in use is not reported as absent: otherwise its
/// last sign would be lost, for example while sshd restarts. No sign is later than its report,
/// because a clock may be set back.
fn sign(last: &mut Option<Timestamp>, at: Timestamp, look: Look) -> Sign {
    let seen = match look {
        Look::Unknown => return Sign::Unknown,
        Look::Absent => None,
        Look::Idle { last } => last,
        Look::Active => Some(at),
    };
    *last = (*last).max(seen).map(|time| time.min(at));
    match (*last, look) {
        (Some(time), _) => Sign::At(time),
        (None, Look::Absent) => Sign::Absent,
        (None, _) => Sign::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Look = Look::Idle { last: None };
    const NOTHING: Looks = Looks {
        ssh: IDLE,
        job: IDLE,
        gpu: Look::Absent,
        kernel: Look::Unknown,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn a_sign_of_use_is_remembered_when_it_is_over() {
        let mut memory = Memory::default();
        let unused = memory.report(at(0), &NOTHING);
        assert_eq!(unused.ssh, Sign::Never);
        assert_eq!((unused.gpu, unused.kernel), (Sign::Absent, Sign::Unknown));
        assert!(!is_active(&unused));
        let ssh = Look::Active;
        let used = memory.report(at(10), &Looks { ssh, ..NOTHING });
        assert_eq!(used.ssh, Sign::At(at(10)));
        assert!(is_active(&used));
        let left = memory.report(at(20), &NOTHING);
        assert_eq!(left.ssh, Sign::At(at(10)));
        assert!(!is_active(&left));
    }

    #[test]
    fn an_unreadable_source_is_not_reported_as_idle() {
        let mut memory = Memory::default();
        let kernel = Look::Active;
        memory.report(at(0), &Looks { kernel, ..NOTHING });
        assert_eq!(memory.report(at(10), &NOTHING).kernel, Sign::Unknown);
        let kernel = IDLE;
        let seen = memory.report(at(20), &Looks { kernel, ..NOTHING });
        assert_eq!(seen.kernel, Sign::At(at(0)), "forgotten meanwhile");
    }

    #[test]
    fn a_missing_source_keeps_its_last_sign() {
        let mut memory = Memory::default();
        let kernel = Look::Active;
        memory.report(at(0), &Looks { kernel, ..NOTHING });
        let kernel = Look::Absent;
        let gone = memory.report(at(10), &Looks { kernel, ..NOTHING });
        assert_eq!(gone.kernel, Sign::At(at(0)));
    }

    #[test]
    fn the_time_of_a_source_counts_and_is_never_in_the_future() {
        let mut memory = Memory::default();
        let kernel = |second| Look::Idle {
            last: Some(at(second)),
        };
        let looks = |second| Looks {
            kernel: kernel(second),
            ..NOTHING
        };
        assert_eq!(memory.report(at(10), &looks(7)).kernel, Sign::At(at(7)));
        assert_eq!(memory.report(at(11), &looks(3)).kernel, Sign::At(at(7)));
        assert_eq!(memory.report(at(20), &looks(99)).kernel, Sign::At(at(20)));
    }

    #[test]
    fn a_clock_that_is_set_back_leaves_no_sign_in_the_future() {
        let mut memory = Memory::default();
        let ssh = Look::Active;
        memory.report(at(1_000), &Looks { ssh, ..NOTHING });
        assert_eq!(memory.report(at(10), &NOTHING).ssh, Sign::At(at(10)));
        assert_eq!(memory.report(at(20), &NOTHING).ssh, Sign::At(at(10)));
    }
}
