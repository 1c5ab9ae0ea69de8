//! How often this process calls EC2, by account, region and API.
//!
//! EC2 grants each account a number of calls per second, for each API and region ("Request throttling
//! for the Amazon EC2 API" in the Amazon EC2 Developer Guide). All configurations of an account share
//! this number with each other, and with other programs. The provider takes less than EC2 grants.
//!
//! What ends instances does not wait here. `TerminateInstances` and the describe before it are batched
//! (`provider/aws/src/batcher.rs`), and their share of `DescribeInstances` is kept free.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use provider_aws::Ec2Error;
use provider_core::ErrorClass;

use crate::by_account::ByAccount;
use crate::locking::lock;

/// The longest wait for a turn. Reconciles are limited in number, and a call that waits longer would
/// keep a pool that has to end from its reconcile.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time between two calls, and the calls at once after a rest.
struct Granted {
    every: Duration,
    at_once: u32,
}

/// Nine tenths of what EC2 grants for reads: 20 a second, after 100 at once.
const READS: Granted = granted(55, 90);
/// The same for `DescribeInstances`, less five a second for instances that end.
const INSTANCES: Granted = granted(74, 67);
/// The same for changes: 5 a second, after 50 at once.
const CHANGES: Granted = granted(222, 45);
/// The same for tags: 10 a second, after 100 at once.
const TAGS: Granted = granted(111, 90);

const fn granted(milliseconds: u64, at_once: u32) -> Granted {
    Granted {
        every: Duration::from_millis(milliseconds),
        at_once,
    }
}

/// The buckets of every account and place.
pub type Paces = ByAccount<Buckets>;

/// The pace of one client. Its account is not known before AWS has told it.
#[derive(Debug)]
pub struct Pace {
    all: Arc<Paces>,
    place: String,
    buckets: Mutex<Arc<Buckets>>,
}

impl Pace {
    /// The pace of a client. `place` is its server and region.
    pub fn new(all: Arc<Paces>, place: &str) -> Self {
        Self {
            all,
            place: place.to_owned(),
            buckets: Mutex::default(),
        }
    }

    /// Shares the calls with every other client of the account and place from now on.
    pub fn share(&self, account: &str) {
        *lock(&self.buckets) = self.all.of(account, &self.place);
    }

    /// Waits for the turn of a call. The error is the one with which EC2 would throttle it.
    pub async fn turn(&self, operation: &'static str) -> Result<(), Ec2Error> {
        self.turn_within(PATIENCE, operation).await
    }

    async fn turn_within(
        &self,
        mut patience: Duration,
        operation: &'static str,
    ) -> Result<(), Ec2Error> {
        loop {
            let buckets = lock(&self.buckets).clone();
            let Err(wait) = buckets.take(operation) else {
                return Ok(());
            };
            let Some(left) = patience.checked_sub(wait) else {
                return Err(throttled(operation));
            };
            patience = left;
            tokio::time::sleep(wait).await;
        }
    }
}

fn throttled(operation: &'static str) -> Ec2Error {
    Ec2Error {
        operation,
        code: "RequestLimitExceeded".into(),
        message: "the provider keeps below the calls that EC2 grants the account; it tries again"
            .into(),
        class: ErrorClass::Throttled,
    }
}

type Bucket<C> = RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// The buckets of one account and region, by operation.
pub struct Buckets<C: Clock = MonotonicClock> {
    clock: C,
    by_operation: Mutex<BTreeMap<&'static str, Arc<Bucket<C>>>>,
}

impl<C: Clock + Default> Default for Buckets<C> {
    fn default() -> Self {
        Self {
            clock: C::default(),
            by_operation: Mutex::default(),
        }
    }
}

impl<C: Clock> std::fmt::Debug for Buckets<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Buckets")
    }
}

impl<C: Clock + Clone> Buckets<C> {
    /// Takes a call from the bucket of an operation, or tells after which time there will be one.
    fn take(&self, operation: &'static str) -> Result<(), Duration> {
        let bucket = {
            let mut buckets = lock(&self.by_operation);
            let new = || RateLimiter::direct_with_clock(quota(operation), self.clock.clone());
            buckets
                .entry(operation)
                .or_insert_with(|| Arc::new(new()))
                .clone()
        };
        let taken = bucket.check();
        taken.map_err(|until| until.wait_time_from(self.clock.now()))
    }
}

fn quota(operation: &str) -> Quota {
    let is_read = operation.starts_with("Describe") || operation.starts_with("Get");
    let granted = match operation {
        "DescribeInstances" => INSTANCES,
        "CreateTags" => TAGS,
        _ if is_read => READS,
        _ => CHANGES,
    };
    let at_once = NonZeroU32::new(granted.at_once).unwrap_or(NonZeroU32::MIN);
    // A quota without a period lets one call a second through.
    let quota = Quota::with_period(granted.every).unwrap_or(Quota::per_second(NonZeroU32::MIN));
    quota.allow_burst(at_once)
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    type Simulated = Buckets<FakeRelativeClock>;

    /// The calls of an operation that are let through during a minute, after a long rest.
    fn in_a_minute(buckets: &Simulated, operation: &'static str) -> u64 {
        let mut calls = 0;
        for _ in 0..600 {
            while buckets.take(operation).is_ok() {
                calls += 1;
            }
            buckets.clock.advance(Duration::from_millis(100));
        }
        calls
    }

    #[test]
    fn no_api_is_called_more_often_than_ec2_grants() {
        for (operation, at_once, per_second) in [
            ("DescribeSubnets", 100, 20),
            // Less the share of those that end.
            ("DescribeInstances", 75, 15),
            ("CreateFleet", 50, 5),
            ("CreateTags", 100, 10),
        ] {
            let calls = in_a_minute(&Simulated::default(), operation);
            let granted = at_once + 60 * per_second;
            assert!(calls <= granted, "{operation}: {calls} of {granted}");
            assert!(calls * 3 > granted * 2, "{operation}: {calls} of {granted}");
        }
    }

    #[test]
    fn one_api_takes_nothing_from_another_one() {
        let buckets = Simulated::default();
        while buckets.take("CreateFleet").is_ok() {}
        assert_eq!(buckets.take("CreateTags"), Ok(()));
    }

    #[test]
    fn two_configurations_of_an_account_share_its_calls_and_two_accounts_do_not() {
        let all = Arc::new(Paces::default());
        let [first, second, other] = [(); 3].map(|()| Pace::new(all.clone(), "us-east-1"));
        first.share("111111111111");
        second.share("111111111111");
        other.share("222222222222");
        let take = |pace: &Pace| lock(&pace.buckets).take("CreateFleet");
        while take(&first).is_ok() {}
        assert!(take(&second).is_err());
        assert_eq!(take(&other), Ok(()));
    }

    #[tokio::test]
    async fn a_call_without_a_turn_in_time_is_throttled_as_ec2_would_throttle_it() {
        let pace = Pace::new(Arc::default(), "us-east-1");
        let bucket = lock(&pace.buckets).clone();
        while bucket.take("CreateFleet").is_ok() {}
        let waited = pace.turn_within(Duration::ZERO, "CreateFleet").await;
        let error = waited.unwrap_err();
        assert_eq!(error.class, ErrorClass::Throttled);
    }
}
