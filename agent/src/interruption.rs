//! Announced interruptions of spot instances.

use std::thread;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::imds::{Imds, InstanceAction};
use crate::log::Log;

/// AWS recommends to check every five seconds ("Spot Instance interruption notices").
const INTERVAL: Duration = Duration::from_secs(5);
/// Time before the interruption that is reserved for everything except hooks.
const RESERVE: SignedDuration = SignedDuration::from_secs(3);

/// Waits until an interruption is announced.
pub fn notice(imds: &Imds, log: &Log) -> InstanceAction {
    loop {
        match imds.instance_action() {
            Ok(Some(action)) => return action,
            Ok(None) => {
                log.fine("interruption");
            }
            Err(problem) => {
                log.problem("interruption", &problem.kind, &problem.text);
            }
        }
        thread::sleep(INTERVAL);
    }
}

/// Longest time for hooks before an interruption: `longest`, or the remaining time if it is
/// shorter.
pub fn patience(longest: Duration, at: Timestamp, now: Timestamp) -> Duration {
    let left = at.duration_since(now) - RESERVE;
    let left = Duration::try_from(left).unwrap_or_default();
    left.clamp(Duration::from_secs(1), longest.max(Duration::from_secs(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_has_the_time_that_is_left() {
        let at = "2026-11-22T10:02:00Z".parse().unwrap();
        let longest = Duration::from_secs(110);
        let patience = |now: &str| patience(longest, at, now.parse().unwrap()).as_secs();
        assert_eq!(patience("2026-11-22T10:00:00Z"), 110);
        assert_eq!(patience("2026-11-22T10:01:00Z"), 57);
        assert_eq!(patience("2026-11-22T10:05:00Z"), 1);
    }
}
