//! Leases: one lease has an instance alone, until the lease ends.

use api::pool::{END_LEASES, PoolLeases, PoolReplace, PoolSize, SpotPool};
use jiff::SignedDuration;
use memory_ec2::{Machine, RECLAIMED};

use super::earth::{At, How, Shared, Stop};
use super::luck::GONE_IMAGE;
use super::ours::Instances as _;
use super::provider::Behind;
use super::store::Edit;
use super::world::{World, pool};
use crate::regions::TAG_KEYS;

/// A pool with one idle instance.
pub fn warm(maximum: i32) -> SpotPool {
    let mut pool = pool(0);
    let spec = &mut pool.spec.for_provider;
    spec.leases = Some(PoolLeases::default());
    spec.size = PoolSize {
        minimum: 0,
        maximum,
        idle: 1,
    };
    pool
}

pub fn ask(world: &World, lifetime: Option<u16>) -> String {
    ask_on(&world.earth, lifetime)
}

pub fn ask_on(earth: &Shared, lifetime: Option<u16>) -> String {
    let mut earth = earth.lock();
    let (pool, now) = (earth.store.current().clone(), earth.now);
    earth.lending.ask(&pool, lifetime, now)
}

pub fn end(world: &World, uid: &str) {
    let mut earth = world.earth.lock();
    let now = earth.now;
    earth.lending.end(uid, now);
}

/// The live instance whose tags name a lease.
pub fn instance_of(world: &World, uid: &str) -> Option<String> {
    let earth = world.earth.lock();
    let told = |m: &&&Machine| m.tags.get(TAG_KEYS.lease).is_some_and(|told| told == uid);
    earth.cloud.live().iter().find(told).map(|m| m.id.clone())
}

pub fn live(world: &World) -> usize {
    world.earth.lock().cloud.live().len()
}

pub fn settled(maximum: i32) -> World {
    let mut world = World::new(warm(maximum));
    world.settle().unwrap();
    world
}

#[test]
fn a_warm_instance_is_handed_out_in_one_reconcile_and_the_next_one_warms_up() {
    let mut world = settled(3);
    let lease = ask(&world, None);
    let before = world.earth.lock().calls.len();
    world.turn();
    assert_eq!(instance_of(&world, &lease).as_deref(), Some("i-0"));
    let calls = world.earth.lock().calls.split_off(before);
    let calls: Vec<_> = calls
        .into_iter()
        .filter(|c| !["GetCallerIdentity", "DescribeSecurityGroups"].contains(c))
        .collect();
    let expected = [
        "DescribeInstances",
        "DescribeInstances",
        "CreateTags",
        "CreateFleet",
    ];
    assert_eq!(calls, expected, "the look, a fresh one, the tags, the next");
    let tags = world.earth.lock().cloud.machine("i-0").tags.clone();
    assert_eq!(tags[api::tags::OWNER], "alice");
    assert_eq!(
        tags["gpu.platform.acme.io:authorized-key-1"],
        "ssh-ed25519 AAAA"
    );
    assert_eq!(tags["gpu.platform.acme.io:authorized-key-2"], "");
    assert_eq!(world.events("Leased"), ["gave i-0 to the lease lease-1"]);
    world.settle().unwrap();
    assert_eq!(live(&world), 2);
    world.assert_lawful();
}

#[test]
fn an_instance_ends_with_its_lease_and_nobody_else_ever_gets_it() {
    let mut world = settled(3);
    let first = ask(&world, None);
    world.settle().unwrap();
    end(&world, &first);
    let second = ask(&world, None);
    world.turn();
    world.settle().unwrap();
    assert!(world.earth.lock().lease(&first).is_none());
    assert_ne!(instance_of(&world, &second).unwrap(), "i-0");
    let reasons = world.events("Terminated");
    assert_eq!(reasons, ["terminated i-0: its lease is over"]);
    world.assert_lawful();
}

#[test]
fn a_lease_ends_when_its_time_is_over_and_gets_nothing_afterwards() {
    let mut world = settled(3);
    let lease = ask(&world, Some(600));
    world.settle().unwrap();
    assert!(instance_of(&world, &lease).is_some());
    world.work_for(500);
    assert!(instance_of(&world, &lease).is_some());
    world.work_for(100);
    assert_eq!(
        instance_of(&world, &lease),
        None,
        "within seconds of its end"
    );
    world.settle().unwrap();
    world.work_for(3600);
    assert_eq!((instance_of(&world, &lease), live(&world)), (None, 1));
    world.assert_lawful();
}

#[test]
fn a_crash_at_any_step_leaves_a_lease_with_one_instance_tagged_for_it() {
    for (name, how) in [
        ("status", How::DiesBefore),
        ("status", How::DiesAfter),
        ("CreateTags", How::DiesBefore),
        ("CreateTags", How::DiesAfter),
        ("CreateFleet", How::DiesBefore),
        ("CreateFleet", How::DiesAfter),
    ] {
        let mut world = settled(3);
        let lease = ask(&world, None);
        world.turn_until(name, how);
        world.settle().unwrap();
        assert_eq!(
            instance_of(&world, &lease).as_deref(),
            Some("i-0"),
            "{name} {how:?}"
        );
        assert_eq!(live(&world), 2, "{name} {how:?}");
        world.assert_lawful();
    }
}

#[test]
fn a_lease_that_is_deleted_while_it_gets_an_instance_leaves_none_behind() {
    for name in ["status", "CreateTags"] {
        let mut world = settled(3);
        let lease = ask(&world, None);
        world.turn_meanwhile(name, |earth| {
            let mut earth = earth.lock();
            let now = earth.now;
            earth.lending.end(&lease, now);
            earth.let_leases_go();
        });
        world.settle().unwrap();
        assert!(world.earth.lock().lease(&lease).is_none(), "{name}");
        assert_eq!(
            (instance_of(&world, &lease), live(&world)),
            (None, 1),
            "{name}"
        );
        world.assert_lawful();
    }
}

#[test]
fn a_crash_after_the_binding_of_a_lease_that_is_gone_keeps_no_instance_for_it() {
    let mut world = settled(3);
    let lease = ask(&world, None);
    end(&world, &lease);
    world.earth.lock().let_leases_go();
    assert!(world.earth.lock().lease(&lease).is_none());
    // The provider's cache is older than the end of the lease.
    let behind = Behind {
        versions: 2,
        looks: 0,
    };
    let stop = Stop {
        at: At::Named("status"),
        how: How::DiesAfter,
    };
    world.provider.look(&world.earth);
    world.reconcile(behind, Some(stop), |_| {});
    let bound = |world: &World| world.observation().leases;
    assert!(bound(&world).contains_key(&lease), "no binding to forget");
    world.settle().unwrap();
    assert_eq!(bound(&world), [].into());
    assert_eq!((instance_of(&world, &lease), live(&world)), (None, 1));
    world.assert_lawful();
}

#[test]
fn a_removed_key_is_removed_from_the_instance() {
    let mut world = settled(3);
    let lease = ask(&world, None);
    world.settle().unwrap();
    {
        let mut earth = world.earth.lock();
        let now = earth.now;
        earth.lending.edit(&lease, now, |lease| {
            lease.spec.for_provider.authorized_keys = Vec::new();
        });
    }
    world.turn();
    let tags = world.earth.lock().cloud.machine("i-0").tags.clone();
    assert_eq!(tags["gpu.platform.acme.io:authorized-key-1"], "");
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn an_instance_that_ended_or_changed_its_owner_a_moment_ago_is_given_to_no_lease() {
    for is_given_away in [false, true] {
        let mut world = settled(3);
        let lease = ask(&world, None);
        world.provider.look(&world.earth);
        {
            let mut earth = world.earth.lock();
            let now = earth.now;
            if is_given_away {
                earth.give_away("i-0");
            } else {
                earth.cloud.end("i-0", RECLAIMED, now);
            }
        }
        world.reconcile(Behind::default(), None, |_| {});
        assert_eq!(world.earth.lock().calls_of("CreateTags"), 0);
        world.settle().unwrap();
        assert!(instance_of(&world, &lease).is_some());
        world.assert_lawful();
    }
}

#[test]
fn a_lease_whose_instance_aws_takes_back_gets_another_one() {
    let mut world = settled(3);
    let lease = ask(&world, None);
    world.settle().unwrap();
    {
        let mut earth = world.earth.lock();
        let now = earth.now;
        earth.cloud.end("i-0", RECLAIMED, now);
    }
    world.settle().unwrap();
    assert_ne!(instance_of(&world, &lease).unwrap(), "i-0");
    world.assert_lawful();
}

#[test]
fn an_invalid_spec_still_ends_instances_and_serves_leases() {
    let mut world = settled(3);
    let first = ask(&world, None);
    world.settle().unwrap();
    let image = world
        .earth
        .lock()
        .store
        .current()
        .spec
        .for_provider
        .image
        .id
        .clone();
    assert!(!image.is_empty());
    world.edit(Edit::Image(GONE_IMAGE));
    end(&world, &first);
    let second = ask(&world, None);
    world.work_for(120);
    assert_eq!(instance_of(&world, &first), None);
    assert!(instance_of(&world, &second).is_some());
    assert!(world.earth.lock().lease(&first).is_none());
    world.assert_lawful();
}

#[test]
fn a_deleted_pool_waits_for_its_leases_unless_told_otherwise() {
    let mut world = settled(3);
    let lease = ask(&world, None);
    world.settle().unwrap();
    world.edit(Edit::Delete);
    world.work_for(600);
    assert!(instance_of(&world, &lease).is_some());
    assert_eq!(live(&world), 1, "the idle one is gone");
    assert!(world.earth.lock().store.released_at.is_none());
    world.assert_lawful();
    world.edit(Edit::EndLeases);
    world.settle().unwrap();
    assert_eq!(live(&world), 0);
    world.assert_lawful();
    let pool = world.earth.lock().store.current().clone();
    assert_eq!(pool.metadata.annotations.unwrap()[END_LEASES], "true");
}

/// EC2 lists a terminated instance for an hour, and nobody looked in that time.
#[test]
fn a_lease_goes_although_ec2_has_forgotten_its_instance() {
    let mut world = settled(3);
    let lease = ask(&world, None);
    world.settle().unwrap();
    let id = instance_of(&world, &lease).unwrap();
    {
        let mut earth = world.earth.lock();
        let now = earth.now;
        earth.cloud.end(&id, RECLAIMED, now);
        earth.pass_time(SignedDuration::from_hours(2));
    }
    end(&world, &lease);
    world.settle().unwrap();
    assert!(world.earth.lock().lease(&lease).is_none());
    world.assert_lawful();
}

/// The image of a pool is deregistered. Its instances run, and have not drifted from anything.
#[test]
fn an_invalid_spec_still_hands_out_warm_instances_where_drifted_ones_are_replaced() {
    let mut pool = warm(3);
    pool.spec.for_provider.replace = Some(PoolReplace {
        drifted: true,
        ..PoolReplace::default()
    });
    let mut world = World::new(pool);
    world.settle().unwrap();
    world.edit(Edit::Image(GONE_IMAGE));
    world.work_for(60);
    let lease = ask(&world, None);
    world.work_for(60);
    assert_eq!(instance_of(&world, &lease).as_deref(), Some("i-0"));
    world.assert_lawful();
}

/// An on-demand instance that somebody protected costs its pool no more than itself.
#[test]
fn a_protected_instance_keeps_no_lease_from_its_instance() {
    let mut world = settled(4);
    let first = ask(&world, None);
    world.settle().unwrap();
    let id = instance_of(&world, &first).unwrap();
    world.earth.lock().cloud.machine(&id).is_protected = true;
    end(&world, &first);
    world.work_for(60);
    let second = ask(&world, None);
    world.work_for(120);
    assert!(instance_of(&world, &second).is_some());
    world.earth.lock().cloud.machine(&id).is_protected = false;
    world.settle().unwrap();
    world.assert_lawful();
}
