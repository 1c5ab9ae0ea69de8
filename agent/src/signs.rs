//! From what is seen to what is reported.

use activity_report::{Report, Sign};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What one look at a source shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The machine has no such source.
    Absent,
    /// It could not be looked at.
    Unknown,
    /// Nobody uses it.
    Idle {
        /// When somebody last did, where the source itself knows.
        last: Option<Timestamp>,
    },
    /// Somebody uses it.
    Active,
}

/// What one look at every source shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    /// SSH sessions.
    pub ssh: Look,
    /// Registered jobs.
    pub job: Look,
    /// GPUs.
    pub gpu: Look,
    /// Jupyter kernels.
    pub kernel: Look,
}

/// The last signs of use since the machine started.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    ssh: Option<Timestamp>,
    job: Option<Timestamp>,
    gpu: Option<Timestamp>,
    kernel: Option<Timestamp>,
}

impl Memory {
    /// Remembers what was seen, and makes a report of it and of what was seen before.
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

/// Whether a report says of a source that it is in use.
pub fn is_active(report: &Report) -> bool {
    let mut signs = report.sources().into_iter();
    signs.any(|(_, sign)| sign == Sign::At(report.at))
}

/// A source that was used once is not said to be absent, or its last sign would be lost
/// while, say, sshd starts anew. No sign is later than its report: clocks are set back.
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
    fn a_source_that_cannot_be_looked_at_is_not_called_idle() {
        let mut memory = Memory::default();
        let kernel = Look::Active;
        memory.report(at(0), &Looks { kernel, ..NOTHING });
        assert_eq!(memory.report(at(10), &NOTHING).kernel, Sign::Unknown);
        let kernel = IDLE;
        let seen = memory.report(at(20), &Looks { kernel, ..NOTHING });
        assert_eq!(seen.kernel, Sign::At(at(0)), "forgotten meanwhile");
    }

    #[test]
    fn a_source_that_went_away_keeps_its_last_sign() {
        let mut memory = Memory::default();
        let kernel = Look::Active;
        memory.report(at(0), &Looks { kernel, ..NOTHING });
        let kernel = Look::Absent;
        let gone = memory.report(at(10), &Looks { kernel, ..NOTHING });
        assert_eq!(gone.kernel, Sign::At(at(0)));
    }

    #[test]
    fn what_a_source_knows_itself_counts_and_is_never_in_the_future() {
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
