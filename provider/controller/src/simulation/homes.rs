//! Home volumes: created once, found again, never lost, and never in two places.

use api::condition::{ConditionStatus, LAUNCHED, READY, SYNCED};
use api::home::HomeOnDelete;
use api::home::PoolHome;
use api::pool::{PoolReplace, SpotPool};
use memory_ec2::{Fault, RECLAIMED};
use provider_aws::{Tags, VolumeRequest};
use provider_core::{Market, NoticeKind, Offering};

use super::earth::{At, How, Stop};
use super::luck::{GONE_IMAGE, OTHER_IMAGE};
use super::ours::{CLUSTER, Instances as _, POOL_UID};
use super::provider::Behind;
use super::storage;
use super::store::Edit;
use super::world::{World, pool, size};
use crate::regions::TAG_KEYS;

/// A pool of one instance with a home.
pub fn with_home(on_delete: HomeOnDelete, moves: bool) -> SpotPool {
    let mut pool = pool(1);
    pool.spec.for_provider.home = Some(home(10, on_delete, moves));
    pool
}

pub fn home(size_gib: i32, on_delete: HomeOnDelete, moves: bool) -> PoolHome {
    PoolHome {
        size_gib,
        on_delete,
        moves,
    }
}

pub fn settled(moves: bool) -> World {
    let mut world = World::new(with_home(HomeOnDelete::Retain, moves));
    world.settle().unwrap();
    world
}

/// The instances that had the home, in order.
pub fn content(world: &World) -> Vec<String> {
    let earth = world.earth.lock();
    let mut homes = storage::homes(&earth);
    let content = homes.next().unwrap().content.clone();
    assert_eq!(homes.count(), 0, "there are two homes");
    content
}

pub fn lose(world: &World, id: &str) {
    let mut earth = world.earth.lock();
    let now = earth.now;
    earth.cloud.end(id, RECLAIMED, now);
}

pub fn zone_of(world: &World, id: &str) -> String {
    world.earth.lock().cloud.machine(id).offering.zone.clone()
}

pub fn no_capacity_in(world: &World, zone: &str) {
    let offering = |kind: &str| Offering {
        instance_type: kind.into(),
        zone: zone.into(),
        market: Market::Spot,
    };
    let mut earth = world.earth.lock();
    let none = ["g4dn.xlarge", "g5.xlarge"].map(offering);
    earth.faults.no_capacity.extend(none);
}

pub fn ready(world: &World) -> String {
    let ready = world.condition(READY);
    format!("{:?} {}", ready.status, ready.message)
}

#[test]
fn a_pool_is_ready_when_its_instance_has_the_home_and_not_before() {
    let mut world = World::new(with_home(HomeOnDelete::Retain, false));
    world.work_for(24);
    assert!(
        world.condition(READY).status == ConditionStatus::False,
        "{}",
        ready(&world)
    );
    assert!(
        ready(&world).contains("the home volume"),
        "{}",
        ready(&world)
    );
    world.settle().unwrap();
    world.assert_lawful();
    let shown = world.observation().home.unwrap();
    assert_eq!(shown.attached_to.as_deref(), Some("i-0"));
    assert_eq!(shown.volume_id.as_deref(), Some("vol-0"));
    assert_eq!(
        (shown.state.as_deref(), shown.size_gib),
        (Some("in-use"), Some(10))
    );
    assert_eq!(shown.zone, zone_of(&world, "i-0"));
    assert_eq!(content(&world), ["i-0"]);
    let earth = world.earth.lock();
    assert_eq!(earth.calls_of("CreateVolume"), 1);
    assert_eq!(earth.calls_of("AttachVolume"), 1);
}

#[test]
fn a_look_from_before_the_attachment_does_not_report_the_home_as_free() {
    let mut world = World::new(with_home(HomeOnDelete::Retain, false));
    while world.earth.lock().calls_of("AttachVolume") == 0 {
        world.work_for(1);
    }
    let writes = world.earth.lock().store.writes;
    for _ in 0..5 {
        // Every write of the status causes another reconcile of the pool.
        world.reconcile(Behind::default(), None, |_| {});
    }
    let earth = world.earth.lock();
    assert!(
        earth.store.writes <= writes + 1,
        "its status never comes to rest"
    );
    assert_eq!(earth.calls_of("AttachVolume"), 1);
}

#[test]
fn the_next_instance_finds_the_files_of_the_last_one() {
    let mut world = settled(false);
    for lost in ["i-0", "i-1", "i-2"] {
        lose(&world, lost);
        world.settle().unwrap();
    }
    world.assert_lawful();
    assert_eq!(content(&world), ["i-0", "i-1", "i-2", "i-3"]);
    let zones = ["i-0", "i-1", "i-2", "i-3"].map(|id| zone_of(&world, id));
    assert!(zones.iter().all(|zone| *zone == zones[0]), "{zones:?}");
}

#[test]
fn a_home_waits_for_the_interrupted_instance_to_end_and_is_never_forced_off_it() {
    let mut pool = with_home(HomeOnDelete::Retain, false);
    // The interrupted offering is unavailable, and the home binds the pool to the zone.
    let types = &mut pool.spec.for_provider.instance_types;
    types.push("g5.xlarge".into());
    let mut world = World::new(pool);
    world.settle().unwrap();
    world.earth.lock().announce("i-0", NoticeKind::Interruption);
    world.work_for(60);
    assert_eq!(content(&world), ["i-0"]);
    let said = ready(&world);
    assert!(
        said.contains("vol-0 comes when i-0, which still has it, is gone"),
        "{said}"
    );
    world.work_for(120);
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(content(&world), ["i-0", "i-1"]);
}

#[test]
fn a_stopped_workspace_keeps_its_home_and_finds_it_again() {
    let mut world = settled(false);
    world.edit(Edit::Size(size(0)));
    world.settle().unwrap();
    assert_eq!(content(&world), ["i-0"]);
    assert_eq!(world.observation().home.unwrap().attached_to, None);
    world.wait(7 * 24 * 3600);
    world.edit(Edit::Size(size(1)));
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(content(&world), ["i-0", "i-1"]);
}

/// A settled pool that replaces machines of another image, after an edit of its image.
fn after_an_edit_of_the_image(image: &'static str, other_image: bool) -> World {
    let mut pool = with_home(HomeOnDelete::Retain, false);
    pool.spec.for_provider.replace = Some(PoolReplace {
        other_image,
        ..PoolReplace::default()
    });
    let mut world = World::new(pool);
    world.settle().unwrap();
    world.edit(Edit::Image(image));
    world.work_for(300);
    world.assert_lawful();
    world
}

#[test]
fn another_image_replaces_the_machine_and_the_home_comes_along() {
    let mut world = after_an_edit_of_the_image(OTHER_IMAGE, true);
    world.settle().unwrap();
    assert_eq!(content(&world), ["i-0", "i-1"]);
    let shown = world.observation().instances;
    let running: Vec<_> = shown.iter().filter(|i| i.state == "running").collect();
    assert_eq!(running.len(), 1);
    assert_eq!(running[0].image_id, OTHER_IMAGE);
}

#[test]
fn an_image_that_does_not_exist_costs_nobody_a_machine() {
    let world = after_an_edit_of_the_image(GONE_IMAGE, true);
    assert_eq!(content(&world), ["i-0"]);
}

#[test]
fn another_image_replaces_no_machine_of_a_pool_that_does_not_ask_for_it() {
    let world = after_an_edit_of_the_image(OTHER_IMAGE, false);
    assert_eq!(content(&world), ["i-0"]);
}

#[test]
fn a_home_is_found_again_by_its_tags_when_the_status_was_lost() {
    let mut world = settled(false);
    for size_ in [1, 0, 1] {
        world.edit(Edit::Size(size(size_)));
        world.settle().unwrap();
        world.earth.lock().store.lose_status();
        world.provider = super::provider::Provider::new(&world.earth);
        world.settle().unwrap();
    }
    world.assert_lawful();
    assert_eq!(content(&world), ["i-0", "i-1"]);
    assert_eq!(world.earth.lock().calls_of("CreateVolume"), 1);
}

#[test]
fn a_home_that_is_not_listed_for_a_minute_is_not_made_twice() {
    for how in [How::DiesBefore, How::DiesAfter] {
        let mut world = World::new(with_home(HomeOnDelete::Retain, false));
        world.earth.lock().cloud.pace.lists_volume = jiff::SignedDuration::from_secs(60);
        world.earth.lock().stop = Some(Stop {
            at: At::Named("CreateVolume"),
            how,
        });
        world.work_for(120);
        world.settle().unwrap();
        world.assert_lawful();
        assert_eq!(content(&world), ["i-0"]);
    }
}

#[test]
fn changed_tags_after_a_lost_answer_make_no_second_home() {
    let mut world = World::new(with_home(HomeOnDelete::Retain, false));
    {
        let mut earth = world.earth.lock();
        earth.cloud.pace.lists_volume = jiff::SignedDuration::from_secs(40);
        earth
            .faults
            .once
            .push_back(("CreateVolume", Fault::LostReply));
    }
    while world.earth.lock().calls_of("CreateVolume") == 0 {
        world.work_for(2);
    }
    world.edit(Edit::Tag("team", "vision"));
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(content(&world), ["i-0"]);
}

#[test]
fn a_home_grows_and_tells_when_ec2_does_not_let_it_yet() {
    let mut world = settled(false);
    let grow = |world: &World, size| {
        world.edit(Edit::Home(home(size, HomeOnDelete::Retain, false)));
    };
    grow(&world, 20);
    world.settle().unwrap();
    assert_eq!(world.observation().home.unwrap().size_gib, Some(20));
    grow(&world, 30);
    world.work_for(600);
    let said = ready(&world);
    assert!(said.starts_with("True"), "{said}");
    assert!(
        said.contains("vol-0 cannot grow: VolumeModificationRateExceeded"),
        "{said}"
    );
    assert_eq!(
        world.earth.lock().calls_of("ModifyVolume"),
        2,
        "it hammers EC2"
    );
    world.wait(7 * 3600);
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(world.observation().home.unwrap().size_gib, Some(30));
    assert_eq!(ready(&world), "True ");
}

#[test]
fn a_pool_without_a_subnet_where_its_home_is_says_so() {
    let mut world = settled(false);
    let zone = zone_of(&world, "i-0");
    let other = if zone.ends_with('a') {
        "us-east-1b"
    } else {
        "us-east-1a"
    };
    world.edit(Edit::Subnets(vec![format!("subnet-{other}")]));
    world.turn();
    let launched = world.condition(LAUNCHED);
    assert_eq!(launched.reason, "Configuration");
    for part in ["spec.forProvider.subnetIds", &*zone, "vol-0"] {
        assert!(launched.message.contains(part), "{}", launched.message);
    }
    assert_eq!(content(&world), ["i-0"], "what runs goes on");
}

#[test]
fn a_reached_limit_of_storage_is_named_by_its_quota() {
    for (code, part) in [
        ("VolumeLimitExceeded", "L-7A658B76"),
        ("UnauthorizedOperation", "docs/aws/provider.json"),
        ("InsufficientVolumeCapacity", "InsufficientVolumeCapacity"),
    ] {
        let mut world = World::new(with_home(HomeOnDelete::Retain, false));
        let mut earth = world.earth.lock();
        earth
            .faults
            .always
            .insert("CreateVolume", Fault::Refused(code));
        drop(earth);
        world.work_for(600);
        let said = ready(&world);
        assert!(
            said.contains(part) && said.contains("cannot be made"),
            "{said}"
        );
        assert!(
            world.earth.lock().calls_of("CreateVolume") <= 4,
            "{code}: it hammers EC2"
        );
        world.settle().unwrap();
        world.assert_lawful();
    }
}

#[test]
fn a_home_that_somebody_deleted_is_not_replaced_silently() {
    let mut world = settled(false);
    {
        let mut earth = world.earth.lock();
        let now = earth.now;
        earth.cloud.end("i-0", RECLAIMED, now);
        earth.pass_time(jiff::SignedDuration::from_mins(10));
        let now = earth.now;
        earth.cloud.delete_volume("vol-0", now).unwrap();
    }
    world.work_for(900);
    let said = ready(&world);
    assert!(said.contains("vol-0 does not exist any more"), "{said}");
    assert_eq!(world.earth.lock().calls_of("CreateVolume"), 1);
    // The steps that the message names.
    world.edit(Edit::NoHome);
    world.work_for(60);
    world.edit(Edit::Home(home(10, HomeOnDelete::Retain, false)));
    world.earth.lock().written.clear();
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(content(&world), ["i-1"]);
}

#[test]
fn a_pool_without_the_right_to_see_volumes_hurts_no_other_pool() {
    let mut world = World::new(pool(1));
    let denied = Fault::Refused("UnauthorizedOperation");
    world
        .earth
        .lock()
        .faults
        .always
        .insert("DescribeVolumes", denied);
    // Another pool of the region has a home.
    world.provider.region().has_home("other-uid");
    world.work_for(60);
    assert!(ready(&world).starts_with("True"), "{}", ready(&world));
    let mut world = World::new(with_home(HomeOnDelete::Retain, false));
    world
        .earth
        .lock()
        .faults
        .always
        .insert("DescribeVolumes", denied);
    world.work_for(60);
    assert!(world.condition(SYNCED).message.contains("DescribeVolumes"));
    assert_eq!(world.earth.lock().calls_of("CreateVolume"), 0);
    world.settle().unwrap();
}

#[test]
fn volumes_of_others_are_never_touched() {
    let mut world = World::new(with_home(HomeOnDelete::Delete, true));
    for (number, tags) in [
        vec![],
        vec![
            (TAG_KEYS.cluster, CLUSTER),
            (TAG_KEYS.pool_uid, "other"),
            (TAG_KEYS.home, "1"),
        ],
        vec![
            (TAG_KEYS.cluster, "other"),
            (TAG_KEYS.pool_uid, POOL_UID),
            (TAG_KEYS.home, "1"),
        ],
        // An instance's own disk.
        vec![
            (TAG_KEYS.cluster, CLUSTER),
            (TAG_KEYS.pool_uid, "other"),
            (TAG_KEYS.launch, "1"),
        ],
    ]
    .into_iter()
    .enumerate()
    {
        let tags = tags.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned()));
        let request = VolumeRequest {
            token: format!("planted-{number}"),
            zone: "us-east-1a".into(),
            size_gib: 1,
            snapshot_id: None,
            kms_key_id: None,
            tags: tags.collect::<Tags>(),
        };
        let mut earth = world.earth.lock();
        let now = earth.now;
        earth.cloud.create_volume(&request, now).unwrap();
    }
    world.settle().unwrap();
    assert_eq!(content(&world), ["i-0"]);
    world.edit(Edit::Delete);
    world.settle().unwrap();
    world.assert_lawful();
    let earth = world.earth.lock();
    let left = earth.cloud.storage.disks.iter().filter(|d| d.is_live());
    assert_eq!(left.count(), 4);
}
