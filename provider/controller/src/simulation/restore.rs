//! A backup restores objects with other UIDs and without status. The provider adopts everything in
//! EC2 then: it buys nothing, ends nothing, and makes no home anew.

use jiff::SignedDuration;

use super::homes::{self, content, lose, no_capacity_in, zone_of};
use super::leases::{ask, instance_of, settled};
use super::ours::Instances as _;
use super::provider::Provider;
use super::store::Edit;
use super::world::{World, pool, size};

/// Restores the pool and its leases, and starts the provider anew.
fn restore(world: &mut World) {
    let mut earth = world.earth.lock();
    let now = earth.now;
    earth.store.restore();
    earth.lending.restore(now);
    drop(earth);
    world.provider = Provider::new(&world.earth);
}

/// The ids of all instances that were ever launched, and the live ones.
fn machines(world: &World) -> (usize, Vec<String>) {
    let cloud = &world.earth.lock().cloud;
    let live = cloud.live().iter().map(|m| m.id.clone()).collect();
    (cloud.machines.len(), live)
}

#[test]
fn every_instance_of_a_restored_pool_is_adopted_and_nothing_is_bought_or_ended() {
    let mut world = World::old(3);
    let before = machines(&world);
    restore(&mut world);
    world.settle().unwrap();
    world.work_for(3600);
    assert_eq!(machines(&world), before);
    let calls = world.earth.lock().calls_of("CreateSecurityGroup");
    assert_eq!(calls, 1, "the group is adopted too");
    world.assert_lawful();

    world.edit(Edit::Delete);
    world.settle().unwrap();
    assert_eq!(machines(&world).1, [""; 0], "the restored pool owns them");
    world.assert_lawful();
}

#[test]
fn the_home_of_a_restored_pool_is_adopted_whether_it_runs_or_rests() {
    for instances in [1, 0] {
        let mut world = homes::settled(false);
        world.edit(Edit::Size(size(instances)));
        world.settle().unwrap();
        let home = world.observation().home.unwrap();
        restore(&mut world);
        world.settle().unwrap();
        world.work_for(600);
        let restored = world.observation().home.unwrap();
        assert_eq!(restored.volume_id, home.volume_id);
        assert_eq!(restored.attached_to, home.attached_to);
        assert_eq!(world.earth.lock().calls_of("CreateVolume"), 1);

        world.edit(Edit::Size(size(0)));
        world.settle().unwrap();
        world.edit(Edit::Size(size(1)));
        world.settle().unwrap();
        assert_eq!(content(&world)[0], "i-0", "the next instance has the home");
        assert_eq!(world.earth.lock().calls_of("CreateVolume"), 1);
        world.assert_lawful();
    }
}

#[test]
fn a_pool_that_is_restored_amid_a_move_of_its_home_loses_no_file() {
    for seconds in [20, 60, 100, 130, 160, 200, 260] {
        let mut world = homes::settled(true);
        let zone = zone_of(&world, "i-0");
        no_capacity_in(&world, &zone);
        lose(&world, "i-0");
        world.work_for(seconds);
        restore(&mut world);
        world.work_for(1200);
        world.settle().unwrap();
        world.assert_lawful();
        assert_eq!(content(&world)[0], "i-0", "{seconds}");
        assert_ne!(zone_of(&world, "i-1"), zone, "{seconds}");
    }
}

#[test]
fn leases_that_are_restored_with_their_pool_keep_their_instances() {
    let mut world = settled(3);
    let leases = [ask(&world, None), ask(&world, None)];
    world.settle().unwrap();
    let had = leases.clone().map(|lease| instance_of(&world, &lease));
    let before = machines(&world);
    restore(&mut world);
    world.settle().unwrap();
    world.work_for(3600);
    assert_eq!(leases.clone().map(|lease| instance_of(&world, &lease)), had);
    assert_eq!(machines(&world), before);
    world.assert_lawful();
}

/// EC2 shows a terminated instance for an hour. So a restored pool does not know how many launches
/// there were, and begins again with the first number.
#[test]
fn a_restored_pool_gets_no_terminated_instance_for_a_repeated_launch_number() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.edit(Edit::Size(size(0)));
    world.settle().unwrap();
    let mut earth = world.earth.lock();
    earth.pass_time(SignedDuration::from_hours(2));
    earth.cloud.machines.clear();
    drop(earth);
    restore(&mut world);
    world.edit(Edit::Size(size(1)));
    world.settle().unwrap();
    assert_eq!(machines(&world).1.len(), 1);
    assert_eq!(world.observation().launch_generation, 1);
    world.assert_lawful();
}
