//! The resources that Crossplane must fetch for a workspace in the cluster.

use api::flavor::WorkspaceFlavorSpec;
use api::policy::WorkspacePolicy;
use api::workspace::{Phase, WorkspaceParameters};
use function_runtime::outcome::{Hold, Problem};
use function_runtime::request::{Request, Required};
use function_runtime::requirement::{Requirement, Selector};
use function_runtime::validation::Violations;
use function_workspace::labels::{API_VERSION, KUEUE};
use function_workspace::placed::Claimed;
use function_workspace::{catalogue, claim, dev_user, owner};
use serde_json::json;
use thiserror::Error;

use crate::flavor;
use crate::names::{EARLIER_HOMES, HOMES, Names, Naming, PODS, WORKLOADS, WORKSPACE_LABEL};
use crate::record::Record;
use crate::seen::{Seen, StatefulSet};
use crate::{choice, existing, queue};

const FLAVOR: &str = "flavor";

/// All requirements of a workspace. They depend on claim, policy and observed resources only, so
/// they are the same in every call of a reconcile.
///
/// `policy` is none if it cannot be read. Pods and homes are required nevertheless, because their
/// costs and their end depend on no policy.
pub fn requirements(
    policy: Option<&WorkspacePolicy>,
    claimed: &Claimed<'_>,
    seen: Seen<'_>,
) -> Vec<Requirement> {
    let mut required = policy.map(catalogue::requirements).unwrap_or_default();
    let Some(origin) = claimed.composite.origin() else {
        return required;
    };
    required.extend(policy.and_then(|policy| owner::requirement(policy, &origin)));
    let parameters = claimed.parameters.as_ref().ok();
    let nodes = parameters.map_or(0, homes);
    let naming = Naming::of(claimed, &origin, policy);
    for (names, requirement) in naming.candidates().iter().zip([HOMES, EARLIER_HOMES]) {
        required.push(of_workspace(names, requirement, "PersistentVolumeClaim"));
        required.extend(existing::requirements(names, seen, nodes));
        // Pods exist only beside objects that decide the names.
        if requirement == HOMES {
            required.push(of_workspace(names, PODS, "Pod"));
        }
    }
    let cluster = policy.and_then(|policy| policy.cluster.as_ref());
    let flavor = cluster.zip(parameters);
    let flavor = flavor.and_then(|(cluster, claim)| choice::flavor(claim, cluster).ok());
    required.extend(flavor.map(|flavor| ours(FLAVOR, "WorkspaceFlavor", flavor)));
    let owner = claim::owner(claimed.composite);
    let status = &claimed.previous;
    let has_keys = cluster.is_some_and(|cluster| cluster.dev_users);
    required.extend(dev_user::requirement(has_keys, policy, status, owner));
    let set = seen.stateful_set();
    let recorded = set.and_then(Record::of).map(|record| record.pods);
    let is_queued = [status.pods.as_ref(), recorded.as_ref()]
        .into_iter()
        .flatten()
        .any(|pods| pods.queue.is_some());
    if is_queued || cluster.is_some_and(|cluster| cluster.queue.is_some()) {
        required.push(of_kueue(status.phase, &origin.namespace, set));
    }
    required
}

fn of_workspace(names: &Names, requirement: &str, kind: &'static str) -> Requirement {
    Requirement {
        name: requirement.to_owned(),
        api_version: "v1",
        kind,
        selector: Selector::Labelled {
            namespace: names.namespace.clone(),
            key: WORKSPACE_LABEL,
            value: names.name.clone(),
        },
    }
}

/// A running workspace requires its own Workload only. A waiting workspace requires all Workloads
/// of its namespace, because its position depends on them. Workloads of all namespaces are not
/// required: Crossplane watches required resources, so each change would cause a call for every
/// waiting workspace, and Crossplane stops a watch with too many events.
fn of_kueue(phase: Option<Phase>, namespace: &str, set: Option<StatefulSet<'_>>) -> Requirement {
    let namespace = namespace.to_owned();
    let selector = match set.filter(|_| phase == Some(Phase::Ready)) {
        Some(set) => Selector::Labelled {
            namespace,
            key: queue::JOB_UID,
            value: set.uid().to_owned(),
        },
        None => Selector::Every {
            namespace: Some(namespace),
        },
    };
    Requirement {
        name: WORKLOADS.to_owned(),
        api_version: KUEUE,
        kind: "Workload",
        selector,
    }
}

fn ours(requirement: &str, kind: &'static str, name: &str) -> Requirement {
    Requirement {
        name: requirement.to_owned(),
        api_version: API_VERSION,
        kind,
        selector: Selector::Named(name.to_owned()),
    }
}

/// The number of homes that a claim asks for: one for each pod.
pub fn homes(parameters: &WorkspaceParameters) -> i32 {
    parameters
        .home
        .as_ref()
        .map_or(0, |_| choice::node_count(parameters))
}

/// The flavor of the claim. A flavor that cannot be read is not an error of the claim, so the
/// workspace is held.
pub fn flavor(request: &Request, name: &str) -> Result<WorkspaceFlavorSpec, Hold> {
    let name = name.to_owned();
    let found = match request.required(FLAVOR) {
        Required::Unresolved => return Err(FlavorUnusable::Unresolved { name }.into()),
        Required::Absent => return Err(FlavorUnusable::Absent { name }.into()),
        Required::Present(found) => found,
    };
    let none = json!({});
    flavor::read(found.get("spec").unwrap_or(&none))
        .map_err(|violations| FlavorUnusable::Invalid { name, violations }.into())
}

/// Why the flavor cannot be used.
#[derive(Clone, Debug, Error)]
enum FlavorUnusable {
    /// Crossplane has not fetched the flavor yet.
    #[error("waiting for Crossplane to fetch WorkspaceFlavor {name}")]
    Unresolved {
        /// The `WorkspaceFlavor`.
        name: String,
    },
    /// The flavor does not exist.
    #[error(
        "WorkspaceFlavor {name} does not exist: create it, or name another one in \
         spec.parameters.flavor or the Composition's input.cluster.defaultFlavor"
    )]
    Absent {
        /// The `WorkspaceFlavor`.
        name: String,
    },
    /// The flavor does not match its schema.
    #[error("WorkspaceFlavor {name} is not usable: {violations}")]
    Invalid {
        /// The `WorkspaceFlavor`.
        name: String,
        /// Violations of fields under `spec`.
        violations: Violations,
    },
}

impl Problem for FlavorUnusable {
    fn reason(&self) -> &'static str {
        match self {
            Self::Unresolved { .. } => "FlavorUnresolved",
            Self::Absent { .. } => "FlavorMissing",
            Self::Invalid { .. } => "FlavorInvalid",
        }
    }
}
