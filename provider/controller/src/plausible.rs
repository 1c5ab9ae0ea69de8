//! Detects lists that cannot be true. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use provider_aws::Ec2Error;
use provider_core::ErrorClass;

use crate::region::{Snapshot, Taken};

/// This many instances may vanish at once: EC2 is asked for each one by its id before anything
/// follows.
const FEW: usize = 4;
/// How long a list is doubted. An instance that is still missing after that is gone.
const DOUBT: SignedDuration = SignedDuration::from_mins(10);
/// A list that is older than this does not show what vanished since: EC2 lists terminated instances
/// for an hour.
const MEMORY: SignedDuration = SignedDuration::from_mins(30);

/// Doubts lists that lack most of the instances that lived, even as terminated ones. That is a
/// fault of EC2's API, or of an account, and the provider must not replace every instance because
/// of it.
#[derive(Default)]
pub struct Plausibility {
    believed: Option<Arc<Snapshot>>,
    doubted_since: Option<Timestamp>,
}

impl Plausibility {
    /// Returns the list, or an error as long as the list is doubted.
    pub fn check(&mut self, taken: Taken) -> Taken {
        let snapshot = taken?;
        let is_recent = |before: &&Arc<Snapshot>| snapshot.at.duration_since(before.at) < MEMORY;
        let before = self.believed.as_ref().filter(is_recent);
        if before.is_some_and(|before| vanished(before, &snapshot)) {
            let since = *self.doubted_since.get_or_insert(snapshot.at);
            if snapshot.at.duration_since(since) < DOUBT {
                return Err(implausible());
            }
        }
        self.doubted_since = None;
        self.believed = Some(snapshot.clone());
        Ok(snapshot)
    }
}

fn implausible() -> Ec2Error {
    Ec2Error {
        operation: "DescribeInstances",
        code: "ImplausibleList".into(),
        message: "most instances that ran a moment ago are missing, and EC2 lists even \
                  terminated ones for an hour; nothing is done until they are back, or missing \
                  for ten minutes"
            .into(),
        class: ErrorClass::Transient,
    }
}

/// Whether most of the instances that lived, and more than a few, are not listed at all.
fn vanished(before: &Snapshot, after: &Snapshot) -> bool {
    // The lists are nearly always the same, and this comparison costs nothing.
    if Arc::ptr_eq(&before.instances, &after.instances) {
        return false;
    }
    let listed = after.instances.values().flatten();
    let listed: BTreeSet<&str> = listed.map(|i| i.id.as_str()).collect();
    let lived = before.instances.values().flatten();
    let lived = lived.filter(|i| i.state.is_live());
    let (there, missing): (Vec<_>, Vec<_>) = lived.partition(|i| listed.contains(i.id.as_str()));
    missing.len() > FEW && missing.len() > there.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use provider_core::{Instance, InstanceState};

    use super::*;
    use crate::simulation::instance_for_tests;

    fn list(live: std::ops::Range<u32>, dead: std::ops::Range<u32>, minute: i64) -> Arc<Snapshot> {
        let instance = |number, state| Instance {
            pool_uid: format!("pool-{}", number % 3),
            state,
            ..instance_for_tests(&format!("i-{number}"))
        };
        let mut by_pool: BTreeMap<String, Vec<_>> = BTreeMap::new();
        let live = live.map(|number| instance(number, InstanceState::Running));
        let dead = dead.map(|number| instance(number, InstanceState::Terminated));
        for instance in live.chain(dead) {
            let of_pool = by_pool.entry(instance.pool_uid.clone());
            of_pool.or_default().push(Arc::new(instance));
        }
        Arc::new(Snapshot {
            instances: Arc::new(by_pool),
            at: Timestamp::from_second(minute * 60).unwrap(),
            ..Snapshot::default()
        })
    }

    #[test]
    fn a_list_that_lacks_most_instances_replaces_none_until_it_lasts() {
        let mut plausibility = Plausibility::default();
        assert!(plausibility.check(Ok(list(0..9, 0..0, 0))).is_ok());
        for minute in 1..11 {
            let doubted = plausibility
                .check(Ok(list(0..4, 0..0, minute)))
                .unwrap_err();
            assert_eq!(doubted.code, "ImplausibleList");
            assert!(!doubted.class.is_definite());
        }
        assert!(plausibility.check(Ok(list(0..4, 0..0, 11))).is_ok());
        assert!(plausibility.check(Ok(list(0..4, 0..0, 12))).is_ok());
    }

    #[test]
    fn a_list_that_is_whole_again_is_believed_at_once() {
        let mut plausibility = Plausibility::default();
        assert!(plausibility.check(Ok(list(0..9, 0..0, 0))).is_ok());
        assert!(plausibility.check(Ok(list(0..0, 0..0, 1))).is_err());
        assert!(plausibility.check(Ok(list(0..9, 0..0, 2))).is_ok());
        assert!(plausibility.check(Ok(list(0..0, 0..0, 3))).is_err());
    }

    #[test]
    fn terminated_instances_are_no_reason_to_doubt_a_list() {
        let mut plausibility = Plausibility::default();
        assert!(plausibility.check(Ok(list(0..9, 0..0, 0))).is_ok());
        assert!(
            plausibility.check(Ok(list(0..0, 0..9, 1))).is_ok(),
            "all were terminated"
        );
        let mut plausibility = Plausibility::default();
        assert!(plausibility.check(Ok(list(0..4, 0..0, 0))).is_ok());
        assert!(
            plausibility.check(Ok(list(0..0, 0..0, 1))).is_ok(),
            "a few are asked for by id"
        );
        let mut plausibility = Plausibility::default();
        assert!(plausibility.check(Ok(list(0..9, 0..0, 0))).is_ok());
        assert!(
            plausibility.check(Ok(list(0..0, 0..0, 90))).is_ok(),
            "nobody looked for long"
        );
    }
}
