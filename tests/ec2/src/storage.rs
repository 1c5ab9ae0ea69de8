//! EBS volumes and snapshots, as AWS documents them: states that take their time, one
//! instance at a time, and contents.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use provider_aws::{Ec2Error, SnapshotRequest, TagKeys, Tags, VolumeRequest};
use provider_core::{
    Attachment, InstanceState, SnapshotState, Volume, VolumeSnapshot, VolumeState,
};

use crate::{Cloud, Machine, error};

/// From creating to available.
const CREATES: SignedDuration = SignedDuration::from_secs(4);
/// From attaching to attached.
const ATTACHES: SignedDuration = SignedDuration::from_secs(3);
/// From pending to completed.
const COPIES: SignedDuration = SignedDuration::from_secs(90);
/// Between two changes of a volume ("Request Amazon EBS volume modifications").
const COOLS_DOWN: SignedDuration = SignedDuration::from_hours(6);

/// The volumes and snapshots of a region. The disks that instances boot are not among
/// them: they come and go with their instances.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    /// Every volume that ever was, oldest first.
    pub disks: Vec<Disk>,
    /// Every snapshot that ever was, oldest first.
    pub copies: Vec<Copy>,
    by_token: BTreeMap<String, (VolumeRequest, usize)>,
}

/// A volume as it is, whoever sees it.
#[derive(Clone, Debug)]
pub struct Disk {
    /// EC2's id.
    pub id: String,
    /// Its tags at present.
    pub tags: Tags,
    /// Its zone.
    pub zone: String,
    /// Its size.
    pub size_gib: u32,
    /// When it was made.
    pub born: Timestamp,
    /// Lists leave it out before.
    pub listed_from: Timestamp,
    /// The instance that has it, and since when.
    pub user: Option<(String, Timestamp)>,
    /// When it became larger.
    pub grown_at: Option<Timestamp>,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
    /// What is in it: a line of each instance that ever had it, oldest first.
    pub content: Vec<String>,
}

/// A snapshot as it is.
#[derive(Clone, Debug)]
pub struct Copy {
    /// EC2's id.
    pub id: String,
    /// Its tags.
    pub tags: Tags,
    /// What it is of.
    pub volume_id: String,
    /// When it was begun.
    pub begun: Timestamp,
    /// Lists leave it out before.
    pub listed_from: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
    /// What was in the volume when it was begun.
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

    /// As provider-aws reads it: only with the tags of a home.
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

    /// Whether everything is in it.
    pub fn is_completed(&self, now: Timestamp) -> bool {
        now.duration_since(self.begun) >= COPIES
    }

    /// As provider-aws reads it.
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
    /// The volume with that id.
    pub fn find(&mut self, id: &str) -> Option<&mut Disk> {
        self.disks.iter_mut().find(|d| d.id == id && d.is_live())
    }
}

impl Cloud {
    /// `CreateVolume`. Answers which one it is, and whether it is new.
    pub fn create_volume(
        &mut self,
        request: &VolumeRequest,
        now: Timestamp,
    ) -> Result<(usize, bool), Ec2Error> {
        const OPERATION: &str = "CreateVolume";
        if let Some((earlier, index)) = self.storage.by_token.get(&request.token) {
            return if earlier == request {
                Ok((*index, false))
            } else {
                Err(error(OPERATION, "IdempotentParameterMismatch"))
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

    /// `AttachVolume`: the instance writes at once.
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

    /// `ModifyVolume`, of the size.
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

    /// `CreateSnapshot`, which EC2 has no token for. Answers which one it is.
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

    /// Volumes come off instances that are gone.
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
