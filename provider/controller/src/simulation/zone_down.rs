//! A zone of the region is down: EC2 fails every describe that names no instance, or one of this zone.

use api::condition::SYNCED;
use memory_ec2::{Fault, ZoneDown};

use super::homes::no_capacity_in;
use super::ours::Instances as _;
use super::store::Edit;
use super::world::{World, pool, size};

const HEALTHY: &str = "us-east-1a";
const DOWN: &str = "us-east-1b";

/// A pool with `i-0` in the healthy zone and `i-1` in the one that is down.
fn in_two_zones() -> World {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    no_capacity_in(&world, HEALTHY);
    world.edit(Edit::Size(size(2)));
    world.work_for(120);
    world.earth.lock().faults.end();
    // The healthy zone is available again.
    world.work_for(3600);
    assert_eq!(places(&world), [("i-0", HEALTHY), ("i-1", DOWN)].map(owned));
    zone_fails(&world, false);
    world
}

fn zone_fails(world: &World, fails_fleets: bool) {
    let zone = DOWN;
    world.earth.lock().faults.zone_down = Some(ZoneDown { zone, fails_fleets });
}

fn owned((id, zone): (&str, &str)) -> (String, String) {
    (id.to_owned(), zone.to_owned())
}

fn places(world: &World) -> Vec<(String, String)> {
    let earth = world.earth.lock();
    let live = earth.cloud.live().into_iter();
    live.map(|m| (m.id.clone(), m.offering.zone.clone()))
        .collect()
}

/// How many instances the pool has in the healthy zone.
fn healthy(world: &World) -> usize {
    let places = places(world).into_iter();
    places.filter(|(_, zone)| zone == HEALTHY).count()
}

/// The pool has two instances now, and once the zone is back. `Synced` names the zone meanwhile.
fn assert_both_stay(world: &mut World) {
    assert_eq!(places(world).len(), 2, "neither replaced nor forgotten");
    let synced = world.condition(SYNCED).message;
    assert!(synced.contains(DOWN), "names the zone: {synced}");
    world.earth.lock().faults.end();
    world.settle().unwrap();
    assert_eq!(places(world).len(), 2);
    world.assert_lawful();
}

/// The last look serves for five minutes. A zone is down for longer.
#[test]
fn a_lost_instance_is_replaced_while_another_zone_is_down() {
    let mut world = in_two_zones();
    world.work_for(600);
    {
        let mut earth = world.earth.lock();
        let now = earth.now;
        earth.cloud.end("i-0", "Client.UserInitiatedShutdown", now);
    }
    world.work_for(120);
    assert_eq!(healthy(&world), 1, "{:?}", places(&world));
    assert_both_stay(&mut world);
}

#[test]
fn an_instance_in_a_healthy_zone_ends_on_time_while_another_zone_is_down() {
    let mut world = in_two_zones();
    world.work_for(600);
    world.edit(Edit::EndsIn(Some(60)));
    world.work_for(65);
    assert_eq!(places(&world), [("i-1", DOWN)].map(owned));
    assert_eq!(world.events("Terminated").len(), 1);
    world.earth.lock().faults.end();
    world.work_for(60);
    assert_eq!(places(&world), []);
    world.settle().unwrap();
    world.assert_lawful();
}

/// A deleted pool waits until its instances are terminated.
#[test]
fn an_instance_that_shuts_down_while_another_zone_is_down_is_seen_to_end() {
    let mut world = in_two_zones();
    world.edit(Edit::EndsIn(Some(60)));
    world.work_for(300);
    let shown = world.observation().instances.into_iter();
    let shown: Vec<String> = shown.map(|instance| instance.id).collect();
    assert_eq!(shown, ["i-1"]);
    world.earth.lock().faults.end();
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn nothing_is_bought_for_an_instance_of_which_ec2_says_nothing() {
    let mut world = in_two_zones();
    world.work_for(3600);
    assert_eq!(places(&world).len(), 2);
    assert_eq!(world.events("Interrupted"), [""; 0]);
    world.edit(Edit::Size(size(3)));
    world.work_for(120);
    assert_eq!(healthy(&world), 2, "the pool grows where EC2 answers");
    world.earth.lock().faults.end();
    world.settle().unwrap();
    assert_eq!(places(&world).len(), 3);
    world.assert_lawful();
}

/// The instances of the fleet's answer are in no list yet.
#[test]
fn an_instance_that_is_launched_while_a_zone_is_down_becomes_ready() {
    let mut world = in_two_zones();
    world.work_for(600);
    world.edit(Edit::Size(size(3)));
    world.work_for(600);
    assert_eq!(world.observation().size.running, 3);
    world.earth.lock().faults.end();
    world.settle().unwrap();
    world.assert_lawful();
}

/// EC2 answers no describe then, for as long as the zone is down.
#[test]
fn a_pool_grows_although_all_its_instances_are_in_the_zone_that_is_down() {
    let mut world = World::new(pool(1));
    no_capacity_in(&world, HEALTHY);
    world.work_for(120);
    assert_eq!(places(&world), [("i-0", DOWN)].map(owned));
    world.earth.lock().faults.end();
    // The healthy zone is available again.
    world.work_for(3600);
    zone_fails(&world, false);
    world.work_for(600);
    world.edit(Edit::Size(size(2)));
    world.work_for(120);
    assert_eq!(healthy(&world), 1, "{:?}", places(&world));
    assert_both_stay(&mut world);
}

#[test]
fn a_region_of_which_no_zone_answers_is_not_asked_zone_by_zone_again_and_again() {
    let mut world = in_two_zones();
    world.earth.lock().faults.end();
    world.always("DescribeInstances", Fault::Refused("InternalError"));
    world.work_for(60);
    let calls = world.earth.lock().calls_of("DescribeInstances");
    world.work_for(600);
    let calls = world.earth.lock().calls_of("DescribeInstances") - calls;
    assert!(calls <= 3 * 10 * 60 / 5, "{calls} in ten minutes");
    assert_eq!(places(&world).len(), 2);
    world.assert_lawful();
}

/// AWS advises requests that name one zone: a request without a zone may fail while one is down.
#[test]
fn a_pool_grows_while_ec2_fails_every_launch_that_names_several_zones() {
    let mut world = in_two_zones();
    zone_fails(&world, true);
    world.work_for(60);
    world.edit(Edit::Size(size(4)));
    world.work_for(120);
    assert_eq!(healthy(&world), 3, "{:?}", places(&world));
    world.earth.lock().faults.end();
    world.settle().unwrap();
    assert_eq!(places(&world).len(), 4);
    world.assert_lawful();
}
