//! Limits how fast new pools begin to the rate that EC2 grants.
//!
//! A pool with its own group needs one call each of `CreateSecurityGroup`,
//! `AuthorizeSecurityGroupIngress`, `CreateLaunchTemplate` and `CreateFleet`. EC2 grants 50 of each
//! at once, and five a second after that ("Request throttling for the Amazon EC2 API"). If a
//! thousand pools begin at the same time, EC2 refuses most of their calls, and no calls are left
//! for replacing reclaimed instances. Pools that have begun do not wait. Namespaces take turns, so that
//! a thousand pools of one delay the others by a moment only.

use std::collections::BTreeMap;
use std::sync::Mutex;

use api::condition::{self, SYNCED};
use api::pool::SpotPool;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use provider_core::RateLimiter;

use crate::locking::lock;

/// A part of EC2's 50: the rest is for pools that have begun.
const BURST: i32 = 40;
/// Nine tenths of EC2's five a second: the rest is for pools that have begun.
const EVERY: SignedDuration = SignedDuration::from_millis(222);

/// The turns of new pools, by configuration and region.
#[derive(Debug, Default)]
pub struct Beginnings(Mutex<BTreeMap<Place, RateLimiter>>);

/// A configuration, by kind, namespace and name, and a region.
type Place = [String; 4];

impl Beginnings {
    /// The time of the pool's turn. It is now for a pool that has begun.
    pub fn turn(&self, pool: &SpotPool, now: Timestamp) -> Timestamp {
        let mut places = lock(&self.0);
        let turns = places
            .entry(place(pool))
            .or_insert_with(|| RateLimiter::new(BURST, EVERY));
        let uid = pool.uid().unwrap_or_default();
        if has_begun(pool) {
            turns.forget(&uid);
            return now;
        }
        turns.of(&uid, &pool.namespace().unwrap_or_default(), now)
    }
}

/// Whether the pool was reconciled before, or is being deleted.
fn has_begun(pool: &SpotPool) -> bool {
    let status = pool.status.as_ref();
    pool.metadata.deletion_timestamp.is_some()
        || status.is_some_and(|s| condition::find(&s.conditions, SYNCED).is_some())
}

fn place(pool: &SpotPool) -> Place {
    let reference = &pool.spec.provider_config_ref;
    let namespace = match reference.kind {
        api::managed::ProviderConfigKind::ClusterProviderConfig => String::new(),
        api::managed::ProviderConfigKind::ProviderConfig => pool.namespace().unwrap_or_default(),
    };
    [
        reference.kind.as_str().to_owned(),
        namespace,
        reference.name.clone(),
        pool.spec.for_provider.region.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use provider_runtime::conditions::Verdict;

    use super::*;
    use crate::status;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn pool(number: usize, region: &str) -> SpotPool {
        let document = serde_json::json!({
            "apiVersion": "gpu.platform.acme.io/v1alpha1",
            "kind": "SpotPool",
            "metadata": {"name": "a", "namespace": "gpu", "uid": number.to_string()},
            "spec": {"forProvider": {
                "region": region,
                "size": {"minimum": 1, "maximum": 1},
                "capacityType": "Spot",
                "instanceTypes": ["g5.xlarge"],
                "image": {"id": "ami-00000000000c0de01"},
            }},
        });
        serde_json::from_value(document).unwrap()
    }

    fn crowd() -> Beginnings {
        let beginnings = Beginnings::default();
        for number in 0..1000 {
            beginnings.turn(&pool(number, "us-east-1"), NOW);
        }
        beginnings
    }

    #[test]
    fn a_pool_that_lost_an_instance_does_not_queue_behind_a_thousand_new_ones() {
        let beginnings = crowd();
        let mut lost = pool(1001, "us-east-1");
        assert!(beginnings.turn(&lost, NOW) > NOW);
        let mut status = api::pool::SpotPoolStatus::default();
        status::conclude(&mut status, [Verdict::synced()], None, NOW);
        lost.status = Some(status);
        assert_eq!(beginnings.turn(&lost, NOW), NOW);
    }

    #[test]
    fn a_thousand_pools_of_one_namespace_do_not_keep_another_waiting() {
        let beginnings = crowd();
        let mut of_others = pool(1001, "us-east-1");
        of_others.metadata.namespace = Some("others".into());
        let wait = beginnings.turn(&of_others, NOW).duration_since(NOW);
        assert!(wait < SignedDuration::from_secs(1), "{wait}");
    }

    #[test]
    fn a_pool_that_is_deleted_before_it_began_goes_at_once() {
        let beginnings = crowd();
        let mut deleted = pool(999, "us-east-1");
        deleted.metadata.deletion_timestamp = Some(Time(NOW));
        assert_eq!(beginnings.turn(&deleted, NOW), NOW);
    }

    #[test]
    fn a_crowd_in_one_region_keeps_nobody_waiting_in_another() {
        let beginnings = crowd();
        assert_eq!(beginnings.turn(&pool(1001, "eu-west-1"), NOW), NOW);
        let last = beginnings.turn(&pool(999, "us-east-1"), NOW);
        let minutes = last.duration_since(NOW).as_secs() / 60;
        assert_eq!(minutes, 3, "as fast as EC2 grants: {last}");
    }
}
