//! Resources that belong to no pool are ended, and no others.

use std::collections::BTreeSet;
use std::sync::Mutex;

use async_trait::async_trait;
use futures::FutureExt as _;
use jiff::SignedDuration;
use provider_aws::VolumeRequest;
use provider_runtime::events::Happened;

use super::ours::{CLUSTER, Instances as _, POOL_UID};
use super::world::{World, pool};
use crate::regions::TAG_KEYS;
use crate::sweeper::{Owners, SweepError, Sweeper};

const GRACE: SignedDuration = SignedDuration::from_mins(10);

/// The known pools and leases by UID.
#[derive(Default)]
struct Known {
    pools: BTreeSet<String>,
    leases: BTreeSet<String>,
    kept: Mutex<BTreeSet<String>>,
    is_unreachable: bool,
    told: Mutex<Vec<Happened>>,
}

#[async_trait]
impl Owners for Known {
    async fn pools(&self) -> Result<BTreeSet<String>, kube::Error> {
        if self.is_unreachable {
            return Err(super::store::refused("InternalError", 500));
        }
        Ok(self.pools.clone())
    }

    async fn leases(&self) -> Result<BTreeSet<String>, kube::Error> {
        Ok(self.leases.clone())
    }

    async fn kept(&self) -> Result<BTreeSet<String>, kube::Error> {
        Ok(self.kept.lock().unwrap().clone())
    }

    async fn keep(&self, pool_uid: &str, _: &str) -> Result<(), kube::Error> {
        self.kept.lock().unwrap().insert(pool_uid.to_owned());
        Ok(())
    }

    async fn tell(&self, happened: &[Happened]) {
        self.told.lock().unwrap().extend(happened.iter().cloned());
    }
}

/// A world with a pool of five instances, and with instances of a pool that does not exist.
fn world(orphans: usize) -> World {
    let mut world = World::new(pool(5));
    world.settle().unwrap();
    for number in 0..orphans {
        world.plant(&format!("orphan-{number}"), &tags("gone", CLUSTER));
    }
    world.wait(60);
    world
}

fn tags<'a>(uid: &'a str, cluster: &'a str) -> [(&'static str, &'a str); 3] {
    [
        (TAG_KEYS.cluster, cluster),
        (TAG_KEYS.pool_uid, uid),
        (TAG_KEYS.launch, "1"),
    ]
}

/// Makes a look every 15 seconds for this many minutes.
fn sweep(world: &mut World, sweeper: &mut Sweeper<'_>, minutes: i64) -> Result<(), SweepError> {
    for _ in 0..minutes * 4 {
        let seen = world.provider.glance(&world.earth).unwrap();
        let swept = sweeper.sweep(world.provider.region(), &seen);
        swept.now_or_never().unwrap()?;
        world.wait(15);
    }
    Ok(())
}

fn live(world: &World) -> BTreeSet<String> {
    let earth = world.earth.lock();
    let live = earth.cloud.machines.iter().filter(|m| m.is_live());
    live.map(|m| m.id.clone()).collect()
}

#[test]
fn an_instance_whose_pool_is_gone_is_ended_after_a_while_and_people_are_told() {
    let mut world = world(2);
    let known = Known {
        pools: [POOL_UID.to_owned()].into(),
        ..Known::default()
    };
    let mut sweeper = Sweeper::new(&known, GRACE);
    sweep(&mut world, &mut sweeper, 9).unwrap();
    assert_eq!(
        live(&world).len(),
        7,
        "it may be a pool that is being restored"
    );
    world.earth.lock().is_sweeping = true;
    sweep(&mut world, &mut sweeper, 15).unwrap();
    assert_eq!(live(&world).len(), 5);
    let told = known.told.lock().unwrap();
    let of = |reason: &str| told.iter().filter(|h| h.reason == reason).count();
    assert_eq!((of("OrphanTerminated"), of("OrphanDeleted")), (2, 2));
    assert!(told[0].message.contains("UID gone"), "{told:?}");
    world.assert_lawful();
}

/// Crossplane's way to leave a managed resource's external resource: policies without `Delete`.
#[test]
fn an_instance_that_its_deleted_pool_left_on_purpose_stays() {
    let mut world = world(1);
    let mut known = Known {
        pools: [POOL_UID.to_owned()].into(),
        ..Known::default()
    };
    let kept = known.keep("gone", "team-vision/alice");
    kept.now_or_never().unwrap().unwrap();
    world.earth.lock().is_sweeping = true;
    sweep(&mut world, &mut Sweeper::new(&known, GRACE), 60).unwrap();
    assert_eq!(live(&world).len(), 6);
    assert!(known.told.lock().unwrap().is_empty());
    // Without the record it is an orphan.
    known.kept = Mutex::default();
    sweep(&mut world, &mut Sweeper::new(&known, GRACE), 60).unwrap();
    assert_eq!(live(&world).len(), 5);
    world.assert_lawful();
}

#[test]
fn a_protected_orphan_keeps_no_other_one_running() {
    let mut world = world(3);
    world.earth.lock().cloud.machine("i-6").is_protected = true;
    world.earth.lock().is_sweeping = true;
    let known = Known {
        pools: [POOL_UID.to_owned()].into(),
        ..Known::default()
    };
    let mut sweeper = Sweeper::new(&known, GRACE);
    sweep(&mut world, &mut sweeper, 30).unwrap();
    let left: Vec<String> = live(&world).into_iter().skip(5).collect();
    assert_eq!(left, ["i-6"]);
    let told = known.told.lock().unwrap();
    let kept = told.iter().find(|one| one.reason == "OrphansKept").unwrap();
    assert!(kept.message.contains("i-6"), "{}", kept.message);
    world.assert_lawful();
}

#[test]
fn a_home_whose_pool_is_gone_is_never_deleted() {
    let mut world = world(1);
    let tags = [
        (TAG_KEYS.cluster, CLUSTER),
        (TAG_KEYS.pool_uid, "gone"),
        (TAG_KEYS.home, "1"),
    ];
    let request = VolumeRequest {
        token: "home".into(),
        zone: "us-east-1a".into(),
        size_gib: 10,
        snapshot_id: None,
        kms_key_id: None,
        tags: tags.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
    };
    {
        let mut earth = world.earth.lock();
        let now = earth.now;
        earth.cloud.create_volume(&request, now).unwrap();
        earth.is_sweeping = true;
    }
    let known = Known {
        pools: [POOL_UID.to_owned()].into(),
        ..Known::default()
    };
    world.provider.region().has_home("gone");
    let mut sweeper = Sweeper::new(&known, GRACE);
    sweep(&mut world, &mut sweeper, 60).unwrap();
    assert_eq!(live(&world).len(), 5, "its instance is");
    assert!(world.earth.lock().cloud.storage.disks[0].is_live());
}

#[test]
fn instances_with_a_pool_or_lease_or_of_others_are_left_alone() {
    let mut world = world(1);
    world.plant("foreign", &tags("gone", "other-cluster"));
    world.plant("other-credentials", &tags("other", CLUSTER));
    let mut leased = tags("gone", CLUSTER).to_vec();
    leased.push((TAG_KEYS.lease, "uid-of-alice"));
    world.plant("leased", &leased);
    world.earth.lock().is_sweeping = true;
    let known = Known {
        pools: [POOL_UID.to_owned(), "other".to_owned()].into(),
        leases: ["uid-of-alice".to_owned()].into(),
        ..Known::default()
    };
    let before = live(&world);
    let mut sweeper = Sweeper::new(&known, GRACE);
    sweep(&mut world, &mut sweeper, 30).unwrap();
    let ended: Vec<_> = before.difference(&live(&world)).cloned().collect();
    assert_eq!(ended, ["i-5"], "the orphan alone");
    world.assert_lawful();
}

#[test]
fn nothing_is_ended_while_nobody_can_tell_which_pools_exist() {
    let mut world = world(1);
    let known = Known {
        is_unreachable: true,
        ..Known::default()
    };
    let mut sweeper = Sweeper::new(&known, GRACE);
    let refused = sweep(&mut world, &mut sweeper, 30).unwrap_err();
    assert!(matches!(refused, SweepError::Owners(_)), "{refused}");
    assert_eq!(live(&world).len(), 6);
}

#[test]
fn a_mistake_that_makes_most_machines_orphans_ends_none() {
    let mut world = world(0);
    let known = Known::default();
    let mut sweeper = Sweeper::new(&known, GRACE);
    let refused = sweep(&mut world, &mut sweeper, 30).unwrap_err();
    assert!(matches!(refused, SweepError::TooMany(5)), "{refused}");
    assert_eq!(live(&world).len(), 5);
    assert_eq!(known.told.lock().unwrap()[0].reason, "OrphansKept");
    world.assert_lawful();
}
