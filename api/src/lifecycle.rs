//! When a workspace runs: what a claim may say of it, what a platform team allows,
//! and what came of it.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A length of time: whole seconds, minutes, hours and days, as in `90m`, `1d12h`.
pub(crate) const DURATION: &str = r"^([0-9]{1,5}[smhd]){1,4}$";

/// An annotation of a claim: the time until which its workspace may run beyond its
/// `maxLifetime`, as in `2026-11-24T18:00:00Z`. The policy caps it.
pub const EXTEND_UNTIL: &str = "platform.acme.io/extend-until";
/// An annotation of a claim that starts a workspace again which stopped by itself.
/// Any value does that was not there when it stopped.
pub const RESUME: &str = "platform.acme.io/resume";

/// When a workspace runs.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceLifecycle {
    /// Whether it is to run. A stopped workspace keeps its home.
    #[serde(default)]
    pub state: WorkspaceState,
    /// How long it runs at most after each start, for example `72h`; the policy's
    /// when unset. Then it stops, and keeps its home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub max_lifetime: Option<String>,
    /// How long nobody uses it before it stops, for example `2h`; the policy's when
    /// unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub stop_after_idle: Option<String>,
    /// How long it is stopped before what is left of it goes, for example `30d`; the
    /// policy's when unset. What becomes of its home is the policy's to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub delete_after_stopped: Option<String>,
}

/// Whether a workspace is to run.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceState {
    /// It runs.
    #[default]
    Running,
    /// It does not, and keeps its home.
    Stopped,
}

/// How long workspaces run, as the platform team has it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LifecyclePolicy {
    /// Longest run. Unset: without an end, unless the claim names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lifetime: Option<DurationBounds>,
    /// Longest time that nobody uses it. Unset: idle workspaces run on, unless the
    /// claim says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_after_idle: Option<DurationBounds>,
    /// Longest time that it is stopped. Unset: for ever, unless the claim says
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_after_stopped: Option<DurationBounds>,
    /// How far the annotation `platform.acme.io/extend-until` may move the end of a
    /// run at most. Unset: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub max_extension: Option<String>,
    /// The age from which a report of an agent says nothing any more, so that the
    /// workspace counts as active.
    #[serde(default = "default_stale_after")]
    #[schemars(regex(pattern = DURATION))]
    pub stale_after: String,
    /// The agent that instances install. Unset: none, and nothing is known of who
    /// uses them.
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

/// What a claim gets that says nothing, and the most that it may ask for.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DurationBounds {
    /// That of claims that name none; `maximum` when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub default: Option<String>,
    /// The longest that a claim may ask for; any when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub maximum: Option<String>,
}

/// Where instances get their agent from.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentPolicy {
    /// Where the program is. Instances have to reach it without credentials.
    #[schemars(
        length(max = 512),
        regex(pattern = r"^https?://[A-Za-z0-9._~:/?&=%@+-]+$")
    )]
    pub url: String,
    /// The SHA-256 of the program, in hexadecimal digits; another one is not run.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub sha256: String,
    /// Seconds between two reports.
    #[serde(default = "default_report_seconds")]
    #[schemars(range(min = 5, max = 3600))]
    pub report_seconds: u32,
}

/// The agent in pods.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodAgent {
    /// Its image.
    #[schemars(
        length(min = 1, max = 512),
        regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$")
    )]
    pub image: String,
    /// Seconds between two reports.
    #[serde(default = "default_report_seconds")]
    #[schemars(range(min = 5, max = 3600))]
    pub report_seconds: u32,
}

/// Where a workspace stands in its life.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleStatus {
    /// When this run began: the first time that its machine was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it stops, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops_at: Option<Time>,
    /// Why it stops then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops_because: Option<StopReason>,
    /// Since when it has been stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Time>,
    /// Why it was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_because: Option<StopReason>,
    /// When what is left of it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletes_at: Option<Time>,
    /// Since when what was left of it has been gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Time>,
    /// The value of the annotation `platform.acme.io/resume` that was followed last,
    /// or was there when the workspace stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
}

/// Why a workspace stops.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The claim says so.
    State,
    /// Nobody used it.
    Idle,
    /// It ran as long as it may.
    MaxLifetime,
}

/// Who uses a workspace, as far as that is known.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ActivityStatus {
    /// What follows from the sources. Only `Idle` leads to a stop.
    pub verdict: ActivityVerdict,
    /// Why, for people.
    pub message: String,
    /// When somebody last used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_active: Option<Time>,
    /// When a stop becomes eligible, if nobody uses it until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eligible_at: Option<Time>,
    /// What each source says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<ActivitySource>,
}

/// What follows from the sources.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityVerdict {
    /// Somebody uses it.
    Active,
    /// Nobody does.
    Idle,
    /// Nobody knows, so it counts as active.
    Unknown,
}

/// What one source says.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ActivitySource {
    /// `ssh`, `job`, `gpu` or `kernel`.
    pub name: String,
    /// What it says.
    pub state: SignState,
    /// Its last sign of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_active: Option<Time>,
}

/// What a source says, in status.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignState {
    /// It is in use.
    Active,
    /// It is not.
    Idle,
    /// The machine has no such source.
    Absent,
    /// It could not be looked at.
    Unknown,
}

/// A length of time as claims and policies write it; none where it is none, or longer
/// than a hundred years.
pub fn duration(text: &str) -> Option<SignedDuration> {
    const LONGEST: i64 = 100 * 366 * 86_400;
    let mut seconds: i64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        let unit = match rest.as_bytes()[digits] {
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            b'd' => 86_400,
            _ => return None,
        };
        seconds = number.checked_mul(unit)?.checked_add(seconds)?;
        rest = &rest[digits + 1..];
    }
    let is_one = !text.is_empty() && seconds <= LONGEST;
    is_one.then(|| SignedDuration::from_secs(seconds))
}

fn default_stale_after() -> String {
    "15m".into()
}

fn default_report_seconds() -> u32 {
    300
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_what_people_mean() {
        let seconds = |text| duration(text).map(|length| length.as_secs());
        assert_eq!(seconds("90m"), Some(5_400));
        assert_eq!(seconds("1d12h"), Some(129_600));
        assert_eq!(seconds("30s"), Some(30));
        assert_eq!(seconds("0s"), Some(0));
        for none in ["", "12", "h", "1w", "-1h", "1h ", "99999d99999d", "1é"] {
            assert_eq!(seconds(none), None, "{none}");
        }
    }
}
