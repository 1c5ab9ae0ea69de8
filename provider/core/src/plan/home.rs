//! The plan for the home volume: it is created where the first instance runs, and attached to one
//! instance at a time.

mod deletion;

pub(super) use deletion::plan_deletion;

use jiff::Timestamp;

use super::census::{Census, Standing};
use super::{Action, HomeAction, Plan, Wait};
use crate::{
    Desired, ErrorClass, Home, HomeRecord, HomeStep, HomeWait, Instance, InstanceState, Observed,
    Offering, SnapshotState, Volume, VolumeState,
};

/// The offerings that a pool may launch. A pool with a home launches only in the home's zone. If
/// the home may move, the other zones are allowed too while its own has no capacity and no instance
/// has the home.
pub fn offerings(desired: &Desired, observed: &Observed, now: Timestamp) -> Vec<Offering> {
    let all = || desired.offerings.clone();
    let (Some(home), Some(record)) = (&desired.home, &observed.home.record) else {
        return all();
    };
    let there: Vec<Offering> = desired
        .offerings
        .iter()
        .filter(|o| o.zone == record.zone)
        .cloned()
        .collect();
    let is_free = observed.home.volume().is_some_and(Volume::is_free);
    if home.moves && is_free && is_unavailable(&there, observed, now) {
        all()
    } else {
        there
    }
}

/// Whether all `offerings` are unavailable, at least one of them for capacity. A limit alone does
/// not count, because it is the same in every zone.
fn is_unavailable(offerings: &[Offering], observed: &Observed, now: Timestamp) -> bool {
    let unavailable: Vec<_> = observed.unavailable.among(offerings, now).collect();
    let is_capacity = |class| class == ErrorClass::Capacity;
    offerings.is_empty()
        || (unavailable.len() == offerings.len()
            && unavailable
                .iter()
                .any(|(_, unavailable)| is_capacity(unavailable.refusal.class)))
}

/// Plans the home of a pool that is not deleted. It must run after the steps that end instances,
/// because it reads their actions.
pub(super) fn plan(
    desired: &Desired,
    observed: &Observed,
    census: &Census<'_>,
    now: Timestamp,
    plan: &mut Plan,
) {
    let Some(home) = desired.home else {
        return;
    };
    let usable = usable(census, plan);
    let mut homes = Planner {
        observed,
        now,
        plan,
    };
    let Some(record) = &observed.home.record else {
        if let Some(first) = usable.first() {
            homes.create(HomeRecord {
                number: observed.home.next_number(),
                zone: first.offering.zone.clone(),
                size_gib: home.size_gib,
                volume_id: None,
                is_made: false,
                copy_of: None,
                snapshot_id: None,
                asked_at: Some(now),
            });
        }
        return;
    };
    match (&record.volume_id, &record.copy_of) {
        (Some(id), _) => homes.keep_up(home, record, id, &usable),
        (None, None) if record.asked_at.is_none() => homes.create(HomeRecord {
            size_gib: home.size_gib,
            ..asked(record, now)
        }),
        (None, None) => homes.create(asked(record, now)),
        (None, Some(source)) => homes.move_on(record, source),
    }
}

/// Instances that run and stay, oldest first.
fn usable<'a>(census: &Census<'a>, plan: &Plan) -> Vec<&'a Instance> {
    let ends = |id: &str| {
        let is_end = |a: &Action| matches!(a, Action::Terminate { id: of, .. } if of == id);
        plan.actions.iter().any(is_end)
    };
    let live = census.live.iter();
    let stays = live.filter(|(_, s)| !matches!(s, Standing::Interrupted | Standing::Over));
    let running = stays.filter(|(i, _)| i.state == InstanceState::Running && !ends(&i.id));
    running.map(|(instance, _)| *instance).collect()
}

fn asked(record: &HomeRecord, now: Timestamp) -> HomeRecord {
    HomeRecord {
        asked_at: Some(now),
        ..record.clone()
    }
}

struct Planner<'a> {
    observed: &'a Observed,
    now: Timestamp,
    plan: &'a mut Plan,
}

impl Planner<'_> {
    /// Plans an action. If EC2 refused the same step a moment ago, the plan waits instead.
    fn act(&mut self, action: HomeAction) {
        let home = &self.observed.home;
        match home.hold(action.step(), self.now) {
            Some(hold) => {
                let known = home.record.as_ref();
                let known = known.and_then(|r| r.volume_id.as_ref().or(r.copy_of.as_ref()));
                self.wait(HomeWait::Refused {
                    volume_id: known.cloned(),
                    hold: hold.clone(),
                });
            }
            None => self.plan.actions.push(Action::Home(action)),
        }
    }

    fn wait(&mut self, wait: HomeWait) {
        self.plan.waits.push(Wait::Home(wait));
    }

    fn create(&mut self, record: HomeRecord) {
        self.act(HomeAction::Create(record));
    }

    /// Plans for a volume whose id the status knows.
    fn keep_up(&mut self, home: Home, record: &HomeRecord, id: &str, usable: &[&Instance]) {
        let volume_id = id.to_owned();
        let Some(volume) = self.observed.home.find(id) else {
            self.wait(HomeWait::Lost {
                volume_id,
                kept_in: record.kept_in().cloned(),
            });
            return;
        };
        match volume.state {
            VolumeState::Error => self.wait(HomeWait::Broken { volume_id }),
            VolumeState::Creating => self.wait(HomeWait::Creating {
                zone: volume.zone.clone(),
            }),
            _ => {
                if volume.is_free() {
                    if record.copy_of.is_none() {
                        self.clean_up(record);
                    }
                    self.place(home, record, volume, usable);
                } else {
                    self.plan_attached(record, volume, usable);
                }
                if home.size_gib > volume.size_gib {
                    self.act(HomeAction::Grow {
                        volume_id,
                        size_gib: home.size_gib,
                    });
                }
            }
        }
    }

    /// Attaches a free volume to an instance in its zone. If the only usable instance is in another
    /// zone, moves the volume there.
    fn place(&mut self, home: Home, record: &HomeRecord, volume: &Volume, usable: &[&Instance]) {
        let is_here = |i: &&&Instance| i.offering.zone == volume.zone;
        let volume_id = volume.id.clone();
        if let Some(instance) = usable.iter().rfind(is_here) {
            self.act(HomeAction::Attach {
                volume_id,
                instance_id: instance.id.clone(),
            });
        } else if let Some(instance) = usable.last() {
            let comes = |i: &Instance| i.state.is_live() && i.offering.zone == volume.zone;
            if !home.moves {
                self.wait(HomeWait::Elsewhere {
                    volume_id,
                    zone: volume.zone.clone(),
                    instance_id: instance.id.clone(),
                });
            } else if !self.observed.instances.iter().any(comes) {
                self.copy(record, volume, instance.offering.zone.clone());
            }
        } else {
            let rests = |wait: &Wait| matches!(wait, Wait::Capacity { .. });
            if self.plan.waits.iter().any(rests) {
                self.wait(HomeWait::Capacity {
                    volume_id,
                    zone: volume.zone.clone(),
                    moves: home.moves,
                });
            }
        }
    }

    /// Plans for a volume that an instance has.
    fn plan_attached(&mut self, record: &HomeRecord, volume: &Volume, usable: &[&Instance]) {
        let Some(attachment) = &volume.attachment else {
            return;
        };
        let volume_id = volume.id.clone();
        let instance_id = attachment.instance_id.clone();
        let is_it = |i: &Instance| i.id == instance_id;
        if usable.iter().any(|i| is_it(i)) {
            if attachment.is_attached && volume.state == VolumeState::InUse {
                self.clean_up(record);
            } else {
                self.wait(HomeWait::Attaching {
                    volume_id,
                    instance_id,
                });
            }
        } else if !self.observed.instances.iter().any(is_it) {
            self.wait(HomeWait::Foreign {
                volume_id,
                instance_id,
            });
        } else if !usable.is_empty() {
            self.wait(HomeWait::Detaching {
                volume_id,
                instance_id,
            });
        }
    }

    /// Deletes the old volumes and snapshots of moves, one after the other. It is called once an
    /// instance has the copy. The last old volume is deleted then only, so without one the snapshots
    /// go also while no instance has the copy.
    fn clean_up(&mut self, record: &HomeRecord) {
        if let Some(volume_id) = self.oldest_source(record) {
            self.act(HomeAction::DeleteVolume { volume_id });
            return;
        }
        let listed = self.observed.home.snapshots.iter().map(|s| &s.id);
        let known = record.snapshot_id.iter();
        let mut snapshots: Vec<String> = listed.chain(known).cloned().collect();
        snapshots.sort();
        snapshots.dedup();
        for snapshot_id in snapshots {
            self.act(HomeAction::DeleteSnapshot { snapshot_id });
        }
    }

    /// The first volume in the chain of copies that led to this one. A chain has several volumes if
    /// the home moved again before any instance had it.
    fn oldest_source(&self, record: &HomeRecord) -> Option<String> {
        let home = &self.observed.home;
        let mut oldest = record.copy_of.clone()?;
        for _ in &home.volumes {
            let source = home.find(&oldest).and_then(|v| v.copy_of.as_ref());
            match source.filter(|id| home.find(id).is_some()) {
                Some(source) => oldest.clone_from(source),
                None => break,
            }
        }
        Some(oldest)
    }

    fn copy(&mut self, record: &HomeRecord, volume: &Volume, zone: String) {
        self.act(HomeAction::Copy(HomeRecord {
            number: self.observed.home.next_number(),
            zone,
            size_gib: volume.size_gib.max(record.size_gib),
            volume_id: None,
            is_made: false,
            copy_of: Some(volume.id.clone()),
            snapshot_id: None,
            asked_at: Some(self.now),
        }));
    }

    /// Continues a move whose volume in the new zone does not exist yet.
    fn move_on(&mut self, record: &HomeRecord, source: &str) {
        if let Some(snapshot_id) = self.copied(record, source, Some(record.zone.clone())) {
            self.create(HomeRecord {
                snapshot_id: Some(snapshot_id),
                ..asked(record, self.now)
            });
        }
    }

    /// The completed snapshot of a copy. If there is none, the plan makes it or waits for it.
    fn copied(
        &mut self,
        record: &HomeRecord,
        source: &str,
        zone: Option<String>,
    ) -> Option<String> {
        let home = &self.observed.home;
        let is_late = record.is_overdue(false, self.now);
        match home.snapshot().map(|s| (s.state, s.id.clone())) {
            Some((SnapshotState::Completed, id)) => return Some(id),
            None if !is_late => {}
            Some((SnapshotState::Pending, _)) => {}
            Some((SnapshotState::Error, _)) | None => match home.find(source) {
                Some(volume) if volume.is_free() => {
                    self.copy(record, volume, record.zone.clone());
                    return None;
                }
                Some(volume) => return self.wait_free(volume),
                None => {
                    self.wait(HomeWait::Lost {
                        volume_id: source.to_owned(),
                        kept_in: record.snapshot_id.clone(),
                    });
                    return None;
                }
            },
        }
        self.wait(HomeWait::Copying {
            volume_id: source.to_owned(),
            zone,
        });
        None
    }

    /// Waits until the volume is free.
    fn wait_free<T>(&mut self, volume: &Volume) -> Option<T> {
        let volume_id = volume.id.clone();
        let wait = match &volume.attachment {
            Some(attachment) => {
                let instance_id = attachment.instance_id.clone();
                let mut ours = self.observed.instances.iter();
                if ours.any(|i| i.id == instance_id) {
                    HomeWait::Detaching {
                        volume_id,
                        instance_id,
                    }
                } else {
                    HomeWait::Foreign {
                        volume_id,
                        instance_id,
                    }
                }
            }
            None if volume.state == VolumeState::Error => HomeWait::Broken { volume_id },
            None => HomeWait::Creating {
                zone: volume.zone.clone(),
            },
        };
        self.wait(wait);
        None
    }
}

impl HomeAction {
    /// The step that this action carries out.
    pub fn step(&self) -> HomeStep {
        match self {
            Self::Create(_) => HomeStep::Create,
            Self::Copy(_) => HomeStep::Copy,
            Self::Attach { .. } => HomeStep::Attach,
            Self::Grow { .. } => HomeStep::Grow,
            Self::DeleteVolume { .. } => HomeStep::Delete,
            Self::DeleteSnapshot { .. } => HomeStep::DeleteSnapshot,
            Self::Keep { .. } => HomeStep::Keep,
        }
    }
}
