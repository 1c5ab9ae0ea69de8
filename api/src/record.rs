//! `WorkspaceRecord`: what the function remembers of a workspace without a claim.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the function remembers of a workspace that is a namespaced composite, without a claim. The
/// function writes it through Crossplane. Its developers may write the composite and its status,
/// but not this record, so decisions about limits, cost and homes rest on the record.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "platform.acme.io",
    version = "v1alpha1",
    kind = "WorkspaceRecord",
    doc = "Keeps what the function decided about one workspace without a claim, out of reach of \
           developers.",
    plural = "workspacerecords",
    namespaced,
    category = "gpu",
    printcolumn = r#"{"name": "Workspace", "type": "string", "jsonPath": ".spec.workspace.name"}"#,
    printcolumn = r#"{"name": "Owner", "type": "string", "jsonPath": ".spec.owner"}"#,
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".spec.status.phase"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceRecordSpec {
    /// Workspace that the record belongs to.
    pub workspace: RecordedWorkspace,
    /// Owner in the claim; empty if the claim names none.
    #[serde(default)]
    pub owner: String,
    /// Status of the workspace that the function wrote last. Its fields are those of
    /// `GpuDevWorkspaceClaim`.
    #[schemars(schema_with = "crate::policy::any_object")]
    pub status: Value,
}

/// A workspace that a record belongs to.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RecordedWorkspace {
    /// Name of the workspace, in the namespace of the record.
    pub name: String,
    /// UID of the workspace. A later workspace with the same name has another UID.
    pub uid: String,
}
