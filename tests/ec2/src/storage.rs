//! EBS volumes and snapshots, as AWS documents them. A volume stays in a state for some time, is
//! attached to one instance at a time, and has a content.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use provider_aws::{Ec2Error, SnapshotRequest, TagKeys, Tags, VolumeRequest};
use provider_core::{
    Attachment, InstanceState, SnapshotState, Volume, VolumeSnapshot, VolumeState,
};

use crate::{Cloud, Machine, error};

/// What EC2 says about the token of a volume that was deleted: crossplane-contrib/provider-aws#1858.
const DELETED: &str = "The client token you have provided is associated with a resource that is \
                       already deleted. Please use a different client token.";

/// The time from the creation of a volume until it is available.
const CREATES: SignedDuration = SignedDuration::from_secs(4);
/// The time from the call to attach a volume until the volume is attached.
const ATTACHES: SignedDuration = SignedDuration::from_secs(3);
/// The time from the start of a snapshot until it is completed.
const COPIES: SignedDuration = SignedDuration::from_secs(90);
/// The shortest time between two changes of a volume. EC2 allows four changes within 24 hours
/// (`ModifyVolume`); the simulations meet the refusal sooner.
const COOLS_DOWN: SignedDuration = SignedDuration::from_hours(6);

/// The volumes and snapshots of a region. This does not include the root volumes of instances,
/// which EC2 creates and deletes together with the instance.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    /// All volumes, also deleted ones, oldest first.
    pub disks: Vec<Disk>,
    /// All snapshots, also deleted ones, oldest first.
    pub copies: Vec<Copy>,
    by_token: BTreeMap<String, (VolumeRequest, usize)>,
}

/// The actual state of a volume. EC2's lists may not show it yet.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Its id.
    pub id: String,
    /// Its present tags.
    pub tags: Tags,
    /// Its zone.
    pub zone: String,
    /// Its size in GiB.
    pub size_gib: u32,
    /// The time of its creation.
    pub born: Timestamp,
    /// The time from which lists show it.
    pub listed_from: Timestamp,
    /// The instance to which it is attached, and the time of the call to attach it.
    pub user: Option<(String, Timestamp)>,
    /// The last time at which it became larger.
    pub grown_at: Option<Timestamp>,
    /// The time of its deletion, if it has been deleted.
    pub deleted_at: Option<Timestamp>,
    /// Its content: the id of each instance to which this volume, or the source of its snapshot,
    /// was attached, oldest first.
    pub content: Vec<String>,
}

/// The actual state of a snapshot. EC2's lists may not show it yet.
#[derive(Clone, Debug)]
pub struct Copy {
    /// Its id.
    pub id: String,
    /// Its tags.
    pub tags: Tags,
    /// The volume of which it is a snapshot.
    pub volume_id: String,
    /// The time of its start.
    pub begun: Timestamp,
    /// The time from which lists show it.
    pub listed_from: Timestamp,
    /// The time of its deletion, if it has been deleted.
    pub deleted_at: Option<Timestamp>,
    /// The content of the volume at the start of the snapshot.
    pub content: Vec<String>,
}

impl Disk {
    /// Whether it has not been deleted.
    pub fn is_live(&self) -> bool {
        self.deleted_at.is_none()
    }

    fn state(&self, now: Timestamp) -> VolumeState {
        if !self.is_live() {
            VolumeState::Deleted
        } else if self.user.is_some() {
            VolumeState::InUse
        } else if now.duration_since(self.born) < CREATES {
            VolumeState::Creating
        } else {
            VolumeState::Available
        }
    }

    /// The volume as the crate `provider-aws` reads it; `None` if it lacks the tags of a home.
    pub fn read(&self, keys: &TagKeys, now: Timestamp) -> Option<Volume> {
        let attachment = self.user.as_ref().map(|(instance_id, since)| Attachment {
            instance_id: instance_id.clone(),
            is_attached: now.duration_since(*since) >= ATTACHES,
        });
        Some(Volume {
            id: self.id.clone(),
            pool_uid: self.tags.get(keys.pool_uid)?.clone(),
            number: self.tags.get(keys.home)?.parse().ok()?,
            copy_of: self.tags.get(keys.home_copy_of).cloned(),
            zone: self.zone.clone(),
            state: self.state(now),
            size_gib: self.size_gib,
            attachment,
            is_kept: self.tags.contains_key(keys.home_kept),
        })
    }
}

impl Copy {
    /// Whether it has not been deleted.
    pub fn is_live(&self) -> bool {
        self.deleted_at.is_none()
    }

    /// Whether EC2 has copied the whole volume.
    pub fn is_completed(&self, now: Timestamp) -> bool {
        now.duration_since(self.begun) >= COPIES
    }

    /// The snapshot as the crate `provider-aws` reads it; `None` if it lacks the tags of a home.
    pub fn read(&self, keys: &TagKeys, now: Timestamp) -> Option<VolumeSnapshot> {
        Some(VolumeSnapshot {
            id: self.id.clone(),
            pool_uid: self.tags.get(keys.pool_uid)?.clone(),
            number: self.tags.get(keys.home)?.parse().ok()?,
            volume_id: self.volume_id.clone(),
            state: if self.is_completed(now) {
                SnapshotState::Completed
            } else {
                SnapshotState::Pending
            },
        })
    }
}

impl Storage {
    /// The volume with this id, unless it has been deleted.
    pub fn find(&mut self, id: &str) -> Option<&mut Disk> {
        self.disks.iter_mut().find(|d| d.id == id && d.is_live())
    }
}

impl Cloud {
    /// `CreateVolume`. Returns the index of the volume, and whether it is new.
    pub fn create_volume(
        &mut self,
        request: &VolumeRequest,
        now: Timestamp,
    ) -> Result<(usize, bool), Ec2Error> {
        const OPERATION: &str = "CreateVolume";
        if let Some((earlier, index)) = self.storage.by_token.get(&request.token) {
            // A token whose volume is gone is spent: kubernetes-sigs/aws-ebs-csi-driver#3010.
            let mismatch = error(OPERATION, "IdempotentParameterMismatch");
            if !self.storage.disks[*index].is_live() {
                return Err(Ec2Error {
                    message: DELETED.to_owned(),
                    ..mismatch
                });
            }
            return if earlier == request {
                Ok((*index, false))
            } else {
                Err(mismatch)
            };
        }
        let mut content = Vec::new();
        if let Some(id) = &request.snapshot_id {
            let mut copies = self.storage.copies.iter();
            let Some(copy) = copies.find(|c| c.id == *id && c.is_live()) else {
                return Err(error(OPERATION, "InvalidSnapshot.NotFound"));
            };
            if !copy.is_completed(now) {
                return Err(error(OPERATION, "IncorrectState"));
            }
            content.clone_from(&copy.content);
        }
        let index = self.storage.disks.len();
        self.storage.disks.push(Disk {
            id: format!("vol-{index}"),
            tags: request.tags.clone(),
            zone: request.zone.clone(),
            size_gib: request.size_gib,
            born: now,
            listed_from: later(now, self.pace.lists_volume),
            user: None,
            grown_at: None,
            deleted_at: None,
            content,
        });
        let token = request.token.clone();
        let by_token = &mut self.storage.by_token;
        by_token.insert(token, (request.clone(), index));
        Ok((index, true))
    }

    /// `AttachVolume`. The instance writes to the volume at once.
    pub fn attach_volume(
        &mut self,
        volume_id: &str,
        instance_id: &str,
        now: Timestamp,
    ) -> Result<(), Ec2Error> {
        const OPERATION: &str = "AttachVolume";
        let Some(machine) = self.find(instance_id) else {
            return Err(error(OPERATION, "InvalidInstanceID.NotFound"));
        };
        let (state, zone) = (machine.state(now), machine.offering.zone.clone());
        let usable = [InstanceState::Running, InstanceState::Stopped];
        if !usable.contains(&state) {
            return Err(error(OPERATION, "IncorrectState"));
        }
        let Some(disk) = self.storage.find(volume_id) else {
            return Err(error(OPERATION, "InvalidVolume.NotFound"));
        };
        if disk.zone != zone {
            return Err(error(OPERATION, "InvalidVolume.ZoneMismatch"));
        }
        match disk.state(now) {
            VolumeState::Available => {}
            VolumeState::InUse => return Err(error(OPERATION, "VolumeInUse")),
            _ => return Err(error(OPERATION, "IncorrectState")),
        }
        disk.user = Some((instance_id.to_owned(), now));
        disk.content.push(instance_id.to_owned());
        Ok(())
    }

    /// `ModifyVolume` with a new size.
    pub fn grow_volume(&mut self, id: &str, size: u32, now: Timestamp) -> Result<(), Ec2Error> {
        const OPERATION: &str = "ModifyVolume";
        let Some(disk) = self.storage.find(id) else {
            return Err(error(OPERATION, "InvalidVolume.NotFound"));
        };
        if size < disk.size_gib {
            return Err(error(OPERATION, "InvalidParameterValue"));
        }
        let cools = |at: Timestamp| now.duration_since(at) < COOLS_DOWN;
        if disk.grown_at.is_some_and(cools) {
            return Err(error(OPERATION, "VolumeModificationRateExceeded"));
        }
        disk.size_gib = size;
        disk.grown_at = Some(now);
        Ok(())
    }

    /// `DeleteVolume`.
    pub fn delete_volume(&mut self, id: &str, now: Timestamp) -> Result<(), Ec2Error> {
        const OPERATION: &str = "DeleteVolume";
        let Some(disk) = self.storage.find(id) else {
            return Err(error(OPERATION, "InvalidVolume.NotFound"));
        };
        match disk.state(now) {
            VolumeState::Available => {
                disk.deleted_at = Some(now);
                Ok(())
            }
            VolumeState::InUse => Err(error(OPERATION, "VolumeInUse")),
            _ => Err(error(OPERATION, "IncorrectState")),
        }
    }

    /// `CreateSnapshot`. Returns the index of the snapshot, which is always new: the operation has
    /// no client token.
    pub fn create_snapshot(
        &mut self,
        request: &SnapshotRequest,
        now: Timestamp,
    ) -> Result<usize, Ec2Error> {
        let Some(disk) = self.storage.find(&request.volume_id) else {
            return Err(error("CreateSnapshot", "InvalidVolume.NotFound"));
        };
        let content = disk.content.clone();
        let index = self.storage.copies.len();
        self.storage.copies.push(Copy {
            id: format!("snap-{index}"),
            tags: request.tags.clone(),
            volume_id: request.volume_id.clone(),
            begun: now,
            listed_from: later(now, self.pace.lists_volume),
            deleted_at: None,
            content,
        });
        Ok(index)
    }

    /// `DeleteSnapshot`.
    pub fn delete_snapshot(&mut self, id: &str, now: Timestamp) -> Result<(), Ec2Error> {
        let mut copies = self.storage.copies.iter_mut();
        match copies.find(|c| c.id == id && c.is_live()) {
            Some(copy) => {
                copy.deleted_at = Some(now);
                Ok(())
            }
            None => Err(error("DeleteSnapshot", "InvalidSnapshot.NotFound")),
        }
    }

    /// Detaches volumes from terminated instances.
    pub(crate) fn detach(&mut self, now: Timestamp) {
        let machines = &self.machines;
        let is_gone = |id: &String| {
            let is_it = |m: &&Machine| m.id == *id;
            let machine = machines.iter().find(is_it);
            machine.is_none_or(|m| m.state(now) == InstanceState::Terminated)
        };
        for disk in &mut self.storage.disks {
            disk.user.take_if(|(id, _)| is_gone(id));
        }
    }
}

fn later(now: Timestamp, duration: SignedDuration) -> Timestamp {
    now.saturating_add(duration).unwrap_or(Timestamp::MAX)
}
