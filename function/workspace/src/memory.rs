//! What the function remembers of a workspace from call to call.
//!
//! A workspace with a claim has a cluster-scoped composite, which developers cannot write: its status
//! is the memory. A namespaced composite is the object that developers write, and some of Crossplane's
//! roles let them write its status, too. Its memory is a `WorkspaceRecord` that the function composes.

use api::record::{RecordedWorkspace, WorkspaceRecord, WorkspaceRecordSpec};
use api::workspace::GpuDevWorkspaceStatus;
use function_runtime::composite::{Composite, Origin};
use function_runtime::desired::Composed;
use function_runtime::json::Json;
use function_runtime::object::given_name;
use function_runtime::outcome::Refusal;
use function_runtime::request::Request;
use function_runtime::requirement::{Requirement, Selector};
use function_runtime::resource_names::hashed_wide;
use function_runtime::response::fields;
use serde_json::Value;

use crate::claim;
use crate::labels::{API_VERSION, NAME_PREFIX};

/// The composition resource name of the record, in every placement.
pub const NAME: &str = "workspace-record";
/// The kind of the record.
pub const KIND: &str = "WorkspaceRecord";
/// Kubernetes' limit on the length of a name that may also be a label.
const LONGEST: usize = 63;

/// The status that the last call wrote.
///
/// A developer may have written the status of a namespaced composite. It counts only if there are
/// composed resources and no record: an earlier version of the function wrote no record.
pub fn previous(request: &Request, composite: Composite<'_>) -> GpuDevWorkspaceStatus {
    let written = composite.at(&["status"]);
    if composite.namespace().is_none() {
        return claim::status(written);
    }
    let observed = request.observed.get(NAME);
    let fetched = || request.required.get(NAME)?.first();
    match observed.or_else(fetched) {
        Some(record) => {
            let Recorded { owner, status, .. } = Recorded::read(record);
            GpuDevWorkspaceStatus {
                owner: (!owner.is_empty()).then(|| owner.to_owned()),
                ..status
            }
        }
        None if request.observed.is_empty() => GpuDevWorkspaceStatus::default(),
        None => claim::status(written),
    }
}

/// Whether the last call asked a budget for the run.
pub fn has_asked_a_budget(previous: &GpuDevWorkspaceStatus) -> bool {
    let memory = previous.internal.as_ref();
    memory.is_some_and(|memory| memory.budget_request.is_some())
}

/// Asks Crossplane for the record of a namespaced composite that does not list it: a developer may
/// have removed the record from the list.
pub fn requirement(request: &Request, composite: Composite<'_>) -> Option<Requirement> {
    let namespace = composite.namespace()?;
    let is_composed = request.observed.contains_key(NAME);
    (!is_composed).then(|| Requirement {
        name: NAME.to_owned(),
        api_version: API_VERSION,
        kind: KIND,
        selector: Selector::NamedIn {
            namespace: namespace.to_owned(),
            name: name(composite.name()),
        },
    })
}

/// The record of a namespaced composite of `owner`; none for a composite with a claim.
///
/// # Errors
///
/// The status cannot be written as JSON.
pub fn record(
    request: &Request,
    composite: Composite<'_>,
    owner: &str,
    status: &GpuDevWorkspaceStatus,
) -> Result<Option<Composed>, Refusal> {
    let Some(namespace) = composite.namespace() else {
        return Ok(None);
    };
    let mut remembered = fields(status)?;
    // They follow from the rest of the record and from the claim.
    for derived in ["machine", "opencvVersion", "owner", "pytorchVersion"] {
        remembered.remove(derived);
    }
    let lifecycle = remembered.get_mut("lifecycle");
    if let Some(lifecycle) = lifecycle.and_then(Value::as_object_mut) {
        lifecycle.remove("extension");
    }
    let spec = WorkspaceRecordSpec {
        workspace: RecordedWorkspace {
            name: composite.name().to_owned(),
            uid: composite.id().uid,
        },
        owner: owner.to_owned(),
        status: Value::Object(remembered),
    };
    let observed = request.observed.get(NAME);
    let given = given_name(observed).map(str::to_owned);
    let named = given.unwrap_or_else(|| name(composite.name()));
    let mut record = WorkspaceRecord::new(&named, spec);
    record.metadata.namespace = Some(namespace.to_owned());
    Ok(Some(Composed {
        object: Composed::manifest(&record)?,
        ready: observed.is_some(),
    }))
}

/// A record that Crossplane fetched for another composite: namespace and name of its workspace, the
/// workspace's UID and owner, and its status.
pub struct Recorded<'a> {
    /// Namespace and name of the workspace.
    pub origin: Origin,
    /// UID of the workspace.
    pub uid: &'a str,
    /// Owner of the workspace; empty if there is none.
    pub owner: &'a str,
    /// The status that the function wrote last.
    pub status: GpuDevWorkspaceStatus,
}

impl<'a> Recorded<'a> {
    /// Reads a record.
    pub fn read(record: &'a Json<'a>) -> Self {
        let text = |pointer| record.pointer(pointer).and_then(Json::as_str);
        let text = |pointer| text(pointer).unwrap_or_default();
        Self {
            origin: Origin {
                namespace: text("/metadata/namespace").to_owned(),
                name: text("/spec/workspace/name").to_owned(),
            },
            uid: text("/spec/workspace/uid"),
            owner: text("/spec/owner"),
            status: claim::status(record.pointer("/spec/status")),
        }
    }
}

fn name(workspace: &str) -> String {
    let name = format!("{NAME_PREFIX}{workspace}-record");
    if name.len() <= LONGEST {
        name
    } else {
        hashed_wide("gpu-workspace-record-", [workspace])
    }
}
