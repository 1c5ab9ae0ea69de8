//! What a person sees of a claim.

use api::lifecycle::ExtensionStatus;
use devctl_core::object::version;
use devctl_core::workspace::Workspace;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A workspace in a list and in the stream of changes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The namespace of the claim.
    pub namespace: String,
    /// The name of the claim.
    pub name: String,
    /// The UID of the claim. Another claim of the same name has another one.
    pub uid: String,
    /// The version of the claim, for the order of changes.
    pub version: u64,
    /// When the claim was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// The owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The phase; `Pending` before Crossplane has rendered the claim.
    pub phase: String,
    /// Why it has this phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The machine in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The command that logs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh: Option<String>,
    /// The host keys, each as `TYPE KEY`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_keys: Vec<String>,
    /// When it stops next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stops_at: Option<Timestamp>,
    /// Why it stops next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stops_because: Option<String>,
    /// The extension of the run that was asked for last, and what was granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionStatus>,
    /// US dollars an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly_usd: Option<f64>,
    /// US dollars of this month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub so_far_usd: Option<f64>,
    /// Whether Argo CD keeps the claim as it is in git.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_git: bool,
}

/// A workspace of the first API.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlainRow {
    /// The name of the claim.
    pub name: String,
    /// The owner.
    pub owner: Option<String>,
    /// The instance type.
    pub instance_type: Option<String>,
    /// The status.
    pub status: PlainStatus,
    /// When the claim was created.
    pub creation_timestamp: Option<Timestamp>,
}

/// The status of a workspace of the first API.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlainStatus {
    /// The phase.
    pub phase: String,
    /// The instance of EC2.
    pub instance_id: Option<String>,
    /// The public address.
    pub public_ip: Option<String>,
    /// The command that logs in.
    pub connection: Option<String>,
}

/// The phase of a claim that Crossplane has not rendered yet.
const PENDING: &str = "Pending";

impl Row {
    /// The row of a claim.
    pub fn new(claim: &Value) -> Self {
        let workspace = Workspace::new(claim);
        let status = |field: &str| workspace.status(field).map(str::to_owned);
        Self {
            namespace: workspace.namespace().to_owned(),
            name: workspace.name().to_owned(),
            uid: workspace.uid().to_owned(),
            version: version(claim).parse().unwrap_or_default(),
            created: workspace.created(),
            owner: workspace.owner().map(str::to_owned),
            phase: phase(workspace),
            message: workspace.message().map(str::to_owned),
            machine: status("machine"),
            ssh: status("ssh"),
            host_keys: workspace.host_keys().into_iter().map(Into::into).collect(),
            stops_at: workspace.stops_at(),
            stops_because: text(claim, "/status/lifecycle/stopsBecause"),
            extension: workspace.typed("/status/lifecycle/extension"),
            hourly_usd: workspace.cost("hourlyUsd"),
            so_far_usd: workspace.cost("soFarUsd"),
            from_git: workspace.is_from_git(),
        }
    }
}

/// A claim without its `managedFields`. They are a third of a claim, and the portal does not read them.
pub fn without_managed_fields(mut claim: Value) -> Value {
    if let Some(metadata) = claim.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    claim
}

/// The parameters of a claim, and the tag of this state of them. It changes when somebody changes the claim, and
/// not with its status.
pub fn parameters(claim: &Value) -> (Value, String) {
    let parameters = claim.pointer("/spec/parameters").cloned();
    let uid = text(claim, "/metadata/uid").unwrap_or_default();
    let generation = claim.pointer("/metadata/generation");
    let generation = generation.and_then(Value::as_u64).unwrap_or_default();
    (
        parameters.unwrap_or_default(),
        format!("\"{uid}/{generation}\""),
    )
}

/// A workspace in the shape of the first API.
pub fn plain(claim: &Value) -> PlainRow {
    let workspace = Workspace::new(claim);
    let status = |field: &str| workspace.status(field).map(str::to_owned);
    PlainRow {
        name: workspace.name().to_owned(),
        owner: workspace.owner().map(str::to_owned),
        instance_type: text(claim, "/status/instanceType")
            .or_else(|| text(claim, "/spec/parameters/instanceType")),
        status: PlainStatus {
            phase: phase(workspace),
            instance_id: status("instanceId"),
            public_ip: status("publicIp"),
            connection: status("ssh"),
        },
        creation_timestamp: workspace.created(),
    }
}

fn phase(workspace: Workspace<'_>) -> String {
    if workspace.phase().is_none() && !workspace.is_deleted() {
        return PENDING.to_owned();
    }
    workspace.phase_text().to_owned()
}

fn text(claim: &Value, pointer: &str) -> Option<String> {
    devctl_core::object::text(claim, pointer).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim() -> Value {
        json!({
            "metadata": {
                "namespace": "dev-alice", "name": "vision", "uid": "u-1", "resourceVersion": "42",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "managedFields": [{"manager": "kubectl"}],
            },
            "spec": {"parameters": {"owner": "alice", "instanceType": "g4dn.xlarge"}},
            "status": {
                "phase": "Ready", "ssh": "ssh developer@203.0.113.7", "machine": "g5.xlarge",
                "instanceType": "g5.xlarge", "instanceId": "i-1", "publicIp": "203.0.113.7",
                "lifecycle": {
                    "stopsAt": "2026-01-02T00:00:00Z", "stopsBecause": "Idle",
                    "extension": {
                        "askedUntil": "2026-01-03T00:00:00Z",
                        "grantedUntil": "2026-01-02T12:00:00Z", "message": "the policy allows 12h",
                    },
                },
                "cost": {"hourlyUsd": 0.5, "soFarUsd": 1.25},
                "internal": {"secret": "of the function"},
            },
        })
    }

    #[test]
    fn a_row_has_what_the_table_shows_and_nothing_of_the_functions_memory() {
        let row = serde_json::to_value(Row::new(&claim())).unwrap();
        assert_eq!(
            row,
            json!({
                "namespace": "dev-alice", "name": "vision", "uid": "u-1", "version": 42,
                "created": "2026-01-01T00:00:00Z", "owner": "alice", "phase": "Ready",
                "machine": "g5.xlarge", "ssh": "ssh developer@203.0.113.7",
                "stopsAt": "2026-01-02T00:00:00Z", "stopsBecause": "Idle",
                "extension": {
                    "askedUntil": "2026-01-03T00:00:00Z",
                    "grantedUntil": "2026-01-02T12:00:00Z", "message": "the policy allows 12h",
                },
                "hourlyUsd": 0.5, "soFarUsd": 1.25,
            })
        );
    }

    #[test]
    fn the_first_apis_dashboard_finds_its_fields() {
        assert_eq!(
            serde_json::to_value(plain(&claim())).unwrap(),
            json!({
                "name": "vision", "owner": "alice", "instanceType": "g5.xlarge",
                "status": {
                    "phase": "Ready", "instanceId": "i-1", "publicIp": "203.0.113.7",
                    "connection": "ssh developer@203.0.113.7",
                },
                "creationTimestamp": "2026-01-01T00:00:00Z",
            })
        );
    }

    #[test]
    fn the_tag_of_parameters_changes_with_the_claim_and_not_with_its_status() {
        let mut one = claim();
        one["metadata"]["generation"] = json!(3);
        assert_eq!(parameters(&one).1, "\"u-1/3\"");
        one["status"]["phase"] = json!("Stopped");
        one["metadata"]["resourceVersion"] = json!("43");
        assert_eq!(parameters(&one).1, "\"u-1/3\"");
        assert_eq!(parameters(&one).0["instanceType"], "g4dn.xlarge");
    }

    #[test]
    fn a_claim_without_status_is_pending() {
        let mut new = claim();
        new["status"] = json!(null);
        assert_eq!(plain(&new).status.phase, "Pending");
        assert_eq!(plain(&new).instance_type.as_deref(), Some("g4dn.xlarge"));
        new["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(Row::new(&new).phase, "Deleting");
    }
}
