//! A pool's home: the volume whose files outlive its instances.

use jiff::{SignedDuration, Timestamp};

use crate::{ErrorClass, Refusal};

mod wait;

pub use wait::HomeWait;

/// How long EC2 may leave what it was asked for out of its lists.
const UNSEEN_LIMIT: SignedDuration = SignedDuration::from_mins(5);
/// The same, for a pool that asks for nothing any more.
const UNANSWERED_LIMIT: SignedDuration = SignedDuration::from_mins(2);

/// What a pool's home should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Its size. It only grows.
    pub size_gib: u32,
    /// What becomes of it when the pool is deleted.
    pub on_delete: OnDelete,
    /// Whether it follows capacity to another zone.
    pub moves: bool,
}

/// What becomes of a home when its pool is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDelete {
    /// It stays.
    Retain,
    /// It is deleted.
    Delete,
    /// It is deleted after a snapshot of it was completed.
    Snapshot,
}

/// What the pool's status holds of its home. It is persisted before EC2 is asked for a
/// volume or a snapshot, whole: only the same request may be repeated with its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeRecord {
    /// The number of the volume that is, or is to be made. A copy that is only kept as a
    /// snapshot has one, too. None is used twice.
    pub number: u64,
    /// The zone that the volume is in, or is to be made in.
    pub zone: String,
    /// The size that it was asked for.
    pub size_gib: u32,
    /// EC2's id of the volume, once there is one.
    pub volume_id: Option<String>,
    /// The volume that it is a copy of, until that one is deleted.
    pub copy_of: Option<String>,
    /// The snapshot that the copy is made by.
    pub snapshot_id: Option<String>,
    /// When EC2 was last asked for the volume or the snapshot.
    pub asked_at: Option<Timestamp>,
}

impl HomeRecord {
    /// Whether there is, or may be, a volume that it is a copy of, or a snapshot.
    pub fn is_copy(&self) -> bool {
        self.copy_of.is_some() || self.snapshot_id.is_some()
    }

    /// The volume that EC2 is making of it, under an id.
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

    /// Whether EC2 should list by now what it was asked for, if it had made it. A
    /// deleted pool asks no more.
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
    /// The volume that it is a copy of, from its tag.
    pub copy_of: Option<String>,
    /// Its zone.
    pub zone: String,
    /// EC2's state.
    pub state: VolumeState,
    /// Its size.
    pub size_gib: u32,
    /// The instance that has it, or still has it.
    pub attachment: Option<Attachment>,
    /// Whether its tag says that it outlives its pool.
    pub is_kept: bool,
}

impl Volume {
    /// Whether nothing has it, so that it can be attached, copied and deleted.
    pub fn is_free(&self) -> bool {
        self.state == VolumeState::Available && self.attachment.is_none()
    }

    /// Whether there is nothing left in it.
    pub fn is_gone(&self) -> bool {
        matches!(self.state, VolumeState::Deleting | VolumeState::Deleted)
    }
}

/// A volume on an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// EC2's id of the instance.
    pub instance_id: String,
    /// Whether the instance can use it: it neither comes nor goes.
    pub is_attached: bool,
}

/// EC2's volume states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeState {
    /// Being made.
    Creating,
    /// Attached to nothing.
    Available,
    /// Attached, or on its way there or back.
    InUse,
    /// On its way to `Deleted`.
    Deleting,
    /// Gone.
    Deleted,
    /// Its making, or its hardware, failed.
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

    /// EC2's word.
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

    /// The state of EC2's word, where it is one.
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
    /// The volume that it is of.
    pub volume_id: String,
    /// How far it is.
    pub state: SnapshotState,
}

/// EC2's snapshot states, as far as they differ for a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotState {
    /// Not all of the volume is in it yet.
    Pending,
    /// All of the volume is in it.
    Completed,
    /// It is worth nothing.
    Error,
}

/// What is of a home.
#[derive(Clone, Debug, Default)]
pub struct ObservedHome {
    /// What the pool's status holds of it.
    pub record: Option<HomeRecord>,
    /// Every volume with the tags of the pool's home.
    pub volumes: Vec<Volume>,
    /// Every snapshot with them, where [`crate::Observed::needs_snapshots`].
    pub snapshots: Vec<VolumeSnapshot>,
    /// What EC2 refused of late.
    pub held: Vec<HomeHold>,
}

/// Something that EC2 refused, or does not show yet, and that is not asked for again
/// before `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeHold {
    /// What.
    pub step: HomeStep,
    /// Until when.
    pub until: Timestamp,
    /// EC2's words; none where it took it.
    pub refusal: Option<Refusal>,
}

/// What can be done to a home, by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeStep {
    /// Making the volume.
    Create,
    /// Making a snapshot of it.
    Copy,
    /// Attaching it.
    Attach,
    /// Making it larger.
    Grow,
    /// Deleting a volume.
    Delete,
    /// Deleting a snapshot.
    DeleteSnapshot,
    /// Telling by a tag that it outlives its pool.
    Keep,
}

impl HomeStep {
    /// What is not possible, for people.
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

impl ObservedHome {
    /// The volume that the status knows.
    pub fn volume(&self) -> Option<&Volume> {
        let id = self.record.as_ref()?.volume_id.as_ref()?;
        self.find(id)
    }

    /// A volume that exists.
    pub fn find(&self, id: &str) -> Option<&Volume> {
        let mut volumes = self.volumes.iter();
        volumes.find(|volume| volume.id == id && !volume.is_gone())
    }

    /// The snapshot that the copy is made by; the first one, should there be two.
    pub fn snapshot(&self) -> Option<&VolumeSnapshot> {
        let number = self.record.as_ref()?.number;
        let of_copy = self.snapshots.iter().filter(|s| s.number == number);
        of_copy.min_by(|a, b| a.id.cmp(&b.id))
    }

    /// Takes in what a fresh describe of the pool's volumes shows. What it leaves out is
    /// not gone for that, unless no list ever showed it.
    pub fn learn(&mut self, fresh: Vec<Volume>) {
        for volume in fresh {
            self.volumes.retain(|known| known.id != volume.id);
            self.volumes.push(volume);
        }
    }

    /// Whether the volume that the status knows is there no more.
    pub fn is_lost(&self) -> bool {
        let id = self.record.as_ref().and_then(|r| r.volume_id.as_ref());
        id.is_some_and(|id| self.find(id).is_none())
    }

    /// Forgets a volume that is there no more, so that another one can be made. Its number
    /// stays used.
    pub fn give_up(&mut self) {
        let number = self.next_number();
        if let Some(record) = &mut self.record {
            *record = HomeRecord {
                number,
                zone: record.zone.clone(),
                size_gib: record.size_gib,
                volume_id: None,
                copy_of: None,
                snapshot_id: None,
                asked_at: None,
            };
        }
    }

    /// Whether it is being copied, or what copies left behind is about to go. While no
    /// instance has it, nothing is.
    pub fn is_changing(&self) -> bool {
        let Some(record) = self.record.as_ref().filter(|record| record.is_copy()) else {
            return false;
        };
        let has_user = |volume: &Volume| volume.attachment.is_some();
        record.volume_id.is_none() || self.volume().is_some_and(has_user)
    }

    /// Why a step is not tried at the moment.
    pub fn hold(&self, step: HomeStep, now: Timestamp) -> Option<&HomeHold> {
        let mut held = self.held.iter();
        held.find(|hold| hold.step == step && hold.until > now)
    }

    /// A number that nothing was ever made by.
    pub(crate) fn next_number(&self) -> u64 {
        let volumes = self.volumes.iter().map(|volume| volume.number);
        let snapshots = self.snapshots.iter().map(|snapshot| snapshot.number);
        let known = self.record.iter().map(|record| record.number);
        volumes.chain(snapshots).chain(known).max().unwrap_or(0) + 1
    }

    /// Learns from EC2's lists what the status does not know: the id of a volume whose
    /// answer was lost, and the volume of a status that was lost.
    pub(crate) fn settle(&mut self) {
        let volumes = self.volumes.iter().filter(|volume| !volume.is_gone());
        if let Some(record) = &mut self.record {
            if record.volume_id.is_none() {
                let mut volumes = volumes;
                let own = volumes.find(|volume| volume.number == record.number);
                record.volume_id = own.map(|volume| volume.id.clone());
            } else {
                let snapshots = self.snapshots.iter().map(|snapshot| snapshot.number);
                let used = volumes.map(|volume| volume.number).chain(snapshots);
                record.number = used.fold(record.number, u64::max);
            }
            return;
        }
        // What an instance has is newer than any copy of it.
        let newest = volumes.max_by_key(|volume| (volume.attachment.is_some(), volume.number));
        let highest = self.next_number() - 1;
        self.record = newest.map(|volume| HomeRecord {
            number: highest,
            zone: volume.zone.clone(),
            size_gib: volume.size_gib,
            volume_id: Some(volume.id.clone()),
            copy_of: volume
                .copy_of
                .clone()
                .filter(|source| self.find(source).is_some()),
            snapshot_id: None,
            asked_at: None,
        });
    }
}

impl HomeHold {
    /// How long a refused step rests.
    pub fn rest(refusal: &Refusal) -> SignedDuration {
        match refusal.class {
            // "Request Amazon EBS volume modifications": six hours after the last one.
            _ if is_cool_down(refusal) => SignedDuration::from_mins(30),
            ErrorClass::Quota => SignedDuration::from_mins(15),
            ErrorClass::Capacity => SignedDuration::from_mins(3),
            ErrorClass::Denied | ErrorClass::Configuration => SignedDuration::from_mins(5),
            ErrorClass::Throttled => SignedDuration::from_secs(10),
            ErrorClass::Transient => SignedDuration::from_secs(5),
        }
    }
}

/// Whether a volume was changed too short a while ago.
pub(crate) fn is_cool_down(refusal: &Refusal) -> bool {
    matches!(
        refusal.code.as_str(),
        "VolumeModificationRateExceeded" | "IncorrectModificationState"
    )
}
