//! Decides when a report is due.

use std::time::Duration;

use activity_report::Report;
use jiff::SignedDuration;

use crate::signs::is_active;

/// The longest time between two attempts to send a report.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Whether `report` is due. `last` is the last report that was sent.
///
/// A report is due after `interval`. It is due at once if the workspace is in use and the last
/// report said idle, because the function could otherwise stop the workspace.
pub fn is_due(last: Option<&Report>, report: &Report, interval: Duration) -> bool {
    let Some(last) = last else { return true };
    let age = report.at.duration_since(last.at);
    // After a clock is set back, the age is not known.
    age.is_negative()
        || age >= SignedDuration::try_from(interval).unwrap_or(SignedDuration::MAX)
        || (is_active(report) && !is_active(last))
}

/// The interval of one machine. It is up to a tenth shorter, so that machines that started together
/// do not report together. `chance` is between 0 and 1.
pub fn spread(interval: Duration, chance: f64) -> Duration {
    interval.mul_f64(1.0 - 0.1 * chance.clamp(0.0, 1.0))
}

/// The time before the next attempt after `failures` in a row. It starts at one second, doubles
/// each time up to a minute, and is shortened by up to a half at random. `chance` is a number
/// between 0 and 1.
pub fn wait(failures: u32, chance: f64) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
    let longest = Duration::from_secs(doubled.unwrap_or(u32::MAX).into()).min(LONGEST_WAIT);
    longest.mul_f64(0.5 + 0.5 * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_mins(5);

    fn report(at: &str, ssh: &str) -> Report {
        format!("v1 at=2026-11-22T{at}Z ssh={ssh} job=none gpu=absent kernel=absent")
            .parse()
            .unwrap()
    }

    #[test]
    fn an_unused_workspace_reports_once_in_an_interval() {
        let first = report("10:00:00", "none");
        assert!(is_due(None, &first, INTERVAL));
        let is_due = |at| is_due(Some(&first), &report(at, "none"), INTERVAL);
        assert!(!is_due("10:04:59"));
        assert!(is_due("10:05:00"));
        assert!(is_due("09:00:00"), "the clock was set back");
    }

    #[test]
    fn new_use_is_reported_at_once_and_only_once() {
        let idle = report("10:00:00", "none");
        let used = report("10:00:05", "2026-11-22T10:00:05Z");
        assert!(is_due(Some(&idle), &used, INTERVAL));
        let still = report("10:00:10", "2026-11-22T10:00:10Z");
        assert!(!is_due(Some(&used), &still, INTERVAL));
        let left = report("10:00:15", "2026-11-22T10:00:10Z");
        assert!(!is_due(Some(&used), &left, INTERVAL));
    }

    #[test]
    fn attempts_become_rarer_but_never_stop() {
        let seconds: Vec<u64> = (1..9).map(|n| wait(n, 1.0).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(wait(3, 0.0).as_secs(), 2);
        assert_eq!(wait(u32::MAX, 1.0), LONGEST_WAIT);
    }

    #[test]
    fn machines_that_started_together_do_not_report_together() {
        assert_eq!(spread(INTERVAL, 0.0), INTERVAL);
        assert_eq!(spread(INTERVAL, 1.0), Duration::from_secs(270));
    }
}
