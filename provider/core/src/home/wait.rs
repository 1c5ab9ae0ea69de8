//! What a home waits for, for people.

use std::fmt;

use super::{HomeHold, HomeStep, is_cool_down};
use crate::{ErrorClass, Refusal};

/// Service Quotas' name and code of what a home counts against.
const STORAGE_QUOTA: (&str, &str) = (
    "Storage for General Purpose SSD (gp3) volumes, in TiB",
    "L-7A658B76",
);
/// The same, of its snapshots.
const SNAPSHOT_QUOTA: (&str, &str) = ("Snapshots per Region", "L-309BACF6");

/// What a home waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HomeWait {
    /// For EC2 to make the volume.
    Creating {
        /// Where.
        zone: String,
    },
    /// For EC2 to attach it.
    Attaching {
        /// The volume.
        volume_id: String,
        /// The instance.
        instance_id: String,
    },
    /// For an instance of the pool to end, which has it still.
    Detaching {
        /// The volume.
        volume_id: String,
        /// The instance.
        instance_id: String,
    },
    /// For somebody to take it off an instance that is not the pool's.
    Foreign {
        /// The volume.
        volume_id: String,
        /// The instance.
        instance_id: String,
    },
    /// For the snapshot to be completed.
    Copying {
        /// What is copied.
        volume_id: String,
        /// Where to; none for a copy that stays a snapshot.
        zone: Option<String>,
    },
    /// For a person: it is there no more.
    Lost {
        /// The volume.
        volume_id: String,
    },
    /// For a person: EC2 says that it failed.
    Broken {
        /// The volume.
        volume_id: String,
    },
    /// For an instance in its zone: the one that runs is in another one.
    Elsewhere {
        /// The volume.
        volume_id: String,
        /// Its zone.
        zone: String,
        /// The instance.
        instance_id: String,
    },
    /// For capacity in its zone.
    Capacity {
        /// The volume.
        volume_id: String,
        /// Its zone.
        zone: String,
        /// Whether other zones are tried once no instance has it.
        moves: bool,
    },
    /// For EC2 to take what it refused.
    Refused {
        /// The volume, if there is one.
        volume_id: Option<String>,
        /// What was refused.
        hold: HomeHold,
    },
}

impl fmt::Display for HomeWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Creating { zone } => write!(f, "the home volume is being made in {zone}"),
            Self::Attaching {
                volume_id,
                instance_id,
            } => write!(
                f,
                "the home volume {volume_id} is being attached to {instance_id}"
            ),
            Self::Detaching {
                volume_id,
                instance_id,
            } => write!(
                f,
                "the home volume {volume_id} comes when {instance_id}, which still has it, is gone"
            ),
            Self::Foreign {
                volume_id,
                instance_id,
            } => write!(
                f,
                "the home volume {volume_id} is attached to {instance_id}, which is not the \
                 pool's: detach it there"
            ),
            Self::Copying {
                volume_id,
                zone: Some(zone),
            } => write!(
                f,
                "the home volume {volume_id} moves to {zone} by a snapshot, which takes minutes"
            ),
            Self::Copying {
                volume_id,
                zone: None,
            } => write!(f, "a snapshot is made of the home volume {volume_id}"),
            Self::Lost { volume_id } => write!(
                f,
                "the home volume {volume_id} does not exist any more: somebody deleted it; take \
                 spec.forProvider.home out and put it in again to begin with an empty one"
            ),
            Self::Broken { volume_id } => write!(
                f,
                "EC2 says that the home volume {volume_id} is in the state error: see its events \
                 in EC2"
            ),
            Self::Elsewhere {
                volume_id,
                zone,
                instance_id,
            } => write!(
                f,
                "the home volume {volume_id} is in {zone} and {instance_id} is not: terminate \
                 {instance_id}, or set spec.forProvider.home.moves"
            ),
            Self::Capacity {
                volume_id,
                zone,
                moves: false,
            } => write!(
                f,
                "{zone}, where the home volume {volume_id} is, has no capacity, and other zones \
                 are not tried because spec.forProvider.home.moves (home.moves of the policy) is off"
            ),
            Self::Capacity {
                volume_id,
                zone,
                moves: true,
            } => write!(
                f,
                "{zone}, where the home volume {volume_id} is, has no capacity; other zones are \
                 tried while no instance has the volume"
            ),
            Self::Refused { volume_id, hold } => refused(f, volume_id.as_deref(), hold),
        }
    }
}

fn refused(f: &mut fmt::Formatter<'_>, volume_id: Option<&str>, hold: &HomeHold) -> fmt::Result {
    f.write_str("the home volume ")?;
    if let Some(id) = volume_id {
        write!(f, "{id} ")?;
    }
    let Some(refusal) = &hold.refusal else {
        return write!(f, "is about to {}", hold.step.as_str());
    };
    let Refusal {
        class,
        code,
        message,
    } = refusal;
    write!(f, "cannot {}: {code}", hold.step.as_str())?;
    if !message.is_empty() {
        write!(f, ": {message}")?;
    }
    let (name, quota) = match hold.step {
        HomeStep::Copy => SNAPSHOT_QUOTA,
        _ => STORAGE_QUOTA,
    };
    match class {
        ErrorClass::Quota => write!(f, "; raise the quota {quota} ({name}) in this region"),
        ErrorClass::Denied => f.write_str("; allow it as docs/aws/provider.json does"),
        _ if is_cool_down(refusal) => f.write_str("; it is asked for again until EC2 takes it"),
        _ => Ok(()),
    }
}
