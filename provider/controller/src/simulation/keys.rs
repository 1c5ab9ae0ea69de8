//! Public keys of a pool: who may log in to its instances, and who may no longer.

use api::condition::{ConditionStatus, READY, SYNCED};

use memory_ec2::Fault;

use super::earth::How;
use super::luck::GONE_IMAGE;
use super::ours::Instances as _;
use super::store::Edit;
use super::world::{World, pool};
use crate::regions::TAG_KEYS;

const ALICE: &str = "ssh-ed25519 AAAAalice";
const BOB: &str = "ssh-ed25519 AAAAbob";

/// A pool with one instance and these keys.
fn settled(keys: &[&'static str]) -> World {
    let mut world = World::new(pool(1));
    world.edit(Edit::Keys(Some(keys.to_vec())));
    world.settle().unwrap();
    world
}

/// The public keys that an instance reads.
fn keys(world: &World, id: &str) -> Vec<String> {
    let mut earth = world.earth.lock();
    let tags = earth.cloud.machine(id).tags.iter();
    let tags = tags.map(|(tag, key)| (tag.as_str(), key.as_str()));
    TAG_KEYS.authorized_keys(tags).into_values().collect()
}

#[test]
fn a_pool_is_not_ready_before_its_instance_has_the_keys() {
    let mut world = World::new(pool(1));
    world.edit(Edit::Keys(Some(vec![ALICE, BOB])));
    let denied = Fault::Refused("UnauthorizedOperation");
    world
        .earth
        .lock()
        .faults
        .always
        .insert("CreateTags", denied);
    world.work_for(120);
    let ready = world.condition(READY);
    assert_eq!(ready.status, ConditionStatus::False, "{ready:?}");
    let message = ready.message;
    assert!(
        message.contains("waits for the tags with the public keys"),
        "{message}"
    );
    let synced = world.condition(SYNCED).message;
    assert!(
        synced.contains("CreateTags: UnauthorizedOperation"),
        "{synced}"
    );
    world.earth.lock().faults.always.remove("CreateTags");
    world.settle().unwrap();
    assert_eq!(world.condition(READY).status, ConditionStatus::True);
    assert_eq!(keys(&world, "i-0"), [ALICE, BOB]);
    world.assert_lawful();
}

#[test]
fn a_removed_key_is_removed_from_the_running_instance() {
    let mut world = settled(&[ALICE, BOB]);
    world.edit(Edit::Keys(Some(vec![BOB])));
    world.turn();
    assert_eq!(keys(&world, "i-0"), [BOB]);
    world.edit(Edit::Keys(Some(Vec::new())));
    world.settle().unwrap();
    assert!(keys(&world, "i-0").is_empty());
    world.assert_lawful();
}

#[test]
fn a_key_is_removed_even_if_the_rest_of_the_spec_cannot_work() {
    let mut world = settled(&[ALICE, BOB]);
    world.edit(Edit::Image(GONE_IMAGE));
    world.edit(Edit::Keys(Some(vec![ALICE])));
    world.work_for(30);
    assert_eq!(keys(&world, "i-0"), [ALICE]);
    world.assert_lawful();
}

#[test]
fn another_instance_gets_the_keys_too_and_a_crash_loses_none() {
    for how in [How::DiesBefore, How::DiesAfter] {
        let mut world = settled(&[ALICE]);
        world.edit(Edit::Keys(Some(vec![BOB])));
        world.turn_until("CreateTags", how);
        world.settle().unwrap();
        assert_eq!(keys(&world, "i-0"), [BOB], "{how:?}");
        world.edit(Edit::Size(super::world::size(2)));
        world.settle().unwrap();
        assert_eq!(keys(&world, "i-1"), [BOB], "{how:?}");
        world.assert_lawful();
    }
}

#[test]
fn an_instance_that_lost_the_pools_tags_gets_no_key() {
    let mut world = settled(&[ALICE]);
    world.provider.look(&world.earth);
    world.earth.lock().give_away("i-0");
    world.edit(Edit::Keys(Some(vec![BOB])));
    world.turn();
    assert_eq!(keys(&world, "i-0"), [ALICE]);
    world.assert_lawful();
}

#[test]
fn a_pool_without_keys_writes_none() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    assert_eq!(world.earth.lock().calls_of("CreateTags"), 0);
    world.assert_lawful();
}
