//! Credentials of another account, and another identity of the control plane, find nothing of a
//! pool. The provider forgets nothing of the pool then, and launches nothing again.

use api::condition::{ConditionStatus, SYNCED};
use memory_ec2::{Cloud, Fault};

use super::earth::How;
use super::homes;
use super::ours::{ACCOUNT, CLUSTER, Instances as _};
use super::provider::Provider;
use super::store::Edit;
use super::world::{World, pool, size};

/// An account in which the pool has nothing.
pub const OTHER: &str = "222222222222";

/// Whether anything was created in an account.
pub fn has_resources(cloud: &Cloud) -> bool {
    let has_instances = !cloud.machines.is_empty() || !cloud.templates.is_empty();
    has_instances || !cloud.firewall.groups.is_empty() || !cloud.storage.disks.is_empty()
}

/// The ids of the live instances in the pool's account.
fn live(world: &World) -> Vec<String> {
    let earth = world.earth.lock();
    earth.cloud.live().iter().map(|m| m.id.clone()).collect()
}

/// Asserts that the condition names both accounts, and that nothing is in the second one.
fn assert_kept_away(world: &World) {
    let synced = world.condition(SYNCED);
    assert_eq!(synced.status, ConditionStatus::False);
    assert_eq!(synced.reason, "AccountChanged");
    for part in [ACCOUNT, OTHER, "ClusterProviderConfig"] {
        assert!(synced.message.contains(part), "{part}: {synced:?}");
    }
    assert_empty(world);
}

/// Asserts that nothing was created in the other account.
fn assert_empty(world: &World) {
    let cloud = &world.earth.lock().other_accounts[OTHER];
    assert!(!has_resources(cloud), "bought again");
}

#[test]
fn credentials_of_another_account_buy_nothing_again_and_forget_nothing() {
    let mut world = World::old(3);
    world.sign_for(OTHER);
    let before = world.observation();
    world.work_for(3600);
    assert_kept_away(&world);
    assert_eq!(world.observation(), before, "forgot something");
    assert_eq!(world.events("Interrupted"), [""; 0]);

    world.sign_for(ACCOUNT);
    let calls = world.earth.lock().calls_of("CreateFleet");
    world.settle().unwrap();
    world.work_for(600);
    assert_eq!(live(&world).len(), 3);
    assert_eq!(world.earth.lock().calls_of("CreateFleet"), calls);
    assert_eq!(world.condition(SYNCED).status, ConditionStatus::True);
    world.assert_lawful();
}

#[test]
fn a_launch_without_an_answer_is_not_repeated_in_another_account() {
    let mut world = World::new(pool(1));
    world.always("CreateFleet", Fault::LostReply);
    world.always("DescribeInstances", Fault::Refused("RequestLimitExceeded"));
    world.turn();
    world.earth.lock().faults.end();
    while world.observation().launches.is_empty() {
        world.always("CreateFleet", Fault::LostReply);
        world.turn();
        world.earth.lock().faults.end();
    }
    world.sign_for(OTHER);
    world.work_for(3600);
    assert_kept_away(&world);
    world.sign_for(ACCOUNT);
    world.settle().unwrap();
    assert_eq!(live(&world).len(), 1);
    world.assert_lawful();
}

#[test]
fn a_pool_that_is_deleted_under_other_credentials_waits_for_its_own() {
    let mut world = World::old(2);
    world.sign_for(OTHER);
    world.edit(Edit::Delete);
    world.work_for(3600);
    assert_kept_away(&world);
    assert_eq!(world.earth.lock().store.released_at, None, "leaked two");
    world.sign_for(ACCOUNT);
    world.settle().unwrap();
    assert!(world.earth.lock().store.released_at.is_some());
    assert_eq!(live(&world), [""; 0]);
    world.assert_lawful();
}

#[test]
fn a_home_in_another_account_is_not_called_deleted() {
    let mut world = homes::settled(false);
    let home = world.observation().home;
    world.sign_for(OTHER);
    world.work_for(3600);
    assert_kept_away(&world);
    assert_eq!(world.observation().home, home);
    world.sign_for(ACCOUNT);
    world.settle().unwrap();
    assert_eq!(world.observation().home, home);
    world.assert_lawful();
}

#[test]
fn an_account_that_aws_does_not_tell_forgets_nothing_and_ends_what_must_end() {
    let mut world = World::old(2);
    world.always("GetCallerIdentity", Fault::Refused("Dispatch"));
    world.sign_for(OTHER);
    let before = world.observation();
    world.work_for(600);
    assert_empty(&world);
    assert_eq!(world.observation().instances, before.instances);
    let group = world.observation().security_group_id;
    assert!(group.is_some(), "the pool has no group to forget");
    assert_eq!(group, before.security_group_id);
    let synced = world.condition(SYNCED);
    assert_eq!(synced.status, ConditionStatus::False);
    assert!(synced.message.contains("GetCallerIdentity"), "{synced:?}");

    world.sign_for(ACCOUNT);
    world.edit(Edit::Size(size(0)));
    world.work_for(60);
    assert_eq!(live(&world), [""; 0], "an end needs no account");
    world.assert_lawful();
}

#[test]
fn a_pool_without_resources_begins_in_another_account() {
    let mut pool = pool(1);
    pool.spec.for_provider.security_group_ids = Some(vec!["sg-of-others".into()]);
    pool.spec.for_provider.size = size(0);
    let mut world = World::new(pool);
    world.work_for(60);
    assert_eq!(world.observation().account.as_deref(), Some(ACCOUNT));
    world.sign_for(OTHER);
    world.work_for(60);
    assert_eq!(world.observation().account.as_deref(), Some(OTHER));
    assert_eq!(world.condition(SYNCED).status, ConditionStatus::True);
}

#[test]
fn the_account_is_in_the_status_with_the_first_promised_launch() {
    let mut world = World::new(pool(1));
    while world.observation().launches.is_empty() {
        world.turn_until("CreateFleet", How::DiesBefore);
    }
    assert_eq!(world.observation().account.as_deref(), Some(ACCOUNT));
    assert_eq!(world.observation().identity.as_deref(), Some(CLUSTER));
}

#[test]
fn another_identity_of_the_control_plane_buys_nothing_again() {
    let mut world = World::old(3);
    world.provider.cluster = "another-uid";
    world.work_for(3600);
    let synced = world.condition(SYNCED);
    assert_eq!(synced.reason, "IdentityChanged");
    for part in ["another-uid", CLUSTER] {
        assert!(synced.message.contains(part), "{synced:?}");
    }
    assert_eq!(live(&world).len(), 3);
    world.provider = Provider::new(&world.earth);
    world.settle().unwrap();
    assert_eq!(live(&world).len(), 3);
    world.assert_lawful();
}

#[test]
fn fifty_instances_of_an_older_provider_are_adopted_with_their_account() {
    let mut world = World::old(50);
    world.earth.lock().store.lose_place();
    assert_eq!(world.observation().account, None);
    let calls = world.earth.lock().calls_of("CreateFleet");
    world.provider = Provider::new(&world.earth);
    world.work_for(600);
    assert_eq!(live(&world).len(), 50);
    let earth = world.earth.lock();
    assert_eq!(earth.calls_of("CreateFleet"), calls);
    drop(earth);
    assert_eq!(world.observation().account.as_deref(), Some(ACCOUNT));
    world.assert_lawful();
}
