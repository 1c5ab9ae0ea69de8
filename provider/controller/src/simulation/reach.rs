//! Instances that EC2 does not show, and instances without the pool's tags, are neither doubled nor
//! forgotten.

use api::condition::{ConditionStatus, READY};
use jiff::SignedDuration;
use provider_aws::Tags;

use super::leases;
use super::ours::Instances as _;
use super::store::Edit;
use super::world::{World, size};

fn live(world: &World) -> Vec<String> {
    let earth = world.earth.lock();
    let machines = earth.cloud.machines.iter().filter(|m| m.is_live());
    machines.map(|m| m.id.clone()).collect()
}

/// Takes every tag from an instance.
fn take_tags(world: &World, id: &str) -> Tags {
    std::mem::take(&mut world.earth.lock().cloud.machine(id).tags)
}

/// Asserts that the pool names the instance and the next step, in one event and in `Ready`.
fn assert_told(world: &World, id: &str) {
    let ready = world.condition(READY);
    assert_eq!(ready.status, ConditionStatus::False);
    let told = world.events("TagsLost");
    assert_eq!(told.len(), 1, "{told:?}");
    for message in [ready.message.as_str(), told[0]] {
        for part in [id, "pool-uid", "terminate it"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}

#[test]
fn an_old_instance_that_ec2_does_not_show_for_a_minute_is_not_bought_again() {
    let mut world = World::old(1);
    world.hide("i-0", 90);
    world.work_for(60);
    assert!(world.observation().instances[0].missing_since.is_some());
    assert!(world.condition(READY).message.contains("i-0"));
    world.work_for(60);
    assert_eq!(live(&world), ["i-0"], "bought a second one");
    assert_eq!(world.events("Interrupted"), [""; 0]);
    world.settle().unwrap();
    assert_eq!(world.observation().instances[0].missing_since, None);
    world.assert_lawful();
}

#[test]
fn a_failed_call_does_not_prolong_the_wait_for_a_missing_instance() {
    let mut world = World::old(1);
    world.hide("i-0", 90);
    world.work_for(30);
    let since = world.observation().instances[0].missing_since.clone();
    assert!(since.is_some());
    world.earth.lock().faults.is_unreachable = true;
    world.work_for(20);
    world.earth.lock().faults.end();
    world.work_for(5);
    assert_eq!(world.observation().instances[0].missing_since, since);
}

#[test]
fn an_instance_that_ended_while_nobody_looked_is_replaced_two_minutes_later() {
    let mut world = World::old(1);
    {
        let mut earth = world.earth.lock();
        let now = earth.now;
        earth.cloud.end("i-0", "Client.UserInitiatedShutdown", now);
        earth.pass_time(SignedDuration::from_hours(2));
    }
    world.work_for(100);
    assert_eq!(live(&world), [""; 0], "two answers are no proof");
    world.work_for(60);
    assert_eq!(live(&world), ["i-1"]);
    assert_eq!(world.events("Interrupted").len(), 1);
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn an_instance_that_lost_its_tags_is_named_and_not_bought_again() {
    let mut world = World::old(2);
    let tags = take_tags(&world, "i-1");
    world.work_for(3600);
    assert_eq!(live(&world), ["i-0", "i-1"]);
    assert_told(&world, "i-1");
    world.earth.lock().cloud.machine("i-1").tags = tags;
    world.settle().unwrap();
    assert_eq!(world.condition(READY).status, ConditionStatus::True);
    assert_eq!(live(&world), ["i-0", "i-1"]);
    world.assert_lawful();
}

#[test]
fn the_surplus_of_a_pool_is_an_instance_that_the_provider_can_end() {
    let mut world = World::old(2);
    take_tags(&world, "i-1");
    world.work_for(60);
    world.edit(Edit::Size(size(1)));
    world.work_for(300);
    assert_eq!(live(&world), ["i-1"], "i-1 is newer, and out of reach");
    assert_told(&world, "i-1");
    world.assert_lawful();
}

#[test]
fn a_deleted_pool_waits_for_an_instance_without_tags_and_ends_the_others() {
    let mut world = World::old(2);
    take_tags(&world, "i-1");
    world.edit(Edit::Delete);
    world.work_for(3600);
    assert_eq!(live(&world), ["i-1"]);
    assert_eq!(
        world.earth.lock().store.released_at,
        None,
        "nobody knew of it"
    );
    assert!(world.observation().ending.is_empty(), "promised an end");
    assert_told(&world, "i-1");
    {
        let mut earth = world.earth.lock();
        let now = earth.now;
        earth.cloud.end("i-1", "Client.UserInitiatedShutdown", now);
    }
    world.work_for(600);
    assert!(world.earth.lock().store.released_at.is_some());
    world.assert_lawful();
}

#[test]
fn a_lease_gets_no_instance_that_lost_its_tags() {
    let mut world = leases::settled(3);
    world.work_for(600);
    take_tags(&world, "i-0");
    world.work_for(60);
    let lease = leases::ask(&world, None);
    world.work_for(600);
    let given = leases::instance_of(&world, &lease);
    assert!(given.is_some_and(|id| id != "i-0"));
    world.assert_lawful();
}

/// A reconcile a minute: the look, a describe by id, and one whatever the tags are.
#[test]
fn an_instance_without_tags_costs_no_storm_of_calls() {
    let mut world = leases::settled(3);
    world.edit(Edit::Keys(Some(vec!["ssh-ed25519 AAAA"])));
    let lease = leases::ask(&world, None);
    world.settle().unwrap();
    let id = leases::instance_of(&world, &lease).unwrap();
    take_tags(&world, &id);
    world.work_for(600);
    let calls = world.earth.lock().calls_of("DescribeInstances");
    world.work_for(30 * 60);
    let calls = world.earth.lock().calls_of("DescribeInstances") - calls;
    assert!(calls <= 30 * 4, "{calls} describes in half an hour");
    world.assert_lawful();
}
