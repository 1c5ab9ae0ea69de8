//! The end of a pool's time, which comes without a further event.

use jiff::SignedDuration;

use super::luck::{GONE_IMAGE, GOOD_IMAGE};
use super::ours::Instances as _;
use super::provider::Turn;
use super::store::Edit;
use super::world::{World, pool, size};

fn running(number: i32) -> World {
    let mut world = World::new(pool(number));
    world.settle().unwrap();
    assert_eq!(live(&world), usize::try_from(number).unwrap());
    world
}

fn live(world: &World) -> usize {
    world.earth.lock().cloud.live().len()
}

#[test]
fn a_pool_ends_on_time_and_says_why() {
    let mut world = running(2);
    world.edit(Edit::EndsIn(Some(600)));
    world.work_for(595);
    assert_eq!(live(&world), 2, "before its time");
    world.work_for(7);
    assert_eq!(live(&world), 0, "two seconds late");
    let told = world.events("Terminated");
    assert_eq!(told.len(), 2);
    assert!(
        told.iter().all(|said| said.contains("time is over")),
        "{told:?}"
    );
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_pool_that_is_prolonged_in_time_goes_on() {
    let mut world = running(1);
    world.edit(Edit::EndsIn(Some(600)));
    world.work_for(590);
    world.edit(Edit::EndsIn(Some(3600)));
    world.work_for(60);
    assert_eq!(live(&world), 1);
    world.edit(Edit::EndsIn(None));
    world.work_for(2 * 3600);
    assert_eq!(live(&world), 1);
    assert_eq!(world.events("Terminated"), [""; 0]);
    world.assert_lawful();
}

#[test]
fn a_pool_that_has_ended_starts_nothing_until_it_is_given_time() {
    let mut world = World::new(pool(1));
    world.edit(Edit::EndsIn(Some(0)));
    world.work_for(600);
    assert_eq!(world.earth.lock().cloud.machines.len(), 0);
    world.edit(Edit::EndsIn(Some(600)));
    world.work_for(120);
    assert_eq!(live(&world), 1);
    world.assert_lawful();
}

/// Images are deregistered while instances run from them.
#[test]
fn instances_that_cannot_be_launched_again_still_end() {
    for end in [Edit::EndsIn(Some(60)), Edit::Size(size(0))] {
        let mut world = running(2);
        world.edit(Edit::Image(GONE_IMAGE));
        world.work_for(600);
        assert_eq!(
            live(&world),
            2,
            "a spec that cannot work ends nothing by itself"
        );
        world.edit(end);
        world.work_for(120);
        assert_eq!(live(&world), 0);
        assert_eq!(world.observation().size.desired, 0);
        world.edit(Edit::Image(GOOD_IMAGE));
        world.settle().unwrap();
        world.assert_lawful();
    }
}

/// A provider that was down at the end acts on it later.
#[test]
fn an_end_while_no_provider_runs_is_not_missed() {
    let mut world = running(1);
    world.edit(Edit::EndsIn(Some(60)));
    let away = SignedDuration::from_hours(1);
    world.earth.lock().pass_time(away);
    world.turn();
    assert_eq!(live(&world), 0);
    world.settle().unwrap();
    world.assert_lawful();
}

/// A user who asks later why an instance is gone finds exactly one event.
#[test]
fn an_end_has_its_event_although_its_status_could_not_be_written() {
    let mut world = running(1);
    world.edit(Edit::EndsIn(Some(0)));
    let turn = world.turn_meanwhile("TerminateInstances", |earth| {
        let mut earth = earth.lock();
        let now = earth.now;
        earth.store.edit(Edit::Size(size(0)), now);
    });
    assert_eq!(turn, Turn::Refused);
    world.settle().unwrap();
    assert_eq!(world.events("Terminated").len(), 1);
    assert_eq!(world.events("Interrupted"), [""; 0], "nobody lost it");
    world.assert_lawful();
}
