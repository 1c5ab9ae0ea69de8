//! How much one session may do. Nobody is locked out: what is refused is possible a moment later.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests that read: how many a second, and how many at once.
const READS: (u32, u32) = (50, 200);
/// Requests that write.
const WRITES: (u32, u32) = (2, 20);
/// Previews: a form asks for one after each pause in typing.
const PREVIEWS: (u32, u32) = (5, 10);
/// Streams at the same time. A browser has one for all its tabs.
const STREAMS: usize = 8;

/// The limits of one session.
pub(crate) struct Pace {
    reads: DefaultDirectRateLimiter,
    writes: DefaultDirectRateLimiter,
    previews: DefaultDirectRateLimiter,
    streams: Arc<Semaphore>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            reads: limiter(READS),
            writes: limiter(WRITES),
            previews: limiter(PREVIEWS),
            streams: Arc::new(Semaphore::new(STREAMS)),
        }
    }
}

impl Pace {
    /// Takes a request that reads. An error is the time to wait.
    pub(crate) fn read(&self) -> Result<(), Duration> {
        passed(&self.reads)
    }

    /// Takes a request that writes. An error is the time to wait.
    pub(crate) fn write(&self) -> Result<(), Duration> {
        passed(&self.writes)
    }

    /// Takes a preview. An error is the time to wait.
    pub(crate) fn preview(&self) -> Result<(), Duration> {
        passed(&self.previews)
    }

    /// Takes a stream, until the value is dropped.
    pub(crate) fn stream(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.streams).try_acquire_owned().ok()
    }
}

fn limiter((each_second, at_once): (u32, u32)) -> DefaultDirectRateLimiter {
    let each_second = NonZeroU32::new(each_second).unwrap_or(NonZeroU32::MIN);
    let at_once = NonZeroU32::new(at_once).unwrap_or(NonZeroU32::MIN);
    RateLimiter::direct(Quota::per_second(each_second).allow_burst(at_once))
}

fn passed(limiter: &DefaultDirectRateLimiter) -> Result<(), Duration> {
    let checked = limiter.check();
    checked.map_err(|not_until| not_until.wait_time_from(DefaultClock::default().now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_asks_too_often_is_told_how_long_to_wait() {
        let pace = Pace::default();
        let taken = (0..1000).take_while(|_| pace.write().is_ok()).count();
        assert!((20..25).contains(&taken), "{taken}");
        let wait = pace.write().unwrap_err();
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        // Reading is another limit.
        assert!(pace.read().is_ok());
        let taken = (0..10_000).take_while(|_| pace.read().is_ok()).count();
        assert!((199..2000).contains(&taken), "{taken}");
    }

    #[test]
    fn a_session_has_a_few_streams() {
        let pace = Pace::default();
        let mut streams: Vec<_> = (0..STREAMS).map(|_| pace.stream().unwrap()).collect();
        assert!(pace.stream().is_none());
        streams.pop();
        assert!(pace.stream().is_some());
    }
}
