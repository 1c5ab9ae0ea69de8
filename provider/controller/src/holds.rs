//! The requests that a pool does not repeat yet.

use jiff::Timestamp;
use provider_core::HomeHold;

/// The requests that a pool does not repeat for some time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds {
    /// The pool launches nothing before this time.
    pub(crate) launches_until: Option<Timestamp>,
    /// How many launches in a row failed for a reason that another offering does not cure.
    pub(crate) launch_failures: u32,
    /// The steps of the home that wait.
    pub(crate) home: Vec<HomeHold>,
    /// Since when EC2 does not tell all that the provider needs to judge the pool.
    pub(crate) unjudged_since: Option<Timestamp>,
}

impl Holds {
    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        self.launches_until.is_none()
            && self.launch_failures == 0
            && self.home.is_empty()
            && self.unjudged_since.is_none()
    }
}
