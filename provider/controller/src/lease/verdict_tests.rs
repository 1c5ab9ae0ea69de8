//! Tests of the messages of a lease in every state of its pool.

use std::sync::LazyLock;

use api::capacity::InstanceCapacityType;
use api::condition::Condition;
use api::duration::Duration;
use api::lease::{PoolReference, SpotLeaseParameters, SpotLeaseSpec};
use api::managed::ManagementAction;
use api::pool::{PoolLeases, PoolNotice, SpotPoolStatus};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use provider_runtime::conditions;

use super::*;
use crate::seals::SEALS;
use crate::simulation::pool_for_tests;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn lease() -> SpotLease {
    let spec = SpotLeaseSpec {
        management_policies: vec![ManagementAction::All],
        write_connection_secret_to_ref: None,
        for_provider: SpotLeaseParameters {
            pool_ref: PoolReference {
                name: "alice".into(),
            },
            owner: "bob".into(),
            authorized_keys: Vec::new(),
            lifetime: Some(Duration::of_seconds(600)),
        },
    };
    let mut lease = SpotLease::new("one", spec);
    lease.metadata.namespace = Some("team-vision".into());
    lease.metadata.uid = Some("uid".into());
    lease.metadata.generation = Some(1);
    lease.metadata.creation_timestamp = Some(Time(NOW));
    lease
}

/// The lease with its identity.
fn known(lease: &SpotLease) -> Known<'_> {
    static IDENTITY: LazyLock<Identity> = LazyLock::new(|| SEALS.first(&self::lease()));
    Known {
        lease,
        identity: &IDENTITY,
    }
}

/// A pool that has at most two instances for leases.
fn pool() -> SpotPool {
    let mut pool = pool_for_tests();
    let spec = &mut pool.spec.for_provider;
    spec.leases = Some(PoolLeases::default());
    spec.size.maximum = 2;
    pool.status = Some(SpotPoolStatus::default());
    pool
}

/// A pool whose status binds the lease to an instance in this state. The instance's tags name the
/// lease `told`.
fn lent(state: &str, told: Option<&str>) -> SpotPool {
    let mut pool = pool();
    let seen = &mut pool.status.as_mut().unwrap().at_provider;
    seen.leases.insert("uid".into(), "i-1".into());
    seen.size.leased = 1;
    seen.instances.push(PoolInstance {
        id: "i-1".into(),
        launch: 1,
        generation: None,
        lease: told.map(ToOwned::to_owned),
        notice: None,
        scheduled_event: None,
        impaired_since: None,
        missing_since: None,
        why: None,
        instance_type: "g4dn.xlarge".into(),
        zone: "us-east-1a".into(),
        capacity_type: InstanceCapacityType::Spot,
        image_id: "ami-1".into(),
        state: state.into(),
        state_reason: None,
        public_ip: Some("203.0.113.7".into()),
        private_ip: None,
        launched_at: None,
        activity: None,
        hourly_usd: None,
        host_key: None,
        console_host_keys: Vec::new(),
        setup: None,
    });
    pool
}

/// Whether the lease is ready, and the reason and message of its condition.
fn said(pool: Option<&SpotPool>) -> (bool, &'static str, String) {
    let verdict = ready(known(&lease()), pool, NOW);
    (
        verdict.status == ConditionStatus::True,
        verdict.reason,
        verdict.message,
    )
}

#[test]
fn a_warning_that_came_to_nothing_leaves_the_lease_after_minutes() {
    let mut pool = lent("running", Some("uid"));
    let announced = |minutes: i64| PoolNotice {
        kind: "Interruption".into(),
        at: Time(NOW - SignedDuration::from_mins(minutes)),
    };
    for (minutes, is_told) in [(1, true), (6, false)] {
        let seen = &mut pool.status.as_mut().unwrap().at_provider;
        seen.instances[0].notice = Some(announced(minutes));
        let (is_ready, _, message) = said(Some(&pool));
        assert!(is_ready);
        assert_eq!(message.contains("takes i-1 back"), is_told);
    }
}

#[test]
fn a_lease_is_ready_when_its_instance_runs_and_knows_whose_it_is() {
    let (is_ready, reason, message) = said(Some(&lent("running", Some("uid"))));
    assert_eq!(
        (is_ready, reason, message.as_str()),
        (true, "Available", "")
    );
    let shown = observation(known(&lease()), Some(&lent("running", Some("uid"))));
    assert_eq!(shown.instance_id.as_deref(), Some("i-1"));
    assert_eq!(shown.public_ip.as_deref(), Some("203.0.113.7"));
    for (state, told, expected, word) in [
        ("running", None, "Creating", "handed over"),
        ("running", Some("another"), "Creating", "handed over"),
        ("stopped", Some("uid"), "Unavailable", "start it"),
        ("shutting-down", Some("uid"), "Unavailable", "shutting-down"),
    ] {
        let (is_ready, reason, message) = said(Some(&lent(state, told)));
        assert_eq!((is_ready, reason), (false, expected), "{state} {told:?}");
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn who_waits_learns_what_for() {
    let mut full = pool();
    full.status.as_mut().unwrap().at_provider.size.leased = 2;
    let mut closed = pool();
    closed.spec.for_provider.leases = None;
    let mut leaving = pool();
    leaving.metadata.deletion_timestamp = Some(Time(NOW));
    let mut over = pool();
    over.spec.for_provider.ends_at = Some(Time(NOW));
    let mut refused = pool();
    let verdict = Verdict::new(
        LAUNCHED,
        ConditionStatus::False,
        "Quota",
        "raise L-3819A6DF",
    );
    let all: &mut Vec<Condition> = &mut refused.status.as_mut().unwrap().conditions;
    conditions::set(all, verdict, None, NOW);
    for (pool, expected, word) in [
        (
            None,
            "Unavailable",
            "there is no SpotPool alice in team-vision",
        ),
        (Some(&full), POOL_FULL, "raise its size.maximum of 2"),
        (Some(&closed), "Unavailable", "spec.forProvider.leases"),
        (Some(&leaving), "Unavailable", "being deleted"),
        (Some(&over), "Unavailable", "has ended"),
        (Some(&refused), "Creating", "Quota: raise L-3819A6DF"),
        (Some(&pool()), "Creating", "waits for an instance"),
    ] {
        let (is_ready, reason, message) = said(pool);
        assert_eq!((is_ready, reason), (false, expected), "{message}");
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn a_lease_whose_time_is_over_says_so_whatever_it_had() {
    let later = Timestamp::from_second(600).unwrap();
    let verdict = ready(known(&lease()), Some(&lent("running", Some("uid"))), later);
    assert_eq!(
        (verdict.status, verdict.reason),
        (ConditionStatus::False, EXPIRED)
    );
}

#[test]
fn a_pool_is_woken_for_what_it_has_to_do_and_for_nothing_else() {
    let mut served = lease();
    let mut status = SpotLeaseStatus::default();
    conditions::set(&mut status.conditions, Verdict::synced(), Some(1), NOW);
    served.status = Some(status);
    let lent = lent("running", Some("uid"));
    let over = Timestamp::from_second(600).unwrap();
    assert!(!has_work_for(None, known(&served), NOW));
    assert!(has_work_for(Some(&pool()), known(&served), NOW), "it waits");
    assert!(
        !has_work_for(Some(&lent), known(&served), NOW),
        "it has one"
    );
    assert!(
        has_work_for(Some(&lent), known(&served), over),
        "its time is over"
    );
    assert!(
        !has_work_for(Some(&pool()), known(&served), over),
        "and it has none"
    );
    served.metadata.generation = Some(2);
    assert!(
        has_work_for(Some(&lent), known(&served), NOW),
        "its keys may be others"
    );
}

#[test]
fn a_deleted_lease_waits_for_a_pool_that_may_have_forgotten() {
    assert_eq!(
        held(&lent("running", None), known(&lease())).as_deref(),
        Some("i-1")
    );
    assert_eq!(held(&pool(), known(&lease())), None);
    let mut restored = pool();
    restored.status = None;
    assert_eq!(
        held(&restored, known(&lease())),
        None,
        "it was never reconciled"
    );
    restored.metadata.finalizers = Some(vec![finalizer::MANAGED.into()]);
    assert!(held(&restored, known(&lease())).is_some());
}
