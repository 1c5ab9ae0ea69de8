//! The plan for the home of a deleted pool.

use jiff::Timestamp;

use super::Planner;
use crate::plan::{HomeAction, Plan};
use crate::{Desired, HomeWait, Observed, OnDelete, Volume, VolumeState};

/// Plans for the home of a deleted pool whose instances are gone.
pub(in crate::plan) fn plan_deletion(
    desired: &Desired,
    observed: &Observed,
    now: Timestamp,
    plan: &mut Plan,
) {
    let on_delete = desired.home.map_or(OnDelete::Retain, |home| home.on_delete);
    let mut homes = Planner {
        observed,
        now,
        plan,
    };
    if homes.awaits_unlisted() {
        return;
    }
    match on_delete {
        OnDelete::Retain => homes.retain(),
        OnDelete::Delete => homes.delete_all(),
        OnDelete::Snapshot => homes.delete_after_copy(),
    }
}

impl Planner<'_> {
    /// Waits if EC2 may have made a volume that it does not list yet, and returns whether it waits.
    /// A copy within the home's own zone is only a snapshot, so no volume is expected.
    fn awaits_unlisted(&mut self) -> bool {
        let home = &self.observed.home;
        let Some(record) = &home.record else {
            return false;
        };
        let source = record.copy_of.as_ref().and_then(|id| home.find(id));
        let is_final = source.is_some_and(|volume| volume.zone == record.zone);
        let waits = record.volume_id.is_none() && !is_final && !record.is_overdue(true, self.now);
        if waits {
            let zone = record.zone.clone();
            self.wait(HomeWait::Creating { zone });
        }
        waits
    }

    fn volumes(&self) -> Vec<Volume> {
        let volumes = self.observed.home.volumes.iter();
        volumes.filter(|v| !v.is_gone()).cloned().collect()
    }

    fn retain(&mut self) {
        let volumes = self.volumes();
        for volume in volumes.iter().filter(|v| !v.is_kept) {
            self.act(HomeAction::Keep {
                volume_id: volume.id.clone(),
            });
        }
        // A snapshot of a move that was not finished. A volume has its content, so it is not
        // needed.
        for snapshot in self.observed.home.snapshots.clone() {
            let holds = |v: &Volume| v.id == snapshot.volume_id || v.number == snapshot.number;
            if volumes.iter().any(holds) {
                self.act(HomeAction::DeleteSnapshot {
                    snapshot_id: snapshot.id,
                });
            }
        }
    }

    fn delete_all(&mut self) {
        self.delete_volumes();
        for snapshot in self.observed.home.snapshots.clone() {
            self.act(HomeAction::DeleteSnapshot {
                snapshot_id: snapshot.id,
            });
        }
    }

    fn delete_volumes(&mut self) {
        for volume in self.volumes() {
            if volume.is_free() || volume.state == VolumeState::Error {
                self.act(HomeAction::DeleteVolume {
                    volume_id: volume.id,
                });
            } else {
                self.wait_free::<()>(&volume);
            }
        }
    }

    fn delete_after_copy(&mut self) {
        if self.volumes().is_empty() {
            return;
        }
        let home = &self.observed.home;
        let Some(record) = home.record.clone() else {
            return;
        };
        let holder = record.volume_id.as_ref().and_then(|id| home.find(id));
        match (holder.cloned(), &record.copy_of) {
            (Some(volume), _) if volume.is_free() => {
                self.copy(&record, &volume, volume.zone.clone());
            }
            (Some(volume), _) => {
                self.wait_free::<()>(&volume);
            }
            (None, Some(source)) => {
                if let Some(kept) = self.copied(&record, source, None) {
                    let spare = |s: &&crate::VolumeSnapshot| s.id != kept;
                    let spare = self.observed.home.snapshots.iter().filter(spare).cloned();
                    for snapshot in spare.collect::<Vec<_>>() {
                        self.act(HomeAction::DeleteSnapshot {
                            snapshot_id: snapshot.id,
                        });
                    }
                    self.delete_volumes();
                }
            }
            // The volume that the status names is gone. The others are not the home, so they are
            // retained.
            (None, None) => {
                for volume in self.volumes().iter().filter(|v| !v.is_kept) {
                    self.act(HomeAction::Keep {
                        volume_id: volume.id.clone(),
                    });
                }
            }
        }
    }
}
