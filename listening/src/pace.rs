//! Bounds how often a kind of line is logged. Clients decide how often they are refused, so without
//! a bound they would fill the log.

use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The largest number of lines in a period.
const LINES: u32 = 10;
/// The length of a period.
const PERIOD: Duration = Duration::from_secs(10);

/// The lines of one kind.
#[derive(Debug, Default)]
pub struct Pace(Mutex<Period>);

#[derive(Debug, Default)]
struct Period {
    began: Option<Instant>,
    lines: u32,
    unlogged: u64,
}

impl Pace {
    /// Whether a line may be logged now. If it may, the number of lines since the last one that were
    /// not logged.
    pub fn line(&self, now: Instant) -> Option<u64> {
        let mut period = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |began| now.duration_since(began) >= PERIOD;
        if period.began.is_none_or(is_over) {
            period.began = Some(now);
            period.lines = 0;
        }
        if period.lines == LINES {
            period.unlogged += 1;
            return None;
        }
        period.lines += 1;
        Some(mem::take(&mut period.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_refused_often_does_not_fill_the_log() {
        let pace = Pace::default();
        let began = Instant::now();
        let logged = (0..1000).filter_map(|_| pace.line(began)).count();
        assert_eq!(logged, 10);
        let later = began + PERIOD;
        assert_eq!(pace.line(later), Some(990));
        assert_eq!(pace.line(later), Some(0));
    }
}
