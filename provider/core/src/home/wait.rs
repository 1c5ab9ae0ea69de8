//! The reasons why a home waits, with their messages for users.

use std::fmt;

use super::{HomeHold, HomeStep, is_cool_down};
use crate::{ErrorClass, Refusal};

/// Name and code in Service Quotas of the quota that a home counts against.
const STORAGE_QUOTA: (&str, &str) = (
    "Storage for General Purpose SSD (gp3) volumes, in TiB",
    "L-7A658B76",
);
/// Name and code in Service Quotas of the quota that snapshots of homes count against.
const SNAPSHOT_QUOTA: (&str, &str) = ("Snapshots per Region", "L-309BACF6");

/// The reason why a home waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HomeWait {
    /// EC2 has to make the volume.
    Creating {
        /// The zone of the volume.
        zone: String,
    },
    /// EC2 has to attach the volume.
    Attaching {
        /// EC2's id of the volume.
        volume_id: String,
        /// EC2's id of the instance.
        instance_id: String,
    },
    /// An instance of the pool still has the volume, and has to end first.
    Detaching {
        /// EC2's id of the volume.
        volume_id: String,
        /// EC2's id of the instance.
        instance_id: String,
    },
    /// A person has to detach the volume from an instance that is not the pool's.
    Foreign {
        /// EC2's id of the volume.
        volume_id: String,
        /// EC2's id of the instance.
        instance_id: String,
    },
    /// EC2 has to complete the snapshot.
    Copying {
        /// EC2's id of the volume that is copied.
        volume_id: String,
        /// The zone that the home moves to. `None` for a copy that stays a snapshot.
        zone: Option<String>,
    },
    /// A person has to act: the volume does not exist any more.
    Lost {
        /// EC2's id of the volume.
        volume_id: String,
        /// The volume or the snapshot that has the files, too.
        kept_in: Option<String>,
    },
    /// A person has to act: EC2 reports the volume's state as `error`.
    Broken {
        /// EC2's id of the volume.
        volume_id: String,
    },
    /// The volume needs an instance in its zone: the running one is in another zone.
    Elsewhere {
        /// EC2's id of the volume.
        volume_id: String,
        /// The zone of the volume.
        zone: String,
        /// EC2's id of the instance.
        instance_id: String,
    },
    /// The zone of the volume has to get capacity.
    Capacity {
        /// EC2's id of the volume.
        volume_id: String,
        /// The zone of the volume.
        zone: String,
        /// Whether the planner tries other zones once no instance has the volume.
        moves: bool,
    },
    /// EC2 refused a step, or does not show its effect yet.
    Refused {
        /// EC2's id of the volume, if there is one.
        volume_id: Option<String>,
        /// The step, and when it is tried again.
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
            Self::Lost {
                volume_id,
                kept_in: None,
            } => write!(
                f,
                "the home volume {volume_id} does not exist any more: somebody deleted it; take \
                 spec.forProvider.home out and put it in again to begin with an empty one"
            ),
            Self::Lost {
                volume_id,
                kept_in: Some(id),
            } => write!(
                f,
                "the home volume {volume_id} does not exist any more: somebody deleted it; its files \
                 are in {id} as well: save them before you take spec.forProvider.home out"
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
