//! The requests that a pool does not repeat yet.

use jiff::Timestamp;
use provider_core::HomeHold;

/// The requests that a pool does not repeat for some time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds {
    /// The pool launches nothing before this time.
    pub(crate) launches_until: Option<Timestamp>,
    /// The steps of the home that wait.
    pub(crate) home: Vec<HomeHold>,
}
