//! Tests of the effect of leases on their pool, and of the tags that instances get.

use api::duration::Duration;
use api::lease::{PoolReference, SpotLeaseParameters, SpotLeaseSpec};
use api::managed::ManagementAction::{self, All, Create, Observe};
use api::pool::{PoolLeases, SpotPoolStatus};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::seals::SEALS;
use crate::simulation::pool_for_tests;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn pool() -> SpotPool {
    let mut pool = pool_for_tests();
    pool.spec.for_provider.leases = Some(PoolLeases::default());
    pool
}

/// A lease of the pool `alice` that was created `age` seconds ago.
fn lease(name: &str, age: i64) -> SpotLease {
    let spec = SpotLeaseSpec {
        management_policies: vec![All],
        write_connection_secret_to_ref: None,
        for_provider: SpotLeaseParameters {
            pool_ref: PoolReference {
                name: "alice".into(),
            },
            owner: "bob".into(),
            authorized_keys: vec!["ssh-ed25519 AAAA".into()],
            lifetime: None,
        },
    };
    let mut lease = SpotLease::new(name, spec);
    let meta = &mut lease.metadata;
    meta.namespace = Some("team-vision".into());
    meta.uid = Some(format!("uid-of-{name}"));
    let created = NOW.saturating_sub(SignedDuration::from_secs(age)).unwrap();
    meta.creation_timestamp = Some(Time(created));
    meta.finalizers = Some(vec![finalizer::MANAGED.into()]);
    lease
}

fn bind(pool: &mut SpotPool, lease: &SpotLease) {
    let status = pool.status.get_or_insert_with(SpotPoolStatus::default);
    let uid = lease.metadata.uid.clone().unwrap();
    status.at_provider.leases.insert(uid, "i-1".into());
}

fn leasing(pool: &SpotPool, leases: Vec<SpotLease>) -> Leasing {
    let leases: Vec<_> = leases.into_iter().map(Arc::new).collect();
    Leasing::of(pool, &leases, &SEALS, NOW)
}

/// The names of the leases, and whether they are over.
fn names(leasing: &Leasing) -> Vec<(&str, bool)> {
    let leases = leasing.leases.iter();
    leases.map(|l| (l.name.as_str(), l.is_over)).collect()
}

#[test]
fn the_oldest_lease_is_served_first() {
    let leasing = leasing(&pool(), vec![lease("late", 1), lease("early", 9)]);
    assert_eq!(names(&leasing), [("early", false), ("late", false)]);
}

#[test]
fn a_lease_without_the_finalizer_gets_no_instance() {
    let mut unkept = lease("unkept", 1);
    unkept.metadata.finalizers = None;
    assert_eq!(names(&leasing(&pool(), vec![unkept])), []);
}

#[test]
fn a_lease_of_another_pool_or_namespace_is_none_of_the_pools_business() {
    let mut elsewhere = lease("elsewhere", 1);
    elsewhere.metadata.namespace = Some("team-audio".into());
    let mut other = lease("other", 1);
    other.spec.for_provider.pool_ref.name = "bob".into();
    let pool = ObjectRef::from_obj(&pool());
    assert!(!is_of(&elsewhere, &pool) && !is_of(&other, &pool));
    assert!(is_of(&lease("own", 1), &pool));
}

#[test]
fn a_pool_that_stops_leasing_keeps_its_bound_leases() {
    let mut pool = pool_for_tests();
    let had = lease("had", 1);
    bind(&mut pool, &had);
    let leasing = leasing(&pool, vec![had, lease("waits", 1)]);
    assert_eq!(names(&leasing), [("had", false)]);
}

#[test]
fn the_shorter_of_two_lifetimes_counts_and_an_extension_is_followed() {
    let mut pool = pool();
    let mut lease = lease("one", 500);
    assert_eq!(expires_at(&lease, Some(&pool)), None);
    lease.spec.for_provider.lifetime = Some(Duration::of_seconds(600));
    let in_100 = NOW.saturating_add(SignedDuration::from_secs(100)).unwrap();
    assert_eq!(expires_at(&lease, Some(&pool)), Some(in_100));
    assert_eq!(leasing(&pool, vec![lease.clone()]).next_end, Some(in_100));
    let limits = PoolLeases {
        max_lifetime: Some(Duration::of_seconds(500)),
    };
    pool.spec.for_provider.leases = Some(limits);
    let leasing = leasing(&pool, vec![lease]);
    assert_eq!(
        (names(&leasing), leasing.next_end),
        (vec![("one", true)], None)
    );
}

#[test]
fn a_lease_gets_only_what_its_policies_permit() {
    let paused = [(pause::ANNOTATION.to_owned(), "true".to_owned())];
    let cases: [(&[ManagementAction], bool, bool); 4] = [
        (&[All], false, true),
        (&[All], true, false),
        (&[Observe], false, false),
        (&[Observe, Create], false, true),
    ];
    for (policies, is_paused, is_served) in cases {
        let mut waiting = lease("waiting", 1);
        waiting.spec.management_policies = policies.to_vec();
        waiting.metadata.annotations = is_paused.then(|| paused.clone().into());
        let served = !leasing(&pool(), vec![waiting.clone()]).leases.is_empty();
        assert_eq!(served, is_served, "{policies:?} {is_paused}");

        let mut pool = pool();
        bind(&mut pool, &waiting);
        waiting.metadata.deletion_timestamp = Some(Time(NOW));
        let is_over = policies == [All] && !is_paused;
        assert_eq!(
            names(&leasing(&pool, vec![waiting])),
            [("waiting", is_over)]
        );
    }
}

#[test]
fn a_deleted_lease_with_another_finalizer_keeps_its_instance() {
    let mut used = lease("used", 1);
    used.metadata.deletion_timestamp = Some(Time(NOW));
    used.metadata
        .finalizers
        .as_mut()
        .unwrap()
        .push("foregroundDeletion".into());
    assert_eq!(names(&leasing(&pool(), vec![used])), [("used", false)]);
}

#[test]
fn an_instance_is_told_every_key_and_of_every_change() {
    let told = |lease: &SpotLease| {
        let leasing = leasing(&pool(), vec![lease.clone()]);
        let told = leasing.told.values().next().unwrap().tags.clone();
        assert_eq!(told[tags::LEASE_DIGEST], leasing.leases[0].digest);
        told
    };
    let mut lease = lease("one", 1);
    let before = told(&lease);
    assert_eq!(before[tags::LEASE], "uid-of-one");
    assert_eq!(before[tags::LEASE_NAME], "team-vision/one");
    assert_eq!(before[tags::OWNER], "bob");
    assert_eq!(before[&key_tag(1)], "ssh-ed25519 AAAA");
    assert_eq!(before[&key_tag(5)], "");
    assert_eq!(before.len(), 9, "EC2 allows 50 in all");
    assert!(
        before.keys().all(|key| !key.contains('/')),
        "or EC2 hides them"
    );
    lease.spec.for_provider.authorized_keys.clear();
    let after = told(&lease);
    assert_eq!(after[&key_tag(1)], "");
    assert_ne!(after[tags::LEASE_DIGEST], before[tags::LEASE_DIGEST]);
}
