//! The end of a pool's time, which comes without a further event.

use api::condition::{READY, SYNCED};
use jiff::SignedDuration;
use memory_ec2::{Buckets, Fault, Limits, Rate};

use super::earth::How;
use super::leases;
use super::luck::{GONE_IMAGE, GOOD_IMAGE};
use super::ours::Instances as _;
use super::provider::{Behind, Provider, Turn};
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
fn a_launch_is_not_repeated_beside_an_instance_whose_end_fails() {
    let mut world = running(1);
    world.edit(Edit::Size(size(2)));
    world.turn_until("CreateFleet", How::DiesBefore);
    world.always("TerminateInstances", Fault::Refused("Dispatch"));
    world.edit(Edit::Size(size(0)));
    world.turn();
    let known = world.observation();
    assert_eq!(known.ending.len(), 1, "{known:?}");
    assert_eq!(known.launches.len(), 1, "{known:?}");
    // There is room for one: the instance that does not end, or that of the launch.
    world.edit(Edit::Size(size(1)));
    world.work_for(60);
    assert_eq!(live(&world), 1);
    world.assert_lawful();
    world.earth.lock().faults.end();
    world.settle().unwrap();
    assert_eq!(live(&world), 1);
    world.assert_lawful();
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
fn a_lease_that_waits_when_a_pool_ends_gets_none_of_its_instances() {
    let mut world = leases::settled(3);
    world.edit(Edit::EndsIn(Some(0)));
    let lease = leases::ask(&world, None);
    world.work_for(600);
    assert_eq!(leases::instance_of(&world, &lease), None, "outlives endsAt");
    assert_eq!(live(&world), 0);
    world.assert_lawful();
}

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

/// EC2 terminates none of a zone's instances in a call that names a protected one.
#[test]
fn a_protected_instance_keeps_no_other_one_running() {
    let mut world = running(3);
    world.earth.lock().cloud.machine("i-0").is_protected = true;
    world.edit(Edit::Size(size(0)));
    world.work_for(120);
    let left: Vec<String> = {
        let earth = world.earth.lock();
        let live = earth.cloud.live().into_iter();
        live.map(|machine| machine.id.clone()).collect()
    };
    assert_eq!(left, ["i-0"]);
    let message = world.condition(SYNCED).message;
    assert!(
        message.contains("i-0 may not be terminated: take away its termination protection"),
        "{message}"
    );
    assert_eq!(world.events("Terminated").len(), 2);
    assert_eq!(world.events("Interrupted"), [""; 0]);
    world.earth.lock().cloud.machine("i-0").is_protected = false;
    world.settle().unwrap();
    world.assert_lawful();
}

/// EC2 ends a number of instances at once, and then some each second.
#[test]
fn ends_beyond_ec2s_bucket_go_on_at_its_rate() {
    let mut world = running(12);
    world.earth.lock().cloud.buckets = Buckets::new(Limits {
        ended: Some(Rate::new(5.0, 0.1)),
        ..Limits::AWS
    });
    world.edit(Edit::Size(size(0)));
    world.work_for(2);
    assert_eq!(live(&world), 7, "a full bucket ends at once");
    world.work_for(5 * 60);
    assert_eq!(live(&world), 0);
    assert_eq!(world.events("Terminated").len(), 12);
    assert_eq!(world.events("Interrupted"), [""; 0]);
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_hiccup_of_ec2_writes_no_status_and_a_failure_that_lasts_is_told() {
    let mut world = running(2);
    let writes = world.earth.lock().store.writes;
    world.earth.lock().faults.is_unreachable = true;
    world.work_for(60);
    world.earth.lock().faults.end();
    world.work_for(60);
    assert_eq!(world.earth.lock().store.writes, writes);
    world.earth.lock().faults.is_unreachable = true;
    world.work_for(600);
    let synced = world.condition(SYNCED);
    assert!(synced.message.contains("Dispatch"), "{}", synced.message);
    assert_eq!(world.earth.lock().store.writes, writes + 1);
    world.settle().unwrap();
    world.assert_lawful();
}

/// Asserts that `Synced` names the operation after one write of the status, and that the pool is
/// Ready.
fn assert_told_once(world: &mut World, operation: &str, writes: usize) {
    let synced = world.condition(SYNCED);
    assert!(synced.message.contains(operation), "{}", synced.message);
    assert_eq!(world.condition(READY).reason, "Available");
    assert_eq!(world.earth.lock().store.writes, writes + 1);
    world.settle().unwrap();
    world.assert_lawful();
}

/// A provider that starts reads the image before it judges the pool.
#[test]
fn a_pool_that_cannot_be_judged_for_a_moment_keeps_its_status() {
    let mut world = running(1);
    let writes = world.earth.lock().store.writes;
    let throttled = Fault::Refused("RequestLimitExceeded");
    world.always("DescribeImages", throttled);
    world.provider = Provider::new(&world.earth);
    world.work_for(50);
    assert_eq!(world.earth.lock().store.writes, writes);
    world.work_for(300);
    assert_told_once(&mut world, "DescribeImages", writes);
}

/// The operation is one that a pool at rest does not need.
#[test]
fn a_part_of_a_look_that_fails_for_long_is_told_and_changes_nothing_else() {
    let mut world = running(1);
    let writes = world.earth.lock().store.writes;
    let denied = Fault::Refused("UnauthorizedOperation");
    world.always("DescribeInstanceStatus", denied);
    world.work_for(600);
    assert_told_once(&mut world, "DescribeInstanceStatus", writes);
}

/// Two providers work at the same time during an upgrade. One of them hands out the instance that
/// the other one is about to end.
#[test]
fn an_instance_that_another_provider_handed_out_a_moment_ago_is_not_ended() {
    let mut world = World::new(leases::warm(3));
    world.settle().unwrap();
    let first = leases::ask(&world, None);
    world.settle().unwrap();
    let mut second = Provider::new(&world.earth);
    // The first provider ends the surplus of a smaller pool. It does not know of the lease.
    let mut size = world.earth.lock().store.current().spec.for_provider.size;
    size.idle = 0;
    world.edit(Edit::Size(size));
    let mut lease = String::new();
    let before = leases::live(&world);
    world.turn_meanwhile("TerminateInstances", |earth| {
        lease = leases::ask_on(earth, None);
        second.look(earth);
        second.drive(earth, Behind::default(), None, |_| {});
    });
    assert_eq!(before, 2);
    world.assert_lawful();
    world.settle().unwrap();
    assert!(leases::instance_of(&world, &first).is_some());
    assert!(leases::instance_of(&world, &lease).is_some());
    world.assert_lawful();
}

/// The provider dies between the record and the call.
#[test]
fn a_termination_that_was_begun_is_finished_and_says_its_reason() {
    for how in [How::DiesBefore, How::DiesAfter] {
        let mut world = running(1);
        world.edit(Edit::EndsIn(Some(0)));
        assert_eq!(world.turn_until("TerminateInstances", how), Turn::Died);
        let ending = world.observation().ending;
        assert!(ending["i-0"].contains("time is over"), "{ending:?}");
        // The pool is wanted again, and gets another instance.
        world.edit(Edit::EndsIn(None));
        world.settle().unwrap();
        let earth = world.earth.lock();
        let live: Vec<&str> = earth.cloud.live().iter().map(|m| m.id.as_str()).collect();
        assert_eq!(live, ["i-1"]);
        drop(earth);
        assert_eq!(world.events("Interrupted"), [""; 0], "nobody lost it");
        assert!(world.observation().ending.is_empty());
        world.assert_lawful();
    }
}

/// A person takes the permission away, and the owner prolongs the pool meanwhile.
#[test]
fn a_termination_that_ec2_refused_is_not_owed_any_more() {
    let mut world = running(1);
    let denied = Fault::Refused("UnauthorizedOperation");
    world.always("TerminateInstances", denied);
    world.edit(Edit::EndsIn(Some(0)));
    world.work_for(120);
    world.edit(Edit::EndsIn(Some(3600)));
    world.earth.lock().faults.end();
    world.work_for(600);
    assert_eq!(live(&world), 1);
    assert_eq!(world.earth.lock().cloud.machines.len(), 1);
    world.assert_lawful();
}
