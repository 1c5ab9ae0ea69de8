//! Tests of homes that move to another zone, and of steps that the planner repeats.

use jiff::SignedDuration;
use provider_core::{
    Desired, ErrorClass, Home, HomeAction, HomeHold, HomeStep, HomeWait, OnDelete, Refusal, Size,
    SnapshotState, VolumeSnapshot, VolumeState, Wait, plan, volume_token,
};

use super::homes::{THERE, of_home, record, settle, small_world};
use super::world::{NOW, World};

/// A home during a move, with a snapshot in this state.
fn moving(snapshot: Option<SnapshotState>) -> (World, Desired) {
    let home = Home {
        size_gib: 10,
        on_delete: OnDelete::Retain,
        moves: true,
    };
    let (mut world, desired) = small_world("free", "elsewhere", home, false);
    let asked = plan(&desired, &world.observed, NOW);
    let [HomeAction::Copy(record)] = of_home(&asked.actions)[..] else {
        panic!("{asked:?}");
    };
    assert_eq!((record.number, &*record.zone), (2, THERE));
    world.observed.home.record = Some(record.clone());
    world
        .observed
        .home
        .snapshots
        .extend(snapshot.map(|state| VolumeSnapshot {
            id: "snap-1".into(),
            pool_uid: "pool-uid".into(),
            number: 2,
            volume_id: "vol-1".into(),
            state,
        }));
    (world, desired)
}

#[test]
fn a_home_moves_step_by_step_and_nothing_goes_before_its_copy_is_in_use() {
    let (world, desired) = moving(Some(SnapshotState::Pending));
    let waiting = plan(&desired, &world.observed, NOW);
    assert_eq!(of_home(&waiting.actions), [] as [&HomeAction; 0]);
    let copying = |wait: &Wait| matches!(wait, Wait::Home(HomeWait::Copying { .. }));
    assert!(waiting.waits.iter().any(copying), "{waiting:?}");

    let (mut world, desired) = moving(Some(SnapshotState::Completed));
    let next = plan(&desired, &world.observed, NOW);
    let [HomeAction::Create(record)] = of_home(&next.actions)[..] else {
        panic!("{next:?}");
    };
    assert_eq!(record.snapshot_id.as_deref(), Some("snap-1"));
    world.apply(&next);
    settle(&mut world);
    let mut steps = Vec::new();
    for _ in 0..6 {
        let next = plan(&desired, &world.observed, NOW);
        steps.extend(of_home(&next.actions).into_iter().map(HomeAction::step));
        world.apply(&next);
        settle(&mut world);
    }
    let order = [HomeStep::Attach, HomeStep::Delete, HomeStep::DeleteSnapshot];
    assert_eq!(steps, order);
    let home = &world.observed.home;
    assert_eq!((home.volumes.len(), home.snapshots.len()), (1, 0));
    assert_eq!(home.volumes[0].zone, THERE);
}

/// A home that moved twice before an instance had it leaves two snapshots.
#[test]
fn a_snapshot_that_ec2_does_not_delete_at_once_is_deleted_later() {
    let (mut world, desired) = moving(Some(SnapshotState::Completed));
    for _ in 0..3 {
        let next = plan(&desired, &world.observed, NOW);
        world.apply(&next);
        settle(&mut world);
    }
    let home = &mut world.observed.home;
    home.snapshots.push(VolumeSnapshot {
        id: "snap-0".into(),
        number: 1,
        ..home.snapshots[0].clone()
    });
    let deletes = |world: &World| {
        let next = plan(&desired, &world.observed, NOW);
        let deletes = |action: &HomeAction| match action {
            HomeAction::DeleteSnapshot { snapshot_id } => Some(snapshot_id.clone()),
            _ => None,
        };
        let home = of_home(&next.actions).into_iter();
        home.filter_map(deletes).collect::<Vec<_>>()
    };
    assert_eq!(deletes(&world), ["snap-0", "snap-1"]);
    // EC2 deletes the newer one, and refuses the older one.
    let home = &mut world.observed.home;
    home.snapshots.retain(|snapshot| snapshot.id == "snap-0");
    home.record.as_mut().unwrap().snapshot_id = None;
    settle(&mut world);
    assert!(world.observed.needs_snapshots(&desired), "nobody lists it");
    assert_eq!(deletes(&world), ["snap-0"]);
}

#[test]
fn a_snapshot_of_a_finished_move_is_deleted_although_the_machine_is_gone() {
    let (mut world, desired) = moving(Some(SnapshotState::Completed));
    let steps_of = |world: &World, desired: &Desired| {
        let next = plan(desired, &world.observed, NOW);
        let steps = of_home(&next.actions).into_iter().map(HomeAction::step);
        (steps.collect::<Vec<_>>(), next)
    };
    // The volume of the new zone is made and attached, and the old one is deleted.
    for _ in 0..3 {
        let (steps, next) = steps_of(&world, &desired);
        assert!(!steps.contains(&HomeStep::DeleteSnapshot), "{next:?}");
        world.apply(&next);
        settle(&mut world);
    }
    assert_eq!(world.observed.home.volumes.len(), 1);
    world.observed.instances.clear();
    world.observed.home.volumes[0].attachment = None;
    world.observed.home.volumes[0].state = VolumeState::Available;
    let stopped = Desired {
        size: Size::NONE,
        ..desired
    };
    let (steps, next) = steps_of(&world, &stopped);
    assert_eq!(steps, [HomeStep::DeleteSnapshot]);
    world.apply(&next);
    settle(&mut world);
    assert_eq!(steps_of(&world, &stopped).0, []);
}

#[test]
fn a_failed_snapshot_is_made_again_and_never_believed() {
    let (world, desired) = moving(Some(SnapshotState::Error));
    let next = plan(&desired, &world.observed, NOW);
    let [HomeAction::Copy(record)] = of_home(&next.actions)[..] else {
        panic!("{next:?}");
    };
    assert_eq!(
        (record.number, record.copy_of.as_deref()),
        (3, Some("vol-1"))
    );
    // A snapshot that EC2 does not list may still exist.
    let (world, desired) = moving(None);
    let at = |minutes| NOW + SignedDuration::from_mins(minutes);
    for (minutes, copies) in [(0, 0), (4, 0), (6, 1)] {
        let next = plan(&desired, &world.observed, at(minutes));
        assert_eq!(of_home(&next.actions).len(), copies, "{minutes}");
    }
}

#[test]
fn a_refused_step_is_retried_later_and_delays_no_other_step() {
    let home = Home {
        size_gib: 20,
        on_delete: OnDelete::Retain,
        moves: false,
    };
    let (mut world, desired) = small_world("free", "running", home, false);
    let refusal = Refusal {
        class: ErrorClass::of("VolumeModificationRateExceeded"),
        code: "VolumeModificationRateExceeded".into(),
        message: String::new(),
    };
    let until = NOW + HomeHold::rest(&refusal);
    world.observed.home.held.push(HomeHold {
        step: HomeStep::Grow,
        until,
        refusal: Some(refusal),
    });
    let steps = |now| {
        let next = plan(&desired, &world.observed, now);
        let actions = of_home(&next.actions).into_iter().map(HomeAction::step);
        actions.collect::<Vec<_>>()
    };
    assert_eq!(steps(NOW), [HomeStep::Attach]);
    assert_eq!(steps(until), [HomeStep::Attach, HomeStep::Grow]);
}

#[test]
fn no_two_volumes_share_a_token_and_a_repeated_one_has_the_same() {
    let first = record(1, None);
    let mut others = vec![first.clone(); 4];
    others[0].number = 2;
    others[1].zone = THERE.into();
    others[2].size_gib = 11;
    others[3].snapshot_id = Some("snap-1".into());
    let token = |record| volume_token("uid", record);
    for other in &others {
        assert_ne!(token(&first), token(other));
    }
    let mut later = first.clone();
    later.asked_at = None;
    later.volume_id = Some("vol-1".into());
    assert_eq!(token(&first), token(&later));
    assert_ne!(token(&first), volume_token("other", &first));
    assert_eq!(token(&first).len(), 64);
}
