//! Why something is not ready.

use function_runtime::response::Condition;

/// Why something is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// For machines.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

/// The reason of a condition of a workspace that is `False`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The machine or volume is not there yet.
    Creating,
    /// The machine, or a pod, is there and does not serve yet.
    Starting,
    /// Machines or pods of a workspace that is to rest still run.
    Stopping,
    /// The claim asks for no run.
    Stopped,
    /// Nobody used the workspace for as long as its claim or the policy allows.
    Idle,
    /// The workspace ran for as long as its claim or the policy allows.
    Expired,
    /// The composed resource is being deleted.
    Deleting,
    /// The machine of the last call is gone.
    Interrupted,
    /// The `SpotPool`'s status has an unknown shape.
    StatusUnreadable,
    /// Crossplane's provider cannot reconcile the resource, and names no class of error.
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

    /// The policy asks for a budget and the owner has none.
    BudgetMissing,
    /// The budget's answer is not known yet.
    BudgetPending,
    /// The budget has no room.
    BudgetExceeded,
    /// The catalogue lacks a price that the budget needs.
    PriceMissing,
    /// The owner's budget counts the workspaces of another namespace.
    OtherNamespace,

    /// Kueue has not looked at the workspace yet.
    Pending,
    /// A pod does not exist yet.
    PodMissing,
    /// A pod is ending.
    PodEnding,
    /// A pod has scheduling gates.
    PodGated,
    /// No node takes a pod, because of its volume.
    WaitingForHome,
    /// No node takes a pod.
    Unschedulable,
    /// A container ends again and again.
    CrashLooping,
    /// A container's image cannot be pulled.
    ImageUnavailable,
    /// A container cannot be made.
    ContainerFails,
    /// A container ended.
    ContainerEnded,

    /// The reason of a `SpotPool`, of Kueue, or of an error of EC2, repeated.
    Reported(String),
}

impl Cause {
    /// A cause.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }

    /// The condition of a type that is `False` for this cause.
    pub fn condition(&self, type_: &'static str) -> Condition {
        Condition::is_false(type_, self.reason.as_str(), self.message.as_str())
    }
}

impl Reason {
    /// The reason as a condition has it.
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
