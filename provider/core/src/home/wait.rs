//! The reasons why a home waits, with their messages for users.

use std::fmt;

use super::{HomeHold, is_cool_down};
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
    match class {
        ErrorClass::Quota => f.write_str(&limit_to_raise(code)),
        ErrorClass::Denied => f.write_str("; allow it as docs/aws/provider.json does"),
        _ if is_cool_down(refusal) => f.write_str("; it is asked for again until EC2 takes it"),
        _ => Ok(()),
    }
}

/// What a person has to do about a limit of volumes and snapshots, by EC2's code.
fn limit_to_raise(code: &str) -> String {
    let (name, quota) = match code {
        "SnapshotLimitExceeded" => SNAPSHOT_QUOTA,
        "VolumeLimitExceeded" => STORAGE_QUOTA,
        "ConcurrentSnapshotLimitExceeded" => {
            return "; it is asked for again when EC2 has made the other snapshots of the volume"
                .to_owned();
        }
        _ => return "; raise this limit in Service Quotas".to_owned(),
    };
    format!("; raise the quota {quota} ({name}) in this region")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::HomeStep;
    use super::*;

    /// The advice to begin with an empty home would cost the files.
    #[test]
    fn nobody_is_told_to_begin_empty_while_the_files_are_elsewhere() {
        let lost = |kept_in: Option<&str>| {
            let wait = HomeWait::Lost {
                volume_id: "vol-1".to_owned(),
                kept_in: kept_in.map(str::to_owned),
            };
            wait.to_string()
        };
        let advice = "to begin with an empty one";
        assert!(lost(None).contains(advice));
        for id in ["vol-0", "snap-0"] {
            let said = lost(Some(id));
            assert!(said.contains(id) && !said.contains(advice), "{said}");
        }
    }

    #[test]
    fn each_limit_of_volumes_names_its_own_quota() {
        for (code, named) in [
            ("VolumeLimitExceeded", "L-7A658B76"),
            ("SnapshotLimitExceeded", "L-309BACF6"),
            ("ConcurrentSnapshotLimitExceeded", "the other snapshots"),
            ("VolumeIOPSLimit", "Service Quotas"),
        ] {
            let hold = HomeHold {
                step: HomeStep::Copy,
                until: Timestamp::UNIX_EPOCH,
                refusal: Some(Refusal::of(code, "")),
            };
            let wait = HomeWait::Refused {
                volume_id: Some("vol-1".to_owned()),
                hold,
            };
            assert!(wait.to_string().contains(named), "{wait}");
        }
    }
}
