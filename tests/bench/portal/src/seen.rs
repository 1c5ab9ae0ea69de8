//! What one browser has seen.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::latency::State;

/// The time since the start of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Duration {
        self.0.elapsed()
    }

    /// The time since a moment.
    pub(crate) fn since(self, moment: Duration) -> Duration {
        self.now().saturating_sub(moment)
    }
}

/// The numbers of the claims that change, by namespace and name.
pub(crate) type Numbers = HashMap<(String, String), usize>;

/// What a browser has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Each state of a claim that came by a stream, in the order of time.
    pub(crate) states: Vec<State>,
    /// The version of each claim that the page shows.
    pub(crate) shown: HashMap<usize, u64>,
    /// When the stream that is open now began; none without one.
    pub(crate) live: Option<Duration>,
    /// Requests that were sent.
    pub(crate) requests: u32,
    /// How often the portal said `reset`.
    pub(crate) resets: u32,
    /// The portal said that the session is over.
    pub(crate) is_over: bool,
}

/// The same, for the browser and for who watches it.
#[derive(Debug, Default)]
pub(crate) struct Shared(Mutex<Seen>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Seen> {
        // What a browser has seen stays true if another thread fails.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
