//! Resources of others are never touched.

use api::condition::{ConditionStatus, LAUNCHED};
use api::home::HomeOnDelete;
use memory_ec2::{Copy, RECLAIMED};
use provider_aws::Tags;
use serde_json::json;

use super::homes::with_home;
use super::ours::{CLUSTER, Instances as _, POOL_UID};
use super::provider::{Behind, Provider};
use super::store::Edit;
use super::world::{World, pool, size};
use crate::regions::TAG_KEYS;

fn is_live(world: &World, id: &str) -> bool {
    world.earth.lock().cloud.machine(id).is_live()
}

/// Reconciles with a look from before `change`.
fn turn_after(world: &mut World, change: impl FnOnce(&World)) {
    world.provider.look(&world.earth);
    change(world);
    world.reconcile(Behind::default(), None, |_| {});
}

#[test]
fn an_instance_given_to_another_pool_since_the_last_look_is_not_terminated() {
    for delete in [false, true] {
        let mut world = World::new(pool(2));
        world.settle().unwrap();
        world.edit(if delete {
            Edit::Delete
        } else {
            Edit::Size(size(0))
        });
        turn_after(&mut world, |world| world.earth.lock().give_away("i-1"));
        assert!(!is_live(&world, "i-0"));
        world.work_for(120);
        world.assert_lawful();
        assert!(is_live(&world, "i-1"), "deleted: {delete}");
    }
}

#[test]
fn an_instance_that_lost_its_tags_since_the_last_look_is_not_terminated() {
    let mut world = World::new(pool(2));
    world.settle().unwrap();
    world.edit(Edit::Size(size(0)));
    let calls = world.earth.lock().calls_of("DescribeInstances");
    turn_after(&mut world, |world| {
        world.earth.lock().cloud.machine("i-1").tags.clear();
    });
    let calls = world.earth.lock().calls_of("DescribeInstances") - calls;
    assert!(calls <= 3, "{calls} describes in one reconcile hammer EC2");
    world.work_for(120);
    world.assert_lawful();
    assert!(is_live(&world, "i-1"));
}

#[test]
fn a_status_that_names_a_snapshot_of_others_restores_nothing() {
    let mut world = World::new(with_home(HomeOnDelete::Retain, false));
    {
        let mut earth = world.earth.lock();
        let now = earth.now;
        earth.cloud.storage.copies.push(Copy {
            id: "snap-of-others".into(),
            tags: Tags::new(),
            volume_id: "vol-of-others".into(),
            begun: now,
            listed_from: now,
            deleted_at: None,
            content: vec!["their files".into()],
        });
        let mut pool = earth.store.current().clone();
        let home = json!({
            "generation": 1, "zone": "us-east-1a", "sizeGiB": 10, "snapshotId": "snap-of-others",
        });
        let status = json!({"atProvider": {"home": home}});
        pool.status = Some(serde_json::from_value(status).unwrap());
        earth.store.versions = vec![pool];
    }
    world.provider = Provider::new(&world.earth);
    world.work_for(600);
    world.assert_lawful();
    let earth = world.earth.lock();
    assert!(earth.cloud.storage.disks.is_empty());
    drop(earth);
    let told = world.events("HomeRefused");
    assert!(told[0].contains("snap-of-others"), "{told:?}");
    assert!(told[0].contains("status.atProvider.home"), "{told:?}");
}

#[test]
fn instances_and_groups_of_others_survive_the_pool() {
    let mut world = World::new(pool(1));
    let tags = |cluster, uid| {
        [
            (TAG_KEYS.cluster, cluster),
            (TAG_KEYS.pool_uid, uid),
            (TAG_KEYS.generation, "0"),
            (TAG_KEYS.launch, "1"),
        ]
    };
    world.plant("nobodys", &[]);
    world.plant("other pool", &tags(CLUSTER, "other-uid"));
    world.plant("other cluster", &tags("other-cluster", POOL_UID));
    world.settle().unwrap();
    world.edit(Edit::Delete);
    world.settle().unwrap();
    world.assert_lawful();
    for id in ["i-0", "i-1", "i-2"] {
        assert!(is_live(&world, id), "{id}");
    }
    assert_eq!(world.earth.lock().cloud.firewall.groups.len(), 3);
}

#[test]
fn a_launch_template_of_somebody_else_with_the_pools_name_launches_nothing() {
    let mut world = World::old(1);
    let mut earth = world.earth.lock();
    let (name, template) = earth.cloud.templates.iter_mut().next().unwrap();
    let name = name.clone();
    template.tags = Tags::new();
    template.image.id = "ami-0fedcba9876543210".into();
    let now = earth.now;
    earth.cloud.end("i-0", RECLAIMED, now);
    drop(earth);
    // A provider that began anew does not know which templates exist.
    world.provider = Provider::new(&world.earth);
    world.work_for(300);
    assert_eq!(world.earth.lock().cloud.live().len(), 0);
    let launched = world.condition(LAUNCHED);
    assert_eq!(launched.status, ConditionStatus::False, "{launched:?}");
    assert!(launched.message.contains(&name), "{launched:?}");

    world.earth.lock().cloud.templates.clear();
    world.settle().unwrap();
    let earth = world.earth.lock();
    assert_eq!(earth.cloud.live()[0].image_id, "ami-0123456789abcdef0");
    drop(earth);
    world.assert_lawful();
}
