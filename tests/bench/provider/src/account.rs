//! One AWS account in one region: the in-memory EC2, the queue of EC2's events, and a ledger of the
//! provider's calls.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use memory_ec2::{Buckets, Cloud, Firewall, Habits, Limits, Pace};
use provider_aws::{Subnet, Tags};
use serde_json::{Value, json};
use tokio::sync::Notify;

pub(crate) const REGION: &str = "us-east-1";
/// The id of the account.
pub(crate) const ACCOUNT: &str = "123456789012";
pub(crate) const IMAGE: &str = "ami-0123456789abcdef0";
const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];
/// The time from a launch until the instance runs.
pub(crate) const BOOT: Duration = Duration::from_secs(30);
/// The time from the creation of an instance or a security group until EC2 lists it.
const LISTED_AFTER: SignedDuration = SignedDuration::from_secs(2);

/// The account. The endpoint, which answers the provider, and the benchmark share it.
#[derive(Debug)]
pub(crate) struct Account {
    state: Mutex<State>,
    arrived: Notify,
}

/// The part of the account that changes.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) cloud: Cloud,
    /// The messages that the provider has not received yet.
    pub(crate) queue: VecDeque<Value>,
    pub(crate) ledger: Ledger,
}

/// The record of every call so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// The number of calls of each operation.
    pub(crate) calls: BTreeMap<String, Count>,
    /// The number of calls that the provider makes for all pools of a region at once: lists of all
    /// its resources and of impaired instances, and receiving events. The table calls them the
    /// shared look.
    pub(crate) shared: u64,
    /// When the provider asked for each fleet, and the UID of the fleet's pool.
    pub(crate) launches: Vec<(Instant, String)>,
}

/// Numbers of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) all: u64,
    pub(crate) throttled: u64,
}

impl Account {
    /// An account without resources, with AWS's token buckets in force.
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                cloud: cloud(),
                queue: VecDeque::new(),
                ledger: Ledger::default(),
            }),
            arrived: Notify::new(),
        }
    }

    /// Ignores poisoning: no code panics while it holds the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the queue has a message, but at most for `wait`.
    pub(crate) async fn arrival(&self, wait: Duration) {
        let deadline = tokio::time::Instant::now() + wait;
        while self.lock().queue.is_empty() {
            let arrived = self.arrived.notified();
            if tokio::time::timeout_at(deadline, arrived).await.is_err() {
                return;
            }
        }
    }

    /// Interrupts an instance as AWS does: with a warning in the queue of events.
    pub(crate) fn interrupt(&self, id: &str) {
        let now = Timestamp::now();
        let mut state = self.lock();
        state.cloud.interrupt(id, now);
        state.queue.push_back(json!({
            "version": "0",
            "id": "12345678-1234-1234-1234-123456789012",
            "detail-type": "EC2 Spot Instance Interruption Warning",
            "source": "aws.ec2",
            "account": ACCOUNT,
            "time": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "region": REGION,
            "resources": [format!("arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{id}")],
            "detail": {"instance-id": id, "instance-action": "terminate"},
        }));
        drop(state);
        self.arrived.notify_one();
    }
}

impl Ledger {
    /// Counts a call. The number of its `filters` shows whether a list is for all pools or for one
    /// pool: a list for all pools has one filter. A list of security group rules is always for all
    /// pools, because its filter names the ids of several groups.
    pub(crate) fn count(&mut self, operation: &str, filters: usize, is_throttled: bool) {
        let count = self.calls.entry(operation.to_owned()).or_default();
        count.all += 1;
        count.throttled += u64::from(is_throttled);
        let is_shared = match operation {
            "DescribeInstances" | "DescribeSecurityGroups" => filters == 1,
            "GetCallerIdentity"
            | "DescribeInstanceStatus"
            | "DescribeSecurityGroupRules"
            | "ReceiveMessage" => true,
            _ => false,
        };
        self.shared += u64::from(is_shared);
    }

    /// Notes that the provider asks for a fleet with these instance tags.
    pub(crate) fn launched(&mut self, tags: &Tags) {
        let uid = tags.get(api::tags::POOL_UID).cloned();
        self.launches
            .push((Instant::now(), uid.unwrap_or_default()));
    }

    /// The number of calls of one operation.
    pub(crate) fn of(&self, operation: &str) -> u64 {
        self.calls.get(operation).map_or(0, |count| count.all)
    }

    /// The calls of all operations together.
    pub(crate) fn total(&self) -> Count {
        let counts = self.calls.values();
        counts.fold(Count::default(), |sum, count| Count {
            all: sum.all + count.all,
            throttled: sum.throttled + count.throttled,
        })
    }

    /// The calls since the ledger was `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let calls = self.calls.iter().map(|(operation, count)| {
            let was = before.calls.get(operation).copied().unwrap_or_default();
            let count = Count {
                all: count.all - was.all,
                throttled: count.throttled - was.throttled,
            };
            (operation.clone(), count)
        });
        Self {
            calls: calls.filter(|(_, count)| count.all > 0).collect(),
            shared: self.shared - before.shared,
            launches: self.launches[before.launches.len()..].to_vec(),
        }
    }
}

/// A region without resources, with AWS's token buckets. Boots and lists take some time, as in AWS.
pub(crate) fn cloud() -> Cloud {
    Cloud {
        machines: Vec::new(),
        fleets: BTreeMap::new(),
        templates: BTreeMap::new(),
        firewall: Firewall::default(),
        storage: memory_ec2::Storage::default(),
        subnets: ZONES
            .map(|zone| Subnet {
                id: format!("subnet-{zone}"),
                zone: zone.to_owned(),
                vpc_id: "vpc-1".to_owned(),
            })
            .into(),
        images: vec![IMAGE],
        deprecated: BTreeMap::new(),
        habits: Habits::default(),
        pace: Pace {
            lists_instance: LISTED_AFTER,
            lists_group: LISTED_AFTER,
            lists_volume: SignedDuration::from_secs(2),
            boots: SignedDuration::try_from(BOOT).unwrap_or(SignedDuration::MAX),
        },
        buckets: Buckets::new(Limits::AWS),
    }
}
