//! Homes that move, homes of deleted pools, and crashes during both.

use api::condition::LAUNCHED;
use api::home::HomeOnDelete;

use super::earth::{At, How, Stop};
use super::homes::{content, home, lose, no_capacity_in, ready, settled, with_home, zone_of};
use super::ours::Instances as _;
use super::store::Edit;
use super::world::{World, size};
use super::{invariants, storage};
use crate::regions::TAG_KEYS;

#[test]
fn a_home_that_does_not_move_waits_for_its_zone_and_says_so() {
    let mut world = settled(false);
    let zone = zone_of(&world, "i-0");
    no_capacity_in(&world, &zone);
    lose(&world, "i-0");
    world.work_for(900);
    assert_eq!(world.earth.lock().cloud.live().len(), 0);
    let said = ready(&world);
    for part in [&*zone, "vol-0", "home.moves of the policy"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(world.condition(LAUNCHED).reason, "Capacity");
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(content(&world), ["i-0", "i-1"]);
}

#[test]
fn a_home_that_moves_follows_capacity_with_everything_in_it() {
    let mut world = settled(true);
    let zone = zone_of(&world, "i-0");
    no_capacity_in(&world, &zone);
    lose(&world, "i-0");
    world.work_for(100);
    let said = ready(&world);
    assert!(said.contains("vol-0 moves to"), "{said}");
    world.work_for(600);
    world.assert_lawful();
    assert_eq!(content(&world), ["i-0", "i-1"]);
    assert_ne!(zone_of(&world, "i-1"), zone);
    let shown = world.observation().home.unwrap();
    assert_eq!(shown.zone, zone_of(&world, "i-1"));
    assert_eq!((shown.copy_of, shown.snapshot_id), (None, None));
    assert_eq!(storage::copies(&world.earth.lock()).count(), 0);
    assert!(ready(&world).starts_with("True"), "{}", ready(&world));
    world.settle().unwrap();
    let earth = world.earth.lock();
    let calls = &earth.calls;
    let at = |call: &str| calls.iter().rposition(|c| *c == call).unwrap();
    assert!(at("AttachVolume") < at("DeleteVolume"));
    assert!(at("DeleteVolume") < at("DeleteSnapshot"));
}

#[test]
fn a_status_that_is_lost_amid_a_move_loses_no_file() {
    for seconds in [20, 60, 100, 130, 160, 200, 260] {
        let mut world = settled(true);
        let zone = zone_of(&world, "i-0");
        no_capacity_in(&world, &zone);
        lose(&world, "i-0");
        world.work_for(seconds);
        world.earth.lock().store.lose_status();
        world.provider = super::provider::Provider::new(&world.earth);
        world.work_for(1200);
        world.settle().unwrap();
        world.assert_lawful();
        assert_eq!(content(&world)[0], "i-0", "{seconds}");
    }
}

#[test]
fn a_deleted_pool_leaves_its_home_and_says_where() {
    let mut world = settled(false);
    world.edit(Edit::Delete);
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(content(&world), ["i-0"]);
    let zone = zone_of(&world, "i-0");
    let told = format!("kept the home volume vol-0: 10 GiB in {zone}");
    assert_eq!(world.events("KeptHome"), [told]);
    let earth = world.earth.lock();
    let home = storage::homes(&earth).next().unwrap();
    assert!(home.tags.contains_key(TAG_KEYS.home_kept));
}

#[test]
fn a_deleted_pool_deletes_its_home_after_its_instance_where_the_policy_says_so() {
    let mut world = World::new(with_home(HomeOnDelete::Delete, false));
    world.settle().unwrap();
    world.edit(Edit::Delete);
    world.settle().unwrap();
    world.assert_lawful();
    let earth = world.earth.lock();
    assert_eq!(storage::homes(&earth).count(), 0);
    let calls = &earth.calls;
    let at = |call: &str| calls.iter().rposition(|c| *c == call).unwrap();
    assert!(at("TerminateInstances") < at("DeleteVolume"));
    drop(earth);
    assert_eq!(
        world.events("DeletedHome"),
        ["deleted the home volume vol-0"]
    );
}

#[test]
fn a_deleted_pool_keeps_a_snapshot_that_is_completed_before_the_home_goes() {
    let mut world = World::new(with_home(HomeOnDelete::Snapshot, false));
    world.settle().unwrap();
    world.edit(Edit::Delete);
    world.work_for(60);
    let shown = world.observation().home.unwrap();
    assert_eq!(shown.snapshot_id.as_deref(), Some("snap-0"));
    assert!(
        ready(&world).contains("a snapshot is made"),
        "{}",
        ready(&world)
    );
    assert_eq!(storage::homes(&world.earth.lock()).count(), 1);
    world.settle().unwrap();
    world.assert_lawful();
    let told = world.events("CopyingHome");
    assert!(told[0].contains("snap-0"), "{told:?}");
    let earth = world.earth.lock();
    assert_eq!(storage::copies(&earth).count(), 1);
}

/// The effects of a life.
struct Effects {
    before_deletion: usize,
    all: usize,
}

/// Creation, an interruption, a stop, a move, growth, and deletion.
fn live(on_delete: HomeOnDelete, stop: Option<Stop>) -> Effects {
    let mut world = World::new(with_home(on_delete, true));
    world.earth.lock().stop = stop;
    let context = format!("{on_delete:?} {stop:?}");
    let settle = |world: &mut World| {
        world
            .settle()
            .unwrap_or_else(|error| panic!("{context}: {error}"));
    };
    world.work_for(60);
    let first = |world: &World| {
        let live: Vec<String> = {
            let earth = world.earth.lock();
            let live = earth.cloud.live().into_iter();
            live.map(|m| m.id.clone()).collect()
        };
        live.first().cloned()
    };
    if let Some(id) = first(&world) {
        lose(&world, &id);
    }
    world.work_for(400);
    world.edit(Edit::Size(size(0)));
    world.work_for(60);
    world.edit(Edit::Home(home(20, on_delete, true)));
    no_capacity_in(&world, "us-east-1a");
    world.edit(Edit::Size(size(1)));
    world.work_for(400);
    settle(&mut world);
    let before_deletion = world.earth.lock().all_effects;
    world.edit(Edit::Delete);
    settle(&mut world);
    let earth = world.earth.lock();
    assert!(
        earth.violations.is_empty(),
        "{context}: {:?}",
        earth.violations
    );
    assert_eq!(invariants::remains(&earth), [""; 0], "{context}");
    Effects {
        before_deletion,
        all: earth.all_effects,
    }
}

#[test]
fn a_crash_before_or_after_any_effect_loses_and_doubles_no_home() {
    // The three policies make the same life up to the deletion, so one of them is enough for that part.
    let mut known = 0;
    for on_delete in [
        HomeOnDelete::Retain,
        HomeOnDelete::Delete,
        HomeOnDelete::Snapshot,
    ] {
        let life = live(on_delete, None);
        assert!(life.all > 40, "{} effects make no life", life.all);
        for number in known..life.all {
            for how in [How::DiesBefore, How::DiesAfter] {
                let at = At::OfAll(number);
                live(on_delete, Some(Stop { at, how }));
            }
        }
        known = life.before_deletion;
    }
}
