//! An instance as EC2 reports it, with the tags that tie it to a pool.

use jiff::{SignedDuration, Timestamp};

use crate::{Market, Offering};

/// One EC2 instance that carries a pool's tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// EC2's id.
    pub id: String,
    /// UID of the pool, from its tag.
    pub pool_uid: String,
    /// The launch that created it, from its tag.
    pub launch: u64,
    /// What it was launched from, from its tag: see [`crate::Desired::generation`].
    pub generation: Option<String>,
    /// UID of the lease that has it, from its tag.
    pub lease: Option<String>,
    /// What else it is tagged with for the lease: see [`crate::Lease::digest`].
    pub lease_digest: Option<String>,
    /// What its own agent says of its use. Whoever is root there writes it: it is shown,
    /// and nothing is decided by it.
    pub activity: Option<String>,
    /// Its SSH host key, as its own agent says.
    pub host_key: Option<String>,
    /// Type, zone and market.
    pub offering: Offering,
    /// The image it booted.
    pub image_id: String,
    /// EC2's state.
    pub state: InstanceState,
    /// EC2's `StateReason.Code`, for example `Server.SpotInstanceTermination`.
    pub state_reason: Option<String>,
    /// Public IPv4 address.
    pub public_ip: Option<String>,
    /// Private IPv4 address.
    pub private_ip: Option<String>,
    /// When EC2 launched it.
    pub launched_at: Option<Timestamp>,
}

impl Instance {
    /// Whether AWS took it back. EC2 gives these codes for instances that the
    /// spot market reclaimed, on notice or while launching.
    pub fn was_reclaimed(&self) -> bool {
        self.offering.market == Market::Spot
            && matches!(
                self.state_reason.as_deref(),
                Some("Server.SpotInstanceTermination" | "Server.SpotInstanceShutdown")
            )
    }
}

/// What AWS announced about an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// What will happen.
    pub kind: NoticeKind,
    /// When it was announced.
    pub at: Timestamp,
}

/// What AWS announces. The later one is the graver one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// The risk of an interruption is elevated; often minutes ahead, at worst not
    /// at all.
    Rebalance,
    /// AWS takes the instance back within two minutes.
    Interruption,
}

impl NoticeKind {
    /// The word for people and statuses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rebalance => "Rebalance",
            Self::Interruption => "Interruption",
        }
    }

    /// The kind of a status's word, where it is one.
    pub fn parse(word: &str) -> Option<Self> {
        let kinds = [Self::Rebalance, Self::Interruption];
        kinds.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// How long after its announcement an interruption is still expected. AWS gives
/// two minutes.
const INTERRUPTION_PASSES: SignedDuration = SignedDuration::from_mins(5);

impl Notice {
    /// Whether AWS is taking the instance back: nobody else may end it, or the
    /// hour is paid for.
    pub fn is_interruption(&self, now: Timestamp) -> bool {
        self.kind == NoticeKind::Interruption && now.duration_since(self.at) < INTERRUPTION_PASSES
    }
}

/// EC2's instance states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InstanceState {
    /// Starting.
    Pending,
    /// Up.
    Running,
    /// On its way to `Stopped`.
    Stopping,
    /// Off, its disks kept.
    Stopped,
    /// On its way to `Terminated`.
    ShuttingDown,
    /// Gone; EC2 lists it for up to an hour.
    Terminated,
}

impl InstanceState {
    /// EC2's word.
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

    /// The state of EC2's word, where it is one.
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

    /// Whether the instance counts. A stopped one does: somebody stopped it, and
    /// its disk may hold work, so nothing takes its place unasked.
    pub fn is_live(self) -> bool {
        matches!(
            self,
            Self::Pending | Self::Running | Self::Stopping | Self::Stopped
        )
    }
}
