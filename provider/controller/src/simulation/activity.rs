//! Reports of the agents of instances, which the agents write as tags.

use activity_report::{HOST_KEY, REPORT};
use api::pool::PoolInstance;
use kube::runtime::reflector::ObjectRef;

use super::ours::{Instances as _, POOL_UID};
use super::provider::{Behind, Turn};
use super::store::Edit;
use super::world::{World, pool};
use crate::observer;

const BUSY: &str =
    "v1 at=2026-11-22T10:00:00Z ssh=2026-11-22T10:00:00Z job=none gpu=absent kernel=absent";
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA";

/// The agent of the instance writes a tag. Returns whether that wakes the pool, the number of calls
/// to EC2, and the number of writes of the pool's next reconcile.
fn say(world: &mut World, key: &str, value: Option<&str>) -> (bool, usize, usize) {
    let before = world.provider.glance(&world.earth);
    {
        let mut earth = world.earth.lock();
        let tags = &mut earth.cloud.machine("i-0").tags;
        match value {
            Some(value) => drop(tags.insert(key.into(), value.into())),
            None => drop(tags.remove(key)),
        }
    }
    let after = world.provider.glance(&world.earth);
    let region = world.provider.region();
    let pool = world.earth.lock().store.current().clone();
    region.register(POOL_UID, ObjectRef::from_obj(&pool));
    let woken = observer::changed(region, &Some(before), &after);
    world.provider.look(&world.earth);
    let count = |world: &World| {
        let earth = world.earth.lock();
        (earth.calls.len(), earth.store.writes)
    };
    let (calls, writes) = count(world);
    let looked = world.reconcile(Behind::default(), None, |_| {});
    assert!(matches!(looked, Turn::Again(_)));
    let after = count(world);
    (!woken.is_empty(), after.0 - calls, after.1 - writes)
}

fn shown(world: &World) -> PoolInstance {
    world.observation().instances.remove(0)
}

#[test]
fn an_agents_report_is_in_the_status_at_the_next_look_and_changes_nothing_else() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    assert_eq!(
        (shown(&world).activity, shown(&world).host_key),
        (None, None)
    );
    assert_eq!(say(&mut world, REPORT, Some(BUSY)), (true, 0, 1));
    assert_eq!(say(&mut world, HOST_KEY, Some(KEY)), (true, 0, 1));
    assert_eq!(shown(&world).activity.as_deref(), Some(BUSY));
    assert_eq!(shown(&world).host_key.as_deref(), Some(KEY));
    // A repeated report wakes no pool.
    assert_eq!(say(&mut world, REPORT, Some(BUSY)), (false, 0, 0));
    assert_eq!(say(&mut world, REPORT, Some("garbage")), (true, 0, 1));
    assert_eq!(shown(&world).activity.as_deref(), Some("garbage"));
    assert_eq!(say(&mut world, REPORT, None), (true, 0, 1));
    assert_eq!(shown(&world).activity, None);
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_provider_leaves_an_agents_tags_as_they_are() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    say(&mut world, REPORT, Some(BUSY));
    world.edit(Edit::UserData("#cloud-config\n# other".into()));
    world.settle().unwrap();
    let mut earth = world.earth.lock();
    let tags = &earth.cloud.machine("i-0").tags;
    assert_eq!(tags.get(REPORT).map(String::as_str), Some(BUSY));
}
