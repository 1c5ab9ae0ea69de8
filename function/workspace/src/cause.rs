//! Why a workspace or its home is not ready.

use api::condition::BASTION_OUT_OF_REACH;
use function_runtime::response::Condition;

/// Why a workspace or its home is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The reason of the condition, for machines.
    pub reason: Reason,
    /// The message of the condition, for people.
    pub message: String,
}

/// The reason of a workspace's condition whose status is `False`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The machine or the volume does not exist yet.
    Creating,
    /// The machine or a pod exists but is not ready.
    Starting,
    /// The workspace stops, and its machines or pods still run.
    Stopping,
    /// The claim says `state: Stopped`.
    Stopped,
    /// The workspace was idle for longer than its claim or the policy allows.
    Idle,
    /// The workspace ran for as long as its claim or the policy allows.
    Expired,
    /// The composed resource is being deleted.
    Deleting,
    /// The machine of the last call no longer exists.
    Interrupted,
    /// The function cannot read the `SpotPool`'s status.
    StatusUnreadable,
    /// The provider cannot reconcile the resource and names no error class.
    ReconcileError,

    /// The home volume waits for a machine.
    Waiting,
    /// The home volume is attached to no machine.
    Detached,
    /// Another machine still has the home volume.
    Detaching,
    /// The home volume is not attached yet.
    Attaching,
    /// The home volume is gone.
    Lost,
    /// A `PersistentVolumeClaim` of the workspace has no volume.
    HomeUnbound,

    /// No key and no authority may log in.
    NoPublicKeys,
    /// No network may connect.
    NoNetworks,
    /// Nobody may connect, and the policy's bastion does not reach the placement.
    BastionOutOfReach,
    /// The owner is suspended.
    OwnerSuspended,

    /// No machine runs that could have the software.
    NotRunning,
    /// Nothing reports the setup of the machine.
    NotReported,
    /// The setup of the machine has not ended yet.
    SettingUp,
    /// A step of the setup failed.
    SetupFailed,
    /// It is not known how the setup of the machine goes.
    SetupUnknown,

    /// The policy asks for a budget and the owner has none.
    BudgetMissing,
    /// The budget's answer is not known yet.
    BudgetPending,
    /// The budget has no room.
    BudgetExceeded,
    /// The catalogue lacks a price that the budget needs.
    PriceMissing,
    /// The owner's budget counts the workspaces of another namespace only.
    OtherNamespace,

    /// Kueue has not processed the workspace yet.
    Pending,
    /// A pod does not exist yet.
    PodMissing,
    /// A pod is ending.
    PodEnding,
    /// A pod has scheduling gates.
    PodGated,
    /// No node can run the pod, because of the volume of its home.
    WaitingForHome,
    /// No node can run the pod.
    Unschedulable,
    /// A container exits again and again.
    CrashLooping,
    /// A container's image cannot be pulled.
    ImageUnavailable,
    /// Kubernetes cannot create a container.
    ContainerFails,
    /// A container has exited.
    ContainerEnded,

    /// The reason that a `SpotPool`, Kueue or an error of EC2 gives.
    Reported(String),
}

impl Cause {
    /// A cause with a reason and a message.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }

    /// A condition of this type with status `False` for this cause.
    pub fn condition(&self, type_: &'static str) -> Condition {
        Condition::is_false(type_, self.reason.as_str(), self.message.as_str())
    }
}

impl Reason {
    /// The reason as it appears in a condition.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Creating => "Creating",
            Self::Starting => "Starting",
            Self::Stopping => "Stopping",
            Self::Stopped => "Stopped",
            Self::Idle => "Idle",
            Self::Expired => "Expired",
            Self::Deleting => "Deleting",
            Self::Interrupted => "Interrupted",
            Self::StatusUnreadable => "StatusUnreadable",
            Self::ReconcileError => "ReconcileError",
            Self::Waiting => "Waiting",
            Self::Detached => "Detached",
            Self::Detaching => "Detaching",
            Self::Attaching => "Attaching",
            Self::Lost => "Lost",
            Self::HomeUnbound => "HomeUnbound",
            Self::NoPublicKeys => "NoPublicKeys",
            Self::NoNetworks => "NoNetworks",
            Self::BastionOutOfReach => BASTION_OUT_OF_REACH,
            Self::OwnerSuspended => "OwnerSuspended",
            Self::NotRunning => "NotRunning",
            Self::NotReported => "NotReported",
            Self::SettingUp => "SettingUp",
            Self::SetupFailed => "SetupFailed",
            Self::SetupUnknown => "SetupUnknown",
            Self::BudgetMissing => "BudgetMissing",
            Self::BudgetPending => "BudgetPending",
            Self::BudgetExceeded => "BudgetExceeded",
            Self::PriceMissing => "PriceMissing",
            Self::OtherNamespace => "OtherNamespace",
            Self::Pending => "Pending",
            Self::PodMissing => "PodMissing",
            Self::PodEnding => "PodEnding",
            Self::PodGated => "PodGated",
            Self::WaitingForHome => "WaitingForHome",
            Self::Unschedulable => "Unschedulable",
            Self::CrashLooping => "CrashLooping",
            Self::ImageUnavailable => "ImageUnavailable",
            Self::ContainerFails => "ContainerFails",
            Self::ContainerEnded => "ContainerEnded",
            Self::Reported(reason) => reason,
        }
    }
}
