//! An instance as EC2 reports it, with the tags that link it to a pool.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::{ErrorClass, Market, Offering, Refusal};

/// One EC2 instance that carries a pool's tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// EC2's id.
    pub id: String,
    /// UID of the pool, from its tag.
    pub pool_uid: String,
    /// The launch that created it, from its tag.
    pub launch: u64,
    /// The generation that it was launched from, from its tag: see [`crate::Desired::generation`].
    pub generation: Option<String>,
    /// UID of the lease that has it, from its tag.
    pub lease: Option<String>,
    /// Its tag with the digest of its lease: see [`crate::Lease::digest`].
    pub lease_digest: Option<String>,
    /// Its tags with public keys that may log in, by tag key. Empty ones are left out.
    pub authorized_keys: BTreeMap<String, String>,
    /// The report of the instance's agent about its use. Root on the instance can write it, so the
    /// provider only shows it and decides nothing by it.
    pub activity: Option<String>,
    /// Its SSH host key, as its agent reports it.
    pub host_key: Option<String>,
    /// The result of its setup, as its agent wrote it in a tag.
    pub setup: Option<String>,
    /// Type, zone and market.
    pub offering: Offering,
    /// The image that the instance booted.
    pub image_id: String,
    /// EC2's state.
    pub state: InstanceState,
    /// EC2's `StateReason.Code`, for example `Server.SpotInstanceTermination`.
    pub state_reason: Option<String>,
    /// EC2's `StateReason.Message`.
    pub state_message: Option<String>,
    /// Public IPv4 address.
    pub public_ip: Option<String>,
    /// Private IPv4 address.
    pub private_ip: Option<String>,
    /// The time at which EC2 launched it.
    pub launched_at: Option<Timestamp>,
}

impl Instance {
    /// Notes that these tags were written. An empty value takes a key away.
    pub fn authorize(&mut self, tags: &BTreeMap<String, String>) {
        self.authorized_keys.extend(tags.clone());
        self.authorized_keys.retain(|_, key| !key.is_empty());
    }

    /// Whether AWS reclaimed the instance. EC2 sets these codes on instances that the spot market
    /// reclaimed, on notice or while they launched.
    pub fn was_reclaimed(&self) -> bool {
        self.offering.market == Market::Spot
            && matches!(
                self.state_reason.as_deref(),
                Some("Server.SpotInstanceTermination" | "Server.SpotInstanceShutdown")
            )
    }
}

impl Instance {
    /// Why EC2 ended the instance while it launched it. EC2 accepts a launch before it creates the
    /// volumes ("Instance terminates immediately" in the Amazon EC2 User Guide).
    pub fn died_at_birth(&self) -> Option<Refusal> {
        if self.state.is_live() {
            return None;
        }
        let code = self.state_reason.as_deref()?;
        let message = self.state_message.as_deref().unwrap_or_default();
        let class = match code {
            "Server.InsufficientInstanceCapacity" => ErrorClass::Capacity,
            _ => ErrorClass::of_error(code, message),
        };
        let is_about_launch = code.ends_with(".InternalError") || class.is_definite();
        is_about_launch.then(|| Refusal {
            class,
            code: code.to_owned(),
            message: message.to_owned(),
        })
    }
}

/// An announcement of AWS about an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// The kind of announcement.
    pub kind: NoticeKind,
    /// The time at which AWS announced it.
    pub at: Timestamp,
}

/// The kinds of announcements. The order is by severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// The risk of an interruption is elevated. AWS often announces this minutes before an
    /// interruption, but not always.
    Rebalance,
    /// AWS reclaims the instance within two minutes.
    Interruption,
}

impl NoticeKind {
    /// The name of the kind in messages and statuses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rebalance => "Rebalance",
            Self::Interruption => "Interruption",
        }
    }

    /// The kind with this name, if there is one.
    pub fn parse(word: &str) -> Option<Self> {
        let kinds = [Self::Rebalance, Self::Interruption];
        kinds.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// How long after its announcement the provider still expects an interruption. AWS gives two
/// minutes.
const INTERRUPTION_PASSES: SignedDuration = SignedDuration::from_mins(5);

impl Notice {
    /// Whether AWS is reclaiming the instance. The provider must not end it itself then: AWS charges
    /// nothing for an interruption in the first hour ("Billing for interrupted Spot Instances").
    pub fn is_interruption(&self, now: Timestamp) -> bool {
        self.kind == NoticeKind::Interruption && now.duration_since(self.at) < INTERRUPTION_PASSES
    }
}

/// An event that AWS has scheduled for an instance, for example its retirement ("Scheduled events for
/// Amazon EC2 instances" in the Amazon EC2 User Guide).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledEvent {
    /// AWS's code, for example `instance-retirement`.
    pub code: String,
    /// The earliest start of the event.
    pub not_before: Option<Timestamp>,
}

/// What AWS's checks say about instances. Instances of others are included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// The ids of the instances that fail EC2's status checks, of the instance, its host or its
    /// volumes.
    pub impaired: BTreeSet<String>,
    /// The next scheduled event of instances, by id.
    pub scheduled: BTreeMap<String, ScheduledEvent>,
}

/// EC2's instance states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InstanceState {
    /// EC2 is starting the instance.
    Pending,
    /// The instance runs.
    Running,
    /// EC2 is stopping the instance.
    Stopping,
    /// The instance is off, and its disks are kept.
    Stopped,
    /// EC2 is terminating the instance.
    ShuttingDown,
    /// The instance is gone. EC2 lists it for up to an hour.
    Terminated,
}

impl InstanceState {
    /// EC2's name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
        }
    }

    /// The state with this name of EC2's, if there is one.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Pending,
            Self::Running,
            Self::Stopping,
            Self::Stopped,
            Self::ShuttingDown,
            Self::Terminated,
        ]
        .into_iter()
        .find(|state| state.as_str() == word)
    }

    /// Whether the instance counts towards the pool's size. A stopped one does: a person stopped
    /// it, and its disk may hold work, so the planner launches no replacement unasked.
    pub fn is_live(self) -> bool {
        matches!(
            self,
            Self::Pending | Self::Running | Self::Stopping | Self::Stopped
        )
    }
}
