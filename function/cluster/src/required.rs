//! The resources that Crossplane must fetch for a workspace in the cluster.

use api::policy::WorkspacePolicy;
use api::workspace::{Phase, WorkspaceParameters};
use function_runtime::requirement::{Requirement, Selector};
use function_workspace::labels::KUEUE;
use function_workspace::placed::Claimed;
use function_workspace::{catalogue, dev_user, flavor, owner};

use crate::names::{EARLIER_HOMES, HOMES, Names, Naming, PODS, WORKLOADS, WORKSPACE_LABEL};
use crate::record::Record;
use crate::seen::{Seen, StatefulSet};
use crate::{choice, existing, queue};

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
    let named = cluster.zip(parameters);
    let named = named.and_then(|(cluster, claim)| choice::flavor(claim, cluster).ok());
    required.extend(named.map(flavor::requirement));
    let status = &claimed.previous;
    let has_keys = cluster.is_some_and(|cluster| cluster.dev_users);
    required.extend(dev_user::requirement(
        has_keys,
        policy,
        status,
        &claimed.owner,
    ));
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

/// The number of homes that a claim asks for: one for each pod.
pub fn homes(parameters: &WorkspaceParameters) -> i32 {
    parameters
        .home
        .as_ref()
        .map_or(0, |_| choice::node_count(parameters))
}
