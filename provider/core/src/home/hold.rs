//! The steps on a home, and those that EC2 refused.

use jiff::{SignedDuration, Timestamp};

use crate::{ErrorClass, Refusal};

/// A step that EC2 refused or does not show yet. The planner does not repeat it before `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeHold {
    /// The step that waits.
    pub step: HomeStep,
    /// The time from which the step may be tried again.
    pub until: Timestamp,
    /// EC2's refusal. `None` if EC2 accepted the step.
    pub refusal: Option<Refusal>,
}

/// One step on a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeStep {
    /// Create the volume.
    Create,
    /// Make a snapshot of the volume.
    Copy,
    /// Attach the volume.
    Attach,
    /// Make the volume larger.
    Grow,
    /// Delete a volume.
    Delete,
    /// Delete a snapshot.
    DeleteSnapshot,
    /// Tag the volume as one that outlives its pool.
    Keep,
}

impl HomeStep {
    /// The step as the end of the message "the home volume cannot …".
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "be made",
            Self::Copy => "be copied by a snapshot",
            Self::Attach => "be attached",
            Self::Grow => "grow",
            Self::Delete => "be deleted",
            Self::DeleteSnapshot => "be rid of its snapshot",
            Self::Keep => "be tagged",
        }
    }
}

impl HomeHold {
    /// How long the planner waits before it tries a refused step again.
    pub fn rest(refusal: &Refusal) -> SignedDuration {
        match refusal.class {
            // AWS's "ModifyVolume": EC2 allows four modifications in 24 hours, each one after the
            // last one is completed.
            _ if is_cool_down(refusal) => SignedDuration::from_mins(30),
            ErrorClass::Quota => SignedDuration::from_mins(15),
            ErrorClass::Capacity => SignedDuration::from_mins(3),
            ErrorClass::Denied | ErrorClass::Configuration => SignedDuration::from_mins(5),
            ErrorClass::Throttled => SignedDuration::from_secs(10),
            ErrorClass::Transient => SignedDuration::from_secs(5),
        }
    }
}

/// Whether EC2 refused a change because the volume was changed too recently.
pub(crate) fn is_cool_down(refusal: &Refusal) -> bool {
    matches!(
        refusal.code.as_str(),
        "VolumeModificationRateExceeded" | "IncorrectModificationState"
    )
}
