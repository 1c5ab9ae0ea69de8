//! Tests that go through every small pool with a home. They check that a plan changes a volume only
//! if no files are lost, and that nothing is left to do after EC2 has carried out the plan.

use provider_core::{
    Action, Attachment, Desired, Home, HomeAction, HomeRecord, InstanceState, NoticeKind, Observed,
    ObservedHome, OnDelete, SnapshotState, Volume, VolumeSnapshot, VolumeState, plan,
};

use super::world::{NOW, World, desired, instance, notice};

pub const HERE: &str = "us-east-1a";
pub const THERE: &str = "us-east-1b";

/// Carries out an action as EC2 does.
pub fn act(action: &HomeAction, home: &mut ObservedHome) {
    match action {
        HomeAction::Create(record) => {
            home.record = Some(record.clone());
            let id = format!("vol-{}", record.number);
            home.volumes.push(record.begun(id, "pool-uid"));
        }
        HomeAction::Copy(record) => {
            home.record = Some(record.clone());
            home.snapshots.push(VolumeSnapshot {
                id: format!("snap-{}", record.number),
                pool_uid: "pool-uid".into(),
                number: record.number,
                volume_id: record.copy_of.clone().unwrap(),
                state: SnapshotState::Pending,
            });
        }
        HomeAction::DeleteVolume { volume_id } => {
            home.volumes.retain(|v| v.id != *volume_id);
            let record = home.record.as_mut().unwrap();
            record.copy_of.take_if(|id| id == volume_id);
        }
        HomeAction::DeleteSnapshot { snapshot_id } => {
            home.snapshots.retain(|s| s.id != *snapshot_id);
            let record = home.record.as_mut().unwrap();
            record.snapshot_id.take_if(|id| id == snapshot_id);
        }
        HomeAction::Attach {
            volume_id,
            instance_id,
        } => {
            let mut volumes = home.volumes.iter_mut();
            let volume = volumes.find(|v| v.id == *volume_id).unwrap();
            volume.state = VolumeState::InUse;
            volume.attachment = Some(Attachment {
                instance_id: instance_id.clone(),
                is_attached: false,
            });
        }
        HomeAction::Grow {
            volume_id,
            size_gib,
        } => {
            let mut volumes = home.volumes.iter_mut();
            volumes.find(|v| v.id == *volume_id).unwrap().size_gib = *size_gib;
        }
        HomeAction::Keep { volume_id } => {
            let mut volumes = home.volumes.iter_mut();
            volumes.find(|v| v.id == *volume_id).unwrap().is_kept = true;
        }
    }
}

/// Completes everything that EC2 was making or attaching.
pub fn settle(world: &mut World) {
    for volume in &mut world.observed.home.volumes {
        if volume.state == VolumeState::Creating {
            volume.state = VolumeState::Available;
        }
        if let Some(attachment) = &mut volume.attachment {
            attachment.is_attached = true;
        }
    }
    world.observed.settle();
}

/// The states of the volume that the status names.
const VOLUMES: [&str; 9] = [
    "none",
    "asked",
    "creating",
    "free",
    "attached",
    "attaching",
    "foreign",
    "gone",
    "error",
];
/// The states of the volume's instance.
const INSTANCES: [&str; 6] = [
    "none",
    "pending",
    "running",
    "elsewhere",
    "interrupted",
    "ending",
];

pub fn record(number: u64, volume_id: Option<&str>) -> HomeRecord {
    HomeRecord {
        number,
        zone: HERE.into(),
        size_gib: 10,
        volume_id: volume_id.map(Into::into),
        is_made: volume_id.is_some(),
        copy_of: None,
        snapshot_id: None,
        asked_at: Some(NOW),
    }
}

fn volume(id: &str, number: u64, state: VolumeState) -> Volume {
    Volume {
        id: id.into(),
        pool_uid: "pool-uid".into(),
        number,
        copy_of: None,
        zone: HERE.into(),
        state,
        size_gib: 10,
        attachment: None,
        is_kept: false,
    }
}

fn attached(instance_id: &str, is_attached: bool) -> Volume {
    Volume {
        attachment: Some(Attachment {
            instance_id: instance_id.into(),
            is_attached,
        }),
        ..volume("vol-1", 1, VolumeState::InUse)
    }
}

fn home_of(kind: &str) -> ObservedHome {
    let (known, volumes) = match kind {
        "none" => (None, vec![]),
        "asked" => (Some(record(1, None)), vec![]),
        "creating" => (
            Some(record(1, Some("vol-1"))),
            vec![volume("vol-1", 1, VolumeState::Creating)],
        ),
        "free" => (
            Some(record(1, Some("vol-1"))),
            vec![volume("vol-1", 1, VolumeState::Available)],
        ),
        "attached" => (Some(record(1, Some("vol-1"))), vec![attached("i-1", true)]),
        "attaching" => (Some(record(1, Some("vol-1"))), vec![attached("i-1", false)]),
        "foreign" => (Some(record(1, Some("vol-1"))), vec![attached("i-9", true)]),
        "error" => (
            Some(record(1, Some("vol-1"))),
            vec![volume("vol-1", 1, VolumeState::Error)],
        ),
        _ => (Some(record(1, Some("vol-1"))), vec![]),
    };
    ObservedHome {
        record: known,
        volumes,
        ..ObservedHome::default()
    }
}

fn add_instance(kind: &str, observed: &mut Observed) {
    let state = match kind {
        "none" => return,
        "pending" => InstanceState::Pending,
        "ending" => InstanceState::ShuttingDown,
        _ => InstanceState::Running,
    };
    let mut instance = instance("i-1", 1, state);
    if kind == "elsewhere" {
        instance.offering.zone = THERE.into();
    }
    if kind == "interrupted" {
        let notice = notice(NoticeKind::Interruption);
        observed.notices.insert("i-1".into(), notice);
    }
    observed.instances.push(instance);
}

pub fn small_world(volume: &str, instance: &str, home: Home, deleted: bool) -> (World, Desired) {
    let mut world = World::default();
    world.observed.home = home_of(volume);
    add_instance(instance, &mut world.observed);
    world.observed.settle();
    let desired = Desired {
        home: Some(home),
        deleted,
        ..desired(1)
    };
    (world, desired)
}

fn every(mut check: impl FnMut(&str, World, Desired)) {
    for volume in VOLUMES {
        for instance in INSTANCES {
            for moves in [false, true] {
                for on_delete in [OnDelete::Retain, OnDelete::Delete, OnDelete::Snapshot] {
                    for (deleted, size_gib) in [(false, 10), (false, 20), (true, 10)] {
                        let home = Home {
                            size_gib,
                            on_delete,
                            moves,
                        };
                        let (world, desired) = small_world(volume, instance, home, deleted);
                        let name = format!("{volume} {instance} {home:?} deleted: {deleted}");
                        check(&name, world, desired);
                    }
                }
            }
        }
    }
}

pub fn of_home(actions: &[Action]) -> Vec<&HomeAction> {
    let of_home = actions.iter().filter_map(|action| match action {
        Action::Home(action) => Some(action),
        _ => None,
    });
    of_home.collect()
}

#[test]
fn no_plan_loses_doubles_or_takes_a_home() {
    let mut plans = 0;
    every(|name, world, desired| {
        let observed = &world.observed;
        let next = plan(&desired, observed, NOW);
        let home = &observed.home;
        for action in of_home(&next.actions) {
            plans += 1;
            match action {
                HomeAction::Create(record) => {
                    assert!(!desired.deleted, "{name}");
                    assert!(home.volumes.is_empty(), "{name}: a second home");
                    assert_eq!(record.volume_id, None);
                }
                HomeAction::Attach {
                    volume_id,
                    instance_id,
                } => {
                    let volume = home.find(volume_id).unwrap();
                    let mut instances = observed.instances.iter();
                    let instance = instances.find(|i| i.id == *instance_id).unwrap();
                    assert!(volume.is_free(), "{name}: it is taken from somebody");
                    assert_eq!(instance.state, InstanceState::Running, "{name}");
                    assert_eq!(instance.offering.zone, volume.zone, "{name}");
                    assert!(!desired.deleted, "{name}");
                }
                HomeAction::DeleteVolume { volume_id } => {
                    let policy = desired.home.unwrap().on_delete;
                    assert!(desired.deleted && policy == OnDelete::Delete, "{name}");
                    assert!(home.find(volume_id).unwrap().attachment.is_none(), "{name}");
                }
                HomeAction::Copy(record) => {
                    let source = record.copy_of.as_ref().unwrap();
                    assert!(home.find(source).unwrap().is_free(), "{name}");
                    let known = home.record.as_ref().unwrap();
                    assert!(record.number > known.number, "{name}");
                }
                HomeAction::Grow { size_gib, .. } => assert_eq!(*size_gib, 20),
                HomeAction::Keep { .. } => assert!(desired.deleted, "{name}"),
                HomeAction::DeleteSnapshot { .. } => panic!("{name}: there is none"),
            }
        }
        let ends = next
            .actions
            .iter()
            .any(|a| matches!(a, Action::Terminate { .. }));
        assert!(
            !ends || desired.deleted,
            "{name}: an instance ends for its home"
        );
    });
    assert!(plans > 50, "{plans} plans show nothing");
}

#[test]
fn a_second_plan_for_a_home_is_empty_after_the_first_was_carried_out() {
    every(|name, mut world, desired| {
        let first = plan(&desired, &world.observed, NOW);
        world.apply(&first);
        let second = plan(&desired, &world.observed, NOW);
        // After an instance ends or starts, more home actions may follow.
        let is_alone = first.actions.iter().all(|a| matches!(a, Action::Home(_)));
        if is_alone {
            assert!(
                of_home(&second.actions).is_empty(),
                "{name}: {first:?} then {second:?}"
            );
        }
    });
}

#[test]
fn a_pool_launches_only_where_its_home_is() {
    every(|name, world, desired| {
        let launched = plan(&desired, &world.observed, NOW).actions;
        for action in &launched {
            let Action::Launch(launch) = action else {
                continue;
            };
            let zones: Vec<&str> = launch.offerings.iter().map(|o| &*o.zone).collect();
            if world.observed.home.record.is_some() {
                assert_eq!(zones, [HERE], "{name}");
            }
        }
    });
}
