//! Converts between the API's home volume and the planner's.

use api::home::{HomeOnDelete, PoolHomeStatus};
use api::pool::SpotPoolParameters;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use provider_core::{Home, HomeRecord, ObservedHome, OnDelete, Volume, VolumeState};

use crate::numbers::{signed, small, unsigned};

/// The home that a spec asks for.
pub fn wanted(spec: &SpotPoolParameters) -> Option<Home> {
    let home = spec.home.as_ref()?;
    Some(Home {
        size_gib: u32::try_from(home.size_gib).unwrap_or_default(),
        on_delete: match home.on_delete {
            HomeOnDelete::Retain => OnDelete::Retain,
            HomeOnDelete::Delete => OnDelete::Delete,
            HomeOnDelete::Snapshot => OnDelete::Snapshot,
        },
        moves: home.moves,
    })
}

/// A home in the form of the status.
pub fn to_api(home: &ObservedHome) -> Option<PoolHomeStatus> {
    let record = home.record.as_ref()?;
    let volume = home.volume();
    let attachment = volume.and_then(|volume| volume.attachment.as_ref());
    Some(PoolHomeStatus {
        volume_id: record.volume_id.clone(),
        zone: record.zone.clone(),
        state: state(record, volume).map(|state| state.as_str().to_owned()),
        size_gib: Some(small(volume.map_or(record.size_gib, |v| v.size_gib))),
        attached_to: attachment.map(|attachment| attachment.instance_id.clone()),
        snapshot_id: record.snapshot_id.clone(),
        copy_of: record.copy_of.clone(),
        asked_at: record.asked_at.map(Time),
        generation: signed(record.number),
    })
}

/// The state of the volume. One that EC2 made and that it does not show any more was deleted.
fn state(record: &HomeRecord, volume: Option<&Volume>) -> Option<VolumeState> {
    match volume {
        Some(volume) => Some(volume.state),
        None => (record.volume_id.is_some() && record.is_made).then_some(VolumeState::Deleted),
    }
}

/// The record of a home in a status.
pub fn from_api(shown: &PoolHomeStatus) -> HomeRecord {
    HomeRecord {
        number: unsigned(shown.generation),
        zone: shown.zone.clone(),
        size_gib: shown
            .size_gib
            .and_then(|size| u32::try_from(size).ok())
            .unwrap_or_default(),
        volume_id: shown.volume_id.clone(),
        is_made: shown
            .state
            .as_deref()
            .and_then(VolumeState::parse)
            .is_some_and(|state| state != VolumeState::Creating),
        copy_of: shown.copy_of.clone(),
        snapshot_id: shown.snapshot_id.clone(),
        asked_at: shown.asked_at.as_ref().map(|time| time.0),
    }
}
