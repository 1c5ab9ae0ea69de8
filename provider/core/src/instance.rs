//! An instance as EC2 reports it, with the tags that tie it to a pool.

use jiff::Timestamp;

use crate::{Market, Offering};

/// One EC2 instance that carries a pool's tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// EC2's id.
    pub id: String,
    /// UID of the pool, from its tag.
    pub pool_uid: String,
    /// The slot, from its tag.
    pub slot: u32,
    /// The launch that created it, from its tag.
    pub launch: u64,
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

    /// Whether the instance fills its slot. A stopped one does: somebody stopped
    /// it, and its disk may hold work, so nothing takes its place unasked.
    pub fn fills_slot(self) -> bool {
        matches!(
            self,
            Self::Pending | Self::Running | Self::Stopping | Self::Stopped
        )
    }
}
