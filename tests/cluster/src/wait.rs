//! Waits for a condition until a deadline. The error says what was seen last.

use std::time::{Duration, Instant};

use crate::interrupt;

/// The condition was not fulfilled in time.
#[derive(Debug, thiserror::Error)]
#[error("waited {seconds} s for {what}; last seen: {observed}")]
pub struct Error {
    /// The condition.
    pub what: String,
    /// The time limit, in seconds.
    pub seconds: u64,
    /// What was seen last.
    pub observed: String,
}

/// The moment at which waiting ends.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
    patience: Duration,
}

impl Deadline {
    /// A deadline after `patience` from now.
    pub fn after(patience: Duration) -> Self {
        Self {
            at: Instant::now() + patience,
            patience,
        }
    }

    /// Whether the deadline has passed, or Ctrl-C asked this process to end.
    pub fn passed(self) -> bool {
        Instant::now() >= self.at || interrupt::requested()
    }

    /// The error for a condition `what` that was not fulfilled. `observed` says what was seen last.
    pub fn missed(self, what: &str, observed: String) -> Error {
        Error {
            what: what.to_owned(),
            seconds: self.patience.as_secs(),
            observed,
        }
    }
}

/// Calls `look` every `interval` until it returns `Ok`. Its error says what it saw instead.
pub fn until<T>(
    what: &str,
    deadline: Deadline,
    interval: Duration,
    mut look: impl FnMut() -> Result<T, String>,
) -> Result<T, Error> {
    loop {
        match look() {
            Ok(value) => return Ok(value),
            Err(observed) if deadline.passed() => return Err(deadline.missed(what, observed)),
            Err(_) => std::thread::sleep(interval),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_says_what_was_awaited_and_what_was_seen_last() {
        let mut looks = 0;
        let deadline = Deadline::after(Duration::from_millis(20));
        let error = until("the moon", deadline, Duration::from_millis(1), || {
            looks += 1;
            Err::<(), _>(format!("look {looks}"))
        })
        .unwrap_err();
        assert!(looks > 1);
        assert_eq!(error.what, "the moon");
        assert_eq!(error.observed, format!("look {looks}"));
    }

    #[test]
    fn a_condition_that_holds_is_not_waited_for() {
        let deadline = Deadline::after(Duration::ZERO);
        let value = until("nothing", deadline, Duration::from_mins(1), || Ok(7)).unwrap();
        assert_eq!(value, 7);
    }
}
