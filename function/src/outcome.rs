//! Why a workspace is not resolved.

use std::fmt;

use crate::hold::Hold;
use crate::refusal::Refusal;

/// Why there is no desired compute.
#[derive(Clone, Debug)]
pub enum Unresolved {
    /// The function does not know enough: what exists stays as it is.
    Held(Hold),
    /// A person has to change something: nothing is applied.
    Refused(Refusal),
}

impl Unresolved {
    /// The condition's reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Held(why) => why.reason(),
            Self::Refused(why) => why.reason(),
        }
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(why) => why.fmt(f),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

impl From<Hold> for Unresolved {
    fn from(hold: Hold) -> Self {
        Self::Held(hold)
    }
}

impl From<Refusal> for Unresolved {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
