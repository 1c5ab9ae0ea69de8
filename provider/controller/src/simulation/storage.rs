//! Volumes and snapshots behind the provider's calls, and the rules for each call: nothing is
//! created twice, no content is lost, and nothing of others is touched.

use memory_ec2::{Copy, Disk};
use provider_aws::{Ec2Error, SnapshotRequest, VolumeRequest};
use provider_core::{Volume, VolumeSnapshot};

use api::home::HomeOnDelete;

use super::earth::Earth;
use super::invariants;
use super::ours::{Tagged, is_of_cluster, is_ours};
use crate::regions::TAG_KEYS;

/// Volumes of the pool under test that exist.
pub fn homes(earth: &Earth) -> impl Iterator<Item = &Disk> {
    let disks = earth.cloud.storage.disks.iter();
    disks.filter(|disk| disk.is_live() && disk.is_ours())
}

/// Snapshots of the pool under test that exist.
pub fn copies(earth: &Earth) -> impl Iterator<Item = &Copy> {
    let copies = earth.cloud.storage.copies.iter();
    copies.filter(|copy| copy.is_live() && copy.is_ours())
}

/// The volumes that lists and filters by tag show.
pub fn listed(earth: &Earth) -> impl Iterator<Item = Volume> {
    let now = earth.now;
    let disks = earth.cloud.storage.disks.iter();
    let shown =
        disks.filter(move |d| d.is_live() && d.listed_from <= now && is_of_cluster(&d.tags));
    shown.filter_map(move |disk| disk.read(&TAG_KEYS, now))
}

pub fn listed_copies(earth: &Earth) -> impl Iterator<Item = VolumeSnapshot> {
    let now = earth.now;
    let copies = earth.cloud.storage.copies.iter();
    let shown =
        copies.filter(move |c| c.is_live() && c.listed_from <= now && is_of_cluster(&c.tags));
    shown.filter_map(move |copy| copy.read(&TAG_KEYS, now))
}

pub fn create(earth: &mut Earth, request: &VolumeRequest) -> Result<Volume, Ec2Error> {
    let (index, is_new) = earth.cloud.create_volume(request, earth.now)?;
    let disk = earth.cloud.storage.disks[index].clone();
    let made = disk.read(&TAG_KEYS, earth.now).unwrap();
    if is_new {
        let mut wrong = Vec::new();
        if !disk.is_ours() || !disk.tags.contains_key("Name") {
            wrong.push("lacks the pool's tags");
        }
        let known = invariants::known(earth).home;
        let is_intended = known.is_some_and(|home| {
            u64::try_from(home.generation) == Ok(made.number)
                && home.volume_id.is_none()
                && home.zone == made.zone
        });
        if !is_intended {
            wrong.push("was not persisted");
        }
        let copies = &earth.cloud.storage.copies;
        let source = request.snapshot_id.as_ref();
        let source = source.and_then(|id| copies.iter().find(|copy| copy.id == *id));
        if source.is_some_and(|copy| !copy.is_ours()) {
            wrong.push("is made from a snapshot of others");
        }
        let others = || homes(earth).filter(|other| other.id != disk.id);
        if request.snapshot_id.is_none() && others().next().is_some() {
            wrong.push("is a second home");
        }
        let number = |d: &Disk| d.tags.get(TAG_KEYS.home).cloned();
        if others().any(|other| number(other) == number(&disk)) {
            wrong.push("has the number of another one");
        }
        for what in wrong {
            earth.violate(format!("made {}: it {what}", disk.id));
        }
    }
    if is_new && earth.faults.takes_volumes_back {
        earth.cloud.storage.disks[index].deleted_at = Some(earth.now);
    }
    Ok(made)
}

/// Attaches a volume to an instance. It must always be the volume with all files.
pub fn attach(earth: &mut Earth, volume_id: &str, instance_id: &str) -> Result<(), Ec2Error> {
    check_ours(earth, volume_id);
    let now = earth.now;
    earth.cloud.attach_volume(volume_id, instance_id, now)?;
    let machine = earth.cloud.machines.iter().find(|m| m.id == instance_id);
    if !machine.is_some_and(|machine| is_ours(&machine.tags)) {
        earth.violate(format!(
            "{volume_id} went to {instance_id}, which is not the pool's"
        ));
    }
    let disk = earth.cloud.storage.find(volume_id).unwrap();
    let content = disk.content.clone();
    let had = &content[..content.len() - 1];
    if had != earth.written {
        let what = format!(
            "{instance_id} found {had:?} at home, not {:?}",
            earth.written
        );
        earth.violate(what);
    }
    earth.written = content;
    Ok(())
}

pub fn grow(earth: &mut Earth, volume_id: &str, size_gib: u32) -> Result<(), Ec2Error> {
    check_ours(earth, volume_id);
    earth.cloud.grow_volume(volume_id, size_gib, earth.now)
}

pub fn delete(earth: &mut Earth, volume_id: &str) -> Result<(), Ec2Error> {
    check_ours(earth, volume_id);
    let now = earth.now;
    let Some(disk) = earth.cloud.storage.find(volume_id).map(|disk| disk.clone()) else {
        return earth.cloud.delete_volume(volume_id, now);
    };
    earth.cloud.delete_volume(volume_id, now)?;
    let in_volume = homes(earth).any(|other| other.user.is_some() && holds(&other.content, &disk));
    let in_snapshot =
        copies(earth).any(|copy| copy.is_completed(now) && holds(&copy.content, &disk));
    let is_deleted = earth.store.is_deleted();
    let may_go = match on_delete(earth) {
        _ if !is_deleted => in_volume,
        HomeOnDelete::Delete => true,
        HomeOnDelete::Snapshot => in_snapshot,
        HomeOnDelete::Retain => false,
    };
    if !may_go {
        earth.violate(format!("{volume_id} was deleted with {:?}", disk.content));
    }
    Ok(())
}

pub fn copy(earth: &mut Earth, request: &SnapshotRequest) -> Result<VolumeSnapshot, Ec2Error> {
    check_ours(earth, &request.volume_id);
    let index = earth.cloud.create_snapshot(request, earth.now)?;
    let copy = earth.cloud.storage.copies[index].clone();
    let disk = earth.cloud.storage.find(&request.volume_id).unwrap();
    if disk.user.is_some() {
        let what = format!("{} was copied while somebody wrote to it", disk.id);
        earth.violate(what);
    }
    let begun = copy.read(&TAG_KEYS, earth.now);
    if begun.is_none() || !copy.is_ours() {
        earth.violate(format!("{} lacks the pool's tags", copy.id));
    }
    Ok(begun.unwrap())
}

pub fn delete_copy(earth: &mut Earth, id: &str) -> Result<(), Ec2Error> {
    let found = earth
        .cloud
        .storage
        .copies
        .iter()
        .find(|c| c.id == id)
        .cloned();
    let now = earth.now;
    earth.cloud.delete_snapshot(id, now)?;
    let Some(copy) = found else { return Ok(()) };
    if !copy.is_ours() {
        earth.violate(format!("{id} is not the pool's to delete"));
    }
    let begins_with = |content: &[String]| content.starts_with(&copy.content);
    let kept = homes(earth).any(|disk| begins_with(&disk.content))
        || copies(earth).any(|other| begins_with(&other.content));
    let is_wanted = earth.store.is_deleted() && on_delete(earth) == HomeOnDelete::Delete;
    if !kept && !is_wanted {
        earth.violate(format!("{id} was deleted with {:?}", copy.content));
    }
    Ok(())
}

/// Checks the volumes and snapshots of a released pool: it may leave only what its policy retains,
/// and must leave that.
pub fn check_release(earth: &mut Earth) {
    let now = earth.now;
    let disks: Vec<Disk> = homes(earth).cloned().collect();
    let copies: Vec<Copy> = copies(earth).cloned().collect();
    let has_all = |content: &Vec<String>| *content == earth.written;
    let is_kept = |disk: &Disk| disk.tags.contains_key(TAG_KEYS.home_kept);
    let had = earth.cloud.storage.disks.iter().any(Tagged::is_ours);
    let is_right = match on_delete(earth) {
        _ if !had => copies.is_empty(),
        HomeOnDelete::Delete => disks.is_empty() && copies.is_empty(),
        HomeOnDelete::Retain => {
            disks.iter().any(|disk| has_all(&disk.content))
                && disks.iter().all(is_kept)
                && copies.is_empty()
        }
        HomeOnDelete::Snapshot => {
            let is_whole = |copy: &Copy| copy.is_completed(now) && has_all(&copy.content);
            disks.is_empty() && copies.iter().any(is_whole) && copies.len() == 1
        }
    };
    if !is_right {
        let policy = on_delete(earth);
        earth.violate(format!("{policy:?} left {disks:?} and {copies:?}"));
    }
}

fn on_delete(earth: &Earth) -> HomeOnDelete {
    let home = &earth.store.current().spec.for_provider.home;
    home.as_ref().map(|home| home.on_delete).unwrap_or_default()
}

fn holds(content: &[String], disk: &Disk) -> bool {
    content.starts_with(&disk.content)
}

fn check_ours(earth: &mut Earth, volume_id: &str) {
    let mut disks = earth.cloud.storage.disks.iter();
    let disk = disks.find(|disk| disk.id == volume_id);
    if disk.is_some_and(|disk| !disk.is_ours()) {
        earth.violate(format!("{volume_id} is not the pool's to change"));
    }
}
