//! What a pool does not ask EC2 for again yet.

use jiff::Timestamp;
use provider_core::HomeHold;

/// What is not asked for again for a while.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds {
    /// No launch before this.
    pub(crate) launches_until: Option<Timestamp>,
    /// Steps of the home.
    pub(crate) home: Vec<HomeHold>,
}
