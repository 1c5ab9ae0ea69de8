//! Deletion of a pool: all its resources go, and only then the pool.

use api::condition::SYNCED;
use jiff::SignedDuration;
use memory_ec2::Fault;

use super::earth::How;
use super::invariants;
use super::luck::{GONE_IMAGE, GOOD_IMAGE};
use super::ours::{Collection as _, Instances as _};
use super::provider::Turn;
use super::store::Edit;
use super::world::{World, pool};

/// Works until the pool is released. Panics if that takes longer than `seconds`.
fn assert_released_within(world: &mut World, seconds: i64) {
    world.work_for(seconds);
    world.assert_lawful();
    let earth = world.earth.lock();
    assert!(earth.store.released_at.is_some(), "not released");
    assert_eq!(invariants::remains(&earth), [""; 0]);
}

#[test]
fn a_deleted_pool_leaves_no_instance_and_no_group() {
    let mut world = World::new(pool(3));
    world.settle().unwrap();
    world.edit(Edit::Delete);
    assert_released_within(&mut world, 60);
    assert_eq!(world.events("Terminated").len(), 3);
    assert_eq!(world.events("DeletedGroup").len(), 1);
    assert_eq!(world.turn(), Turn::Gone);
}

#[test]
fn a_pool_deleted_while_ec2_hides_its_instance_leaves_none() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.hide("i-0", 60);
    world.edit(Edit::Delete);
    assert_released_within(&mut world, 180);
}

#[test]
fn a_deleted_pool_stays_while_ec2_cannot_be_reached() {
    let mut world = World::new(pool(2));
    world.settle().unwrap();
    world.edit(Edit::Delete);
    world.earth.lock().faults.is_unreachable = true;
    world.work_for(3 * 3600);
    assert_eq!(world.earth.lock().store.released_at, None);
    let message = world.condition(SYNCED).message;
    assert!(message.contains("Dispatch"), "{message}");
    world.earth.lock().faults.end();
    assert_released_within(&mut world, 120);
}

#[test]
fn a_deleted_pool_stays_while_it_may_not_terminate() {
    let mut world = World::new(pool(2));
    world.settle().unwrap();
    world.edit(Edit::Delete);
    let denied = Fault::Refused("UnauthorizedOperation");
    let always = |world: &World| {
        let mut earth = world.earth.lock();
        earth.faults.always.insert("TerminateInstances", denied);
    };
    always(&world);
    let turns = world.work_for(1200);
    assert!(turns <= 21, "{turns} reconciles hammer EC2");
    assert_eq!(world.earth.lock().store.released_at, None);
    world.earth.lock().faults.end();
    assert_released_within(&mut world, 120);
}

#[test]
fn a_pool_deleted_right_after_a_launch_leaves_nothing_running() {
    for fault in [None, Some(Fault::LostReply)] {
        let mut world = World::new(pool(2));
        let mut earth = world.earth.lock();
        earth.cloud.pace.lists_instance = SignedDuration::from_secs(80);
        let faults = &mut earth.faults.once;
        faults.extend(fault.map(|fault| ("CreateFleet", fault)));
        drop(earth);
        world.turn();
        world.edit(Edit::Delete);
        let calls = world.earth.lock().calls.len();
        world.work_for(60);
        let calls = world.earth.lock().calls.len() - calls;
        assert!(calls <= 60, "{calls} calls in a minute hammer EC2");
        assert_released_within(&mut world, 240);
    }
}

#[test]
fn a_pool_deleted_while_its_launch_is_throttled_leaves_nothing_running() {
    let mut world = World::new(pool(1));
    let throttled = Fault::Refused("RequestLimitExceeded");
    world.earth.lock().cloud.pace.lists_instance = SignedDuration::from_secs(80);
    world
        .earth
        .lock()
        .faults
        .always
        .insert("CreateFleet", throttled);
    world.work_for(180);
    let mut earth = world.earth.lock();
    earth.faults.always.insert("CreateFleet", Fault::LostReply);
    drop(earth);
    world.work_for(50);
    assert_eq!(world.earth.lock().cloud.live().len(), 1);
    world.edit(Edit::Delete);
    world.earth.lock().faults.end();
    assert_released_within(&mut world, 300);
}

#[test]
fn a_pool_deleted_in_the_middle_of_its_launches_leaves_nothing_running() {
    let mut world = World::new(pool(3));
    world.turn_meanwhile("CreateFleet", |earth| {
        let mut earth = earth.lock();
        let now = earth.now;
        earth.store.edit(Edit::Delete, now);
    });
    assert_released_within(&mut world, 300);
    assert_eq!(world.earth.lock().cloud.machines.len(), 3);
}

#[test]
fn a_pool_deleted_before_its_group_is_listed_leaves_no_group() {
    for how in [How::DiesBefore, How::DiesAfter] {
        let mut world = World::new(pool(1));
        world.earth.lock().cloud.pace.lists_group = SignedDuration::from_secs(15);
        let turn = world.turn_until("AuthorizeSecurityGroupIngress", how);
        assert_eq!(turn, Turn::Died);
        world.edit(Edit::Delete);
        assert_released_within(&mut world, 120);
    }
}

#[test]
fn a_pool_that_was_refused_and_mended_before_its_deletion_leaves_no_group() {
    for dies in [false, true] {
        let mut world = World::new(pool(1));
        world.earth.lock().cloud.pace.lists_group = SignedDuration::from_secs(15);
        world.edit(Edit::Image(GONE_IMAGE));
        world.turn();
        world.edit(Edit::Image(GOOD_IMAGE));
        if dies {
            world.turn_until("AuthorizeSecurityGroupIngress", How::DiesBefore);
        } else {
            let throttled = Fault::Refused("RequestLimitExceeded");
            let once = ("AuthorizeSecurityGroupIngress", throttled);
            world.earth.lock().faults.once.push_back(once);
            world.turn();
        }
        assert_eq!(world.earth.lock().cloud.firewall.ours().count(), 1);
        world.edit(Edit::Delete);
        assert_released_within(&mut world, 120);
    }
}

#[test]
fn a_pool_that_is_refused_right_after_its_group_was_made_leaves_no_group() {
    let mut world = World::new(pool(1));
    world.earth.lock().cloud.pace.lists_group = SignedDuration::from_secs(30);
    world.turn_until("AuthorizeSecurityGroupIngress", How::DiesBefore);
    assert_eq!(world.earth.lock().cloud.firewall.ours().count(), 1);
    world.edit(Edit::Image(GONE_IMAGE));
    world.turn();
    assert_eq!(world.observation().security_group_id, None, "it is known");
    world.edit(Edit::Delete);
    assert_released_within(&mut world, 120);
}

#[test]
fn a_pool_deleted_with_a_group_that_others_use_says_so_and_stays() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.earth.lock().give_away("i-0");
    world.edit(Edit::Delete);
    world.work_for(600);
    assert_eq!(world.earth.lock().store.released_at, None);
    let message = world.condition(SYNCED).message;
    assert!(message.contains("security group sg-1"), "{message}");
    world.earth.lock().end_what_others_do();
    assert_released_within(&mut world, 120);
}

#[test]
fn a_deleted_pool_whose_spec_cannot_work_goes_all_the_same() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.edit(Edit::Image(GONE_IMAGE));
    world.turn();
    world.edit(Edit::Delete);
    assert_released_within(&mut world, 120);
}
