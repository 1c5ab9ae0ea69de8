//! Lifecycle of a workspace: the claim's parameters, the policy's limits, and the status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Duration;
use crate::patterns::{AGENT_URL, CONTAINER_IMAGE, DURATION, SHA256, TIMER};

/// Annotation of a claim: the time until which the workspace may run beyond its `maxLifetime`, for
/// example `2026-11-24T18:00:00Z`. The policy limits the extension.
pub const EXTEND_UNTIL: &str = "platform.acme.io/extend-until";
/// Annotation of a claim: a new value starts a workspace again that stopped because it was idle or
/// because its lifetime was over, or by [`STOP`]. The value that was there when the workspace stopped
/// has no effect.
pub const RESUME: &str = "platform.acme.io/resume";
/// Annotation of a claim: a new value stops the workspace until its owner resumes it. The value that
/// was there when the workspace was created has no effect.
pub const STOP: &str = "platform.acme.io/stop";
/// A timer that never ends.
pub const NEVER: &str = "Never";

/// When a workspace runs.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceLifecycle {
    /// Desired state: `Running` or `Stopped`. A stopped workspace keeps its home.
    #[serde(default)]
    pub state: WorkspaceState,
    /// Longest run after each start, for example `72h`. Then the workspace stops and keeps its
    /// home. `Never`: the run has no longest time. Default: the policy's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = TIMER))]
    pub max_lifetime: Option<String>,
    /// Longest time without use before the workspace stops, for example `2h`. `Never`: it does not
    /// stop when it is not used. Default: the policy's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = TIMER))]
    pub stop_after_idle: Option<String>,
    /// Time after a stop until the rest of the workspace is deleted, for example `30d`. The policy
    /// decides whether the home is deleted too. `Never`: the rest stays. Default: the policy's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = TIMER))]
    pub delete_after_stopped: Option<String>,
}

/// Whether a workspace runs.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceState {
    /// The workspace runs.
    #[default]
    Running,
    /// The workspace does not run. Its home is kept.
    Stopped,
}

/// The platform team's limits for the lifecycle of workspaces.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LifecyclePolicy {
    /// Longest run. Default: no limit, unless the claim sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lifetime: Option<DurationBounds>,
    /// Longest time without use before a workspace stops. Default: idle workspaces keep running,
    /// unless the claim sets a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_after_idle: Option<DurationBounds>,
    /// Longest time that a workspace stays stopped before the rest of it is deleted. Default: it is
    /// never deleted, unless the claim sets a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_after_stopped: Option<DurationBounds>,
    /// Longest extension of a run with the annotation `platform.acme.io/extend-until`. Default: no
    /// extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub max_extension: Option<String>,
    /// Age at which an agent's report is too old to use. The workspace then counts as active.
    #[serde(default = "default_stale_after")]
    #[schemars(regex(pattern = DURATION))]
    pub stale_after: String,
    /// Agent that instances install. Default: no agent, so it is not known whether instances are
    /// used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentPolicy>,
}

impl Default for LifecyclePolicy {
    fn default() -> Self {
        Self {
            max_lifetime: None,
            stop_after_idle: None,
            delete_after_stopped: None,
            max_extension: None,
            stale_after: default_stale_after(),
            agent: None,
        }
    }
}

/// Default and maximum of a duration in claims.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DurationBounds {
    /// Duration for claims that set none, or `Never`. Default: `maximum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TIMER))]
    pub default: Option<String>,
    /// Longest duration that a claim may set. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub maximum: Option<String>,
}

/// Where instances download the agent.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentPolicy {
    /// URL of the agent's program. Instances download it without credentials.
    #[schemars(length(max = 512), regex(pattern = AGENT_URL))]
    pub url: String,
    /// SHA-256 of the program, in hexadecimal digits. An instance does not run a program with
    /// another hash.
    #[schemars(regex(pattern = SHA256))]
    pub sha256: String,
    /// Time between two reports of the agent, from `5s` to `1h`.
    #[serde(default = "default_report_interval")]
    pub report_interval: Duration,
}

/// The agent that pods run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodAgentPolicy {
    /// Container image of the agent, preferably by digest.
    #[schemars(length(min = 1, max = 512), regex(pattern = CONTAINER_IMAGE))]
    pub image: String,
    /// Time between two reports of the agent, from `5s` to `1h`.
    #[serde(default = "default_report_interval")]
    pub report_interval: Duration,
}

/// The agent in pods.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodAgent {
    /// Container image of the agent, preferably by digest.
    #[schemars(length(min = 1, max = 512), regex(pattern = CONTAINER_IMAGE))]
    pub image: String,
    /// Seconds between two reports of the agent.
    #[serde(default = "default_report_seconds")]
    #[schemars(with = "i32", range(min = 5, max = 3600))]
    pub report_seconds: u32,
}

/// Start, stop and deletion times of a workspace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleStatus {
    /// When this run began: the time at which the function first saw a machine or pod of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When the function first saw the software of this machine installed. The time without use
    /// counts from then. Unset where nothing reports the setup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Time>,
    /// When the workspace stops next, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops_at: Option<Time>,
    /// The reason of the next stop. `State`: the claim says `Stopped`. `Idle`: the owner does not
    /// use the workspace. `MaxLifetime`: the workspace reaches the end of its longest run.
    /// `Requested`: the annotation `platform.acme.io/stop` asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops_because: Option<StopReason>,
    /// Since when the workspace has been stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Time>,
    /// The reason of the last stop. `State`: the claim said `Stopped`. `Idle`: the owner did not
    /// use the workspace. `MaxLifetime`: the workspace reached the end of its longest run.
    /// `Requested`: the annotation `platform.acme.io/stop` asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_because: Option<StopReason>,
    /// When the rest of the stopped workspace will be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletes_at: Option<Time>,
    /// When the rest of the stopped workspace was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Time>,
    /// What the annotation `platform.acme.io/extend-until` asked for, and what was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionStatus>,
    /// Limits of the run, from claim and policy together. They hold while the policy cannot be
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<RunLimits>,
}

/// Extension of a run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionStatus {
    /// End of the run that the annotation asks for.
    pub asked_until: Time,
    /// End of the run that was granted. Unset if the extension has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_until: Option<Time>,
    /// Why the run ends earlier than asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Limits of a run, as durations such as `72h`.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RunLimits {
    /// Longest run after each start, for example `72h`. Unset if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lifetime: Option<String>,
    /// Longest time without use before the workspace stops, for example `2h`. Unset if there is no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_after_idle: Option<String>,
    /// Longest extension of the run, for example `24h`. Unset if none is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_extension: Option<String>,
    /// Age at which an agent's report is too old to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_after: Option<String>,
}

/// Reason of a stop.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
// kube's `OptionalEnum` replaces the description of an optional field with that of its type.
#[schemars(description = "")]
pub enum StopReason {
    /// The claim says `state: Stopped`.
    State,
    /// The workspace was not used for `stopAfterIdle`.
    Idle,
    /// The run reached its longest lifetime.
    MaxLifetime,
    /// The annotation `platform.acme.io/stop` asked for the stop.
    Requested,
}

/// Use of a workspace, as its agent reports it.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ActivityStatus {
    /// Whether the workspace is used, by all sources together: `Active`, `Idle`, or `Unknown` if
    /// that is not known. Only `Idle` leads to a stop.
    pub verdict: ActivityVerdict,
    /// Explanation of the verdict, for people.
    pub message: String,
    /// When the workspace was last used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_active: Option<Time>,
    /// When the workspace may be stopped if it stays idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eligible_at: Option<Time>,
    /// Result of each source of activity, for example of SSH sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<ActivitySource>,
}

/// Result of all sources together.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityVerdict {
    /// The workspace is in use.
    Active,
    /// The workspace is not in use.
    Idle,
    /// It is not known whether the workspace is in use. It counts as active.
    Unknown,
}

/// Result of one source of activity.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ActivitySource {
    /// Name of the source: `ssh`, `job`, `gpu` or `kernel`.
    pub name: String,
    /// Whether the source shows use: `Active`, `Idle`, `Absent` if the machine does not have the
    /// source, or `Unknown` if the agent could not read it.
    pub state: SignState,
    /// When the source last showed use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_active: Option<Time>,
}

/// Whether a source shows use.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignState {
    /// The source shows use.
    Active,
    /// The source shows no use.
    Idle,
    /// The machine does not have this source, for example no GPU.
    Absent,
    /// The agent could not read the source.
    Unknown,
}

fn default_stale_after() -> String {
    "15m".into()
}

fn default_report_interval() -> Duration {
    Duration::of_minutes(5)
}

/// Five minutes, as [`default_report_interval`].
fn default_report_seconds() -> u32 {
    300
}
