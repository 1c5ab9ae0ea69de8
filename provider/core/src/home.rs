//! A pool's home: the volume whose files outlive its instances.

use jiff::{SignedDuration, Timestamp};

mod hold;
mod taken_back;
mod wait;

pub(crate) use hold::is_cool_down;
pub use hold::{HomeHold, HomeStep};
pub use wait::HomeWait;

/// How long a volume or snapshot that EC2 was asked for may be missing from EC2's lists.
const UNSEEN_LIMIT: SignedDuration = SignedDuration::from_mins(5);
/// The same limit for a deleted pool, which does not ask again.
const UNANSWERED_LIMIT: SignedDuration = SignedDuration::from_mins(2);

/// The desired home of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Its size in GiB. A home only grows.
    pub size_gib: u32,
    /// What happens to the home when the pool is deleted.
    pub on_delete: OnDelete,
    /// Whether the home may move to another zone that has capacity.
    pub moves: bool,
}

/// What happens to a home when its pool is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDelete {
    /// The volume is retained.
    Retain,
    /// The volume is deleted.
    Delete,
    /// The volume is deleted after a snapshot of it was completed.
    Snapshot,
}

/// The part of the pool's status that describes its home. The provider persists all of it before it
/// asks EC2 for a volume or a snapshot: only the same request may be repeated with its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeRecord {
    /// The number of the volume that exists or is to be made. A copy that is only kept as a
    /// snapshot has a number too. No number is used twice.
    pub number: u64,
    /// The zone in which the volume exists or is to be made.
    pub zone: String,
    /// The size that EC2 was asked for.
    pub size_gib: u32,
    /// EC2's id of the volume. `None` until EC2 has made it.
    pub volume_id: Option<String>,
    /// Whether EC2 has shown the volume as usable. EC2 may accept a volume, and take it back before
    /// that.
    pub is_made: bool,
    /// The volume that this one is a copy of. `None` after that volume was deleted.
    pub copy_of: Option<String>,
    /// The snapshot that the copy is made by.
    pub snapshot_id: Option<String>,
    /// When EC2 was last asked for the volume or the snapshot.
    pub asked_at: Option<Timestamp>,
}

impl HomeRecord {
    /// Whether a volume that this one is a copy of, or a snapshot, exists or may exist.
    pub fn is_copy(&self) -> bool {
        self.copy_of.is_some() || self.snapshot_id.is_some()
    }

    /// Where the files of the volume are, too.
    pub fn kept_in(&self) -> Option<&String> {
        self.copy_of.as_ref().or(self.snapshot_id.as_ref())
    }

    /// The volume that EC2 is making for this record, with the id that EC2 answered.
    pub fn begun(&self, id: impl Into<String>, pool_uid: impl Into<String>) -> Volume {
        Volume {
            id: id.into(),
            pool_uid: pool_uid.into(),
            number: self.number,
            copy_of: self.copy_of.clone(),
            zone: self.zone.clone(),
            state: VolumeState::Creating,
            size_gib: self.size_gib,
            attachment: None,
            is_kept: false,
        }
    }

    /// Whether EC2 should list the volume or snapshot by now, if it had made it. A deleted pool
    /// does not ask again, so its limit is shorter.
    pub fn is_overdue(&self, deleted: bool, now: Timestamp) -> bool {
        let limit = if deleted {
            UNANSWERED_LIMIT
        } else {
            UNSEEN_LIMIT
        };
        self.asked_at
            .is_none_or(|at| now.duration_since(at) >= limit)
    }
}

/// A volume with the tags of a pool's home, as EC2 lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// EC2's id.
    pub id: String,
    /// UID of the pool, from its tag.
    pub pool_uid: String,
    /// [`HomeRecord::number`], from its tag.
    pub number: u64,
    /// The volume that this one is a copy of, from its tag.
    pub copy_of: Option<String>,
    /// The zone of the volume.
    pub zone: String,
    /// EC2's state.
    pub state: VolumeState,
    /// The size in GiB.
    pub size_gib: u32,
    /// The instance that has the volume, gets it, or has not let it go yet.
    pub attachment: Option<Attachment>,
    /// Whether its tag says that it outlives its pool.
    pub is_kept: bool,
}

impl Volume {
    /// Whether no instance has the volume, so that it can be attached, copied and deleted.
    pub fn is_free(&self) -> bool {
        self.state == VolumeState::Available && self.attachment.is_none()
    }

    /// Whether EC2 has made the volume.
    pub fn is_made(&self) -> bool {
        self.state != VolumeState::Creating
    }

    /// Whether EC2 is deleting the volume or has deleted it.
    pub fn is_gone(&self) -> bool {
        matches!(self.state, VolumeState::Deleting | VolumeState::Deleted)
    }
}

/// The attachment of a volume to an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// EC2's id of the instance.
    pub instance_id: String,
    /// Whether the instance can use the volume: it is neither being attached nor being detached.
    pub is_attached: bool,
}

/// EC2's volume states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeState {
    /// EC2 is making the volume.
    Creating,
    /// No instance has the volume.
    Available,
    /// Attached, being attached, or being detached.
    InUse,
    /// EC2 is deleting the volume.
    Deleting,
    /// EC2 has deleted the volume.
    Deleted,
    /// The creation of the volume, or its hardware, failed.
    Error,
}

impl VolumeState {
    const ALL: [Self; 6] = [
        Self::Creating,
        Self::Available,
        Self::InUse,
        Self::Deleting,
        Self::Deleted,
        Self::Error,
    ];

    /// EC2's name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Available => "available",
            Self::InUse => "in-use",
            Self::Deleting => "deleting",
            Self::Deleted => "deleted",
            Self::Error => "error",
        }
    }

    /// The state with this name of EC2's, if there is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// A snapshot of a home, as EC2 lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSnapshot {
    /// EC2's id.
    pub id: String,
    /// UID of the pool, from its tag.
    pub pool_uid: String,
    /// The [`HomeRecord::number`] that it was made for, from its tag.
    pub number: u64,
    /// The volume that the snapshot is of.
    pub volume_id: String,
    /// EC2's state of the snapshot.
    pub state: SnapshotState,
}

/// EC2's snapshot states, as far as they differ for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotState {
    /// EC2 has not copied all of the volume yet.
    Pending,
    /// EC2 has copied all of the volume.
    Completed,
    /// The snapshot failed and cannot be used.
    Error,
}

/// The observed state of a home.
#[derive(Clone, Debug, Default)]
pub struct ObservedHome {
    /// The part of the pool's status that describes the home.
    pub record: Option<HomeRecord>,
    /// Whether EC2 did not answer: then `volumes` and `snapshots` say nothing.
    pub is_unseen: bool,
    /// Every volume with the tags of the pool's home.
    pub volumes: Vec<Volume>,
    /// Every snapshot with these tags. They are read only if [`crate::Observed::needs_snapshots`].
    pub snapshots: Vec<VolumeSnapshot>,
    /// The steps that EC2 refused recently.
    pub held: Vec<HomeHold>,
}

impl ObservedHome {
    /// The volume that the status names.
    pub fn volume(&self) -> Option<&Volume> {
        let id = self.record.as_ref()?.volume_id.as_ref()?;
        self.find(id)
    }

    /// The volume with this id, unless EC2 is deleting it or has deleted it.
    pub fn find(&self, id: &str) -> Option<&Volume> {
        let mut volumes = self.volumes.iter();
        volumes.find(|volume| volume.id == id && !volume.is_gone())
    }

    /// The snapshot that the copy is made from. If there are two, the one with the lowest id.
    pub fn snapshot(&self) -> Option<&VolumeSnapshot> {
        let number = self.record.as_ref()?.number;
        let of_copy = self.snapshots.iter().filter(|s| s.number == number);
        of_copy.min_by(|a, b| a.id.cmp(&b.id))
    }

    /// Merges a fresh describe of the pool's volumes. A known volume that `fresh` leaves out is
    /// kept, because a missing volume is not proven gone.
    pub fn learn(&mut self, fresh: Vec<Volume>) {
        for volume in fresh {
            self.volumes.retain(|known| known.id != volume.id);
            self.volumes.push(volume);
        }
    }

    /// Whether the volume that the status names does not exist any more.
    pub fn is_lost(&self) -> bool {
        let id = self.record.as_ref().and_then(|r| r.volume_id.as_ref());
        id.is_some_and(|id| self.find(id).is_none())
    }

    /// Forgets a volume that does not exist any more, so that another one can be made. The number
    /// of the lost volume is not used again.
    pub fn give_up(&mut self) {
        let number = self.next_number();
        if let Some(record) = &mut self.record {
            *record = HomeRecord {
                number,
                zone: record.zone.clone(),
                size_gib: record.size_gib,
                volume_id: None,
                is_made: false,
                copy_of: None,
                snapshot_id: None,
                asked_at: None,
            };
        }
    }

    /// Whether the home is being copied, or its source volumes and snapshots are about to be
    /// deleted. They are deleted only while an instance has the copy.
    pub fn is_changing(&self) -> bool {
        let Some(record) = self.record.as_ref().filter(|record| record.is_copy()) else {
            return false;
        };
        let has_user = |volume: &Volume| volume.attachment.is_some();
        record.volume_id.is_none() || self.volume().is_some_and(has_user)
    }

    /// The hold that forbids a step at `now`, if there is one.
    pub fn hold(&self, step: HomeStep, now: Timestamp) -> Option<&HomeHold> {
        let mut held = self.held.iter();
        held.find(|hold| hold.step == step && hold.until > now)
    }

    /// A number that no volume and no snapshot of the home has had.
    pub(crate) fn next_number(&self) -> u64 {
        let volumes = self.volumes.iter().map(|volume| volume.number);
        let snapshots = self.snapshots.iter().map(|snapshot| snapshot.number);
        let known = self.record.iter().map(|record| record.number);
        volumes.chain(snapshots).chain(known).max().unwrap_or(0) + 1
    }

    /// Learns from EC2's lists what the status lacks: the id of a volume whose answer was lost, and
    /// the record if the status itself was lost.
    pub(crate) fn settle(&mut self) {
        let is_made = self.volume().is_some_and(Volume::is_made);
        let volumes = self.volumes.iter().filter(|volume| !volume.is_gone());
        if let Some(record) = &mut self.record {
            record.is_made |= is_made;
            if record.volume_id.is_none() {
                let mut volumes = volumes;
                let own = volumes.find(|volume| volume.number == record.number);
                record.volume_id = own.map(|volume| volume.id.clone());
            } else {
                let snapshots = self.snapshots.iter().map(|snapshot| snapshot.number);
                let used = volumes.map(|volume| volume.number).chain(snapshots);
                record.number = used.fold(record.number, u64::max);
                // EC2 may refuse to delete one of several snapshots. The provider lists the snapshots
                // of a home only while the status names one. So the status names one until EC2 has
                // deleted all of them.
                let newest = self.snapshots.iter().max_by_key(|snapshot| snapshot.number);
                let left = || newest.map(|snapshot| snapshot.id.clone());
                record.snapshot_id = record.snapshot_id.take().or_else(left);
            }
            return;
        }
        // The volume that an instance has is newer than any copy of it.
        let newest = volumes.max_by_key(|volume| (volume.attachment.is_some(), volume.number));
        let highest = self.next_number() - 1;
        self.record = newest.map(|volume| HomeRecord {
            number: highest,
            zone: volume.zone.clone(),
            size_gib: volume.size_gib,
            volume_id: Some(volume.id.clone()),
            is_made: volume.is_made(),
            copy_of: volume
                .copy_of
                .clone()
                .filter(|source| self.find(source).is_some()),
            snapshot_id: None,
            asked_at: None,
        });
    }
}
