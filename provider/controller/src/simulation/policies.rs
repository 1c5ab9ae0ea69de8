//! Management policies: the provider does nothing that they do not permit.

use api::condition::{READY, SYNCED};
use api::home::HomeOnDelete;
use api::home::PoolHome;
use api::managed::ManagementAction::{self, Create, Delete, Observe, Update};
use provider_runtime::policies;

use super::homes::with_home;
use super::store::Edit;
use super::world::{World, pool, size};

/// The operations that only read.
const LOOKS: [&str; 10] = [
    "GetCallerIdentity",
    "DescribeSpotPriceHistory",
    "DescribeVolumes",
    "DescribeSnapshots",
    "DescribeImages",
    "DescribeInstances",
    "DescribeInstanceStatus",
    "DescribeInstanceTypeOfferings",
    "DescribeSecurityGroups",
    "DescribeSubnets",
];

fn permit(world: &mut World, actions: &[ManagementAction]) {
    world.provider.permitted = policies::permitted(actions).unwrap();
}

/// The calls within this time that changed something.
fn changes(world: &mut World, seconds: i64) -> Vec<&'static str> {
    let before = world.earth.lock().calls.len();
    world.work_for(seconds);
    world.assert_lawful();
    let calls = world.earth.lock().calls.split_off(before);
    calls.into_iter().filter(|c| !LOOKS.contains(c)).collect()
}

#[test]
fn an_observed_pool_never_launches() {
    let mut world = World::new(pool(2));
    permit(&mut world, &[Observe]);
    assert_eq!(changes(&mut world, 600), [""; 0]);
    assert_eq!(world.condition(SYNCED).status.as_str(), "True");
    assert_eq!(world.condition(READY).status.as_str(), "False");
}

#[test]
fn an_observed_pool_shows_its_instances_and_loses_none() {
    let mut world = World::new(pool(2));
    world.settle().unwrap();
    permit(&mut world, &[Observe]);
    world.edit(Edit::Size(size(0)));
    world.edit(Edit::SshCidrs(vec!["198.51.100.0/24".into()]));
    assert_eq!(changes(&mut world, 600), [""; 0]);
    assert_eq!(world.observation().instances.len(), 2);
}

#[test]
fn a_pool_that_may_only_create_grows_and_never_shrinks() {
    let mut world = World::new(pool(1));
    permit(&mut world, &[Observe, Create]);
    world.work_for(120);
    assert_eq!(world.observation().size.running, 1);
    world.edit(Edit::Size(size(0)));
    assert!(!changes(&mut world, 600).contains(&"TerminateInstances"));
}

#[test]
fn a_pool_that_may_only_update_shrinks_and_never_grows() {
    let mut world = World::new(pool(2));
    world.settle().unwrap();
    permit(&mut world, &[Observe, Update]);
    world.edit(Edit::Size(size(1)));
    let shrinks = changes(&mut world, 300);
    assert!(shrinks.contains(&"TerminateInstances"), "{shrinks:?}");
    world.edit(Edit::Size(size(3)));
    assert_eq!(changes(&mut world, 300), [""; 0]);
}

#[test]
fn a_pool_that_may_only_delete_is_left_alone_until_then() {
    let mut world = World::new(pool(2));
    world.settle().unwrap();
    permit(&mut world, &[Observe, Delete]);
    world.edit(Edit::Size(size(0)));
    assert_eq!(changes(&mut world, 300), [""; 0]);
    world.edit(Edit::Delete);
    let cleans = changes(&mut world, 120);
    assert!(cleans.contains(&"TerminateInstances"), "{cleans:?}");
    assert!(world.earth.lock().store.released_at.is_some());
}

#[test]
fn an_observed_pool_touches_no_home() {
    let mut world = World::new(with_home(HomeOnDelete::Retain, true));
    permit(&mut world, &[Observe, Update]);
    assert_eq!(changes(&mut world, 60), [""; 0], "nothing may be created");
    permit(&mut world, &[ManagementAction::All]);
    world.settle().unwrap();
    permit(&mut world, &[Observe]);
    world.edit(Edit::Home(PoolHome {
        size_gib: 20,
        on_delete: HomeOnDelete::Retain,
        moves: true,
    }));
    assert_eq!(changes(&mut world, 600), [""; 0]);
}
