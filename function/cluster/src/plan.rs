//! Plans which objects are composed: the pods, their number, and the objects that stay as they are.

use std::collections::BTreeMap;

use api::cluster::ChosenPods;
use api::lifecycle::WorkspaceState;
use function_runtime::desired::Composed;
use function_runtime::json::Json;
use function_runtime::outcome::{Refusal, Unresolved};
use serde_json::{Map, Value, json};

use crate::record::Record;
use crate::resolved::Resolved;
use crate::resource_names;
use crate::seen::{Pod, Seen, StatefulSet};
use crate::stateful_set::Pods;
use crate::{activity, existing, files, homes, identity, network};

/// The plan of one call.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The objects, by composition resource name.
    pub objects: BTreeMap<String, Value>,
    /// The settings of the pods; none before the first start.
    pub pods: Option<ChosenPods>,
    /// What happens to the pods.
    pub step: Step,
    /// Messages about changes that have no effect yet.
    pub notices: Vec<String>,
}

/// What happens to the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The pods run or start.
    Run,
    /// The pods end because the workspace is not to run.
    Stop,
    /// The pods end because their settings changed while their containers do not run. They start
    /// again as soon as the last pod is gone.
    Restart,
    /// There are no pods, as the claim says.
    Rest,
}

/// Plans the composed objects. `status` has the pods' settings that the last call recorded.
pub fn plan(
    resolved: &Resolved,
    seen: Seen<'_>,
    status: Option<&ChosenPods>,
) -> Result<Plan, Unresolved> {
    homes::check(resolved, seen)?;
    existing::check(&resolved.names, seen, resolved.homes)?;
    let recorded = recorded(resolved, seen, status);
    let recorded = recorded.as_ref();
    let active = is_active(seen);
    let running = resolved.state == WorkspaceState::Running;
    let (record, step) = match (running, active) {
        (true, false) => (Some(fresh(resolved)?), Step::Run),
        (true, true) => running_pods(resolved, seen, recorded)?,
        (false, active) => {
            let step = if active { Step::Stop } else { Step::Rest };
            let kept = match recorded {
                Some(recorded) => Some(recorded),
                // The manifest of a StatefulSet needs the pods' settings. A StatefulSet must not be
                // dropped because they are missing.
                None if seen.stateful_set().is_some() => Some(fresh(resolved)?),
                None => None,
            };
            (kept, step)
        }
    };
    let goes = record.is_some_and(|record| goes(resolved, seen, recorded, record, step));
    let step = if goes && step == Step::Run {
        Step::Restart
    } else {
        step
    };
    let pods = record.map_or(1, |record| record.pods.nodes);
    let watched = record.map_or(0, |record| watched(&record.pods));
    let mut plan = Plan {
        objects: standing(resolved, seen, record)?,
        pods: record.map(|record| record.pods.clone()),
        step,
        notices: notices(resolved, seen, record, step),
    };
    for (name, lease) in activity::leases(&resolved.names, &resolved.owner, watched) {
        plan.objects.insert(name, Composed::manifest(&lease)?);
    }
    if !resolved.deletes_what_is_left {
        plan.objects.extend(homes::composed(resolved, seen, pods)?);
    }
    if let Some(record) = record.filter(|_| !goes) {
        plan.objects
            .extend(stateful_set(resolved, seen, record, step)?);
    }
    Ok(plan)
}

/// The number of pods with an agent.
pub fn watched(pods: &ChosenPods) -> i32 {
    pods.agent.as_ref().map_or(0, |_| pods.nodes)
}

/// The record of the pods' settings: that on the StatefulSet, or else that in status.
fn recorded(resolved: &Resolved, seen: Seen<'_>, status: Option<&ChosenPods>) -> Option<Record> {
    let by_status = || {
        status.map(|pods| Record {
            pods: pods.clone(),
            owner: resolved.owner.clone(),
            domain: resolved.names.domain.clone(),
        })
    };
    seen.stateful_set().and_then(Record::of).or_else(by_status)
}

/// Whether pods exist or are to exist. The pods' settings cannot change before the last pod is
/// gone.
pub fn is_active(seen: Seen<'_>) -> bool {
    let counted = seen
        .stateful_set()
        .is_some_and(|set| set.replicas() > 0 || set.current() > 0);
    // Pods may exist that Crossplane has not fetched yet.
    let unknown = seen.stateful_set().is_some() && !seen.knows_pods();
    counted || unknown || seen.pods().next().is_some()
}

fn fresh(resolved: &Resolved) -> Result<&Record, Unresolved> {
    resolved.made_from.as_ref().map_err(Clone::clone)
}

/// The step of running pods. They keep their settings while the owner may work in them.
fn running_pods<'a>(
    resolved: &'a Resolved,
    seen: Seen<'_>,
    recorded: Option<&'a Record>,
) -> Result<(Option<&'a Record>, Step), Unresolved> {
    let Some(recorded) = recorded else {
        return Ok((Some(fresh(resolved)?), Step::Run));
    };
    let changed = resolved
        .made_from
        .as_ref()
        .is_ok_and(|fresh| fresh != recorded);
    let in_use = |pod: Pod<'_>| pod.has_started() && !pod.is_ending();
    let nobody_works = seen.knows_pods() && !seen.pods().any(in_use);
    // Kueue starts a StatefulSet again only after its last pod is gone.
    let is_counted = recorded.pods.queue.is_some();
    let ends = is_counted && seen.stateful_set().is_some_and(|set| set.replicas() == 0);
    let step = if ends || (changed && nobody_works) {
        Step::Restart
    } else {
        Step::Run
    };
    Ok((Some(recorded), step))
}

/// All objects except the StatefulSet and the homes.
///
/// Kubernetes refuses a binding to a role that does not exist. Crossplane applies resources in no
/// fixed order and stops at the first refusal. The binding is therefore desired one call after the
/// role.
fn standing(
    resolved: &Resolved,
    seen: Seen<'_>,
    record: Option<&Record>,
) -> Result<BTreeMap<String, Value>, Refusal> {
    let Resolved { names, owner, .. } = resolved;
    let gang = record.filter(|record| record.pods.nodes > 1);
    let gang = gang.map(|record| record.owner.as_str());
    let binds = [resource_names::ROLE, resource_names::ROLE_BINDING];
    let binds = binds.iter().any(|name| seen.observed.contains_key(*name));
    let watched = record.map_or(0, |record| watched(&record.pods));
    let by_ssh = network::by_ssh(&resolved.ssh_cidrs, resolved.bastion.as_ref());
    let policy = network::policy(names, owner, by_ssh, gang, &resolved.egress);
    let keys = files::authorized_keys(names, owner, &resolved.public_keys);
    let written = [
        (
            resource_names::SERVICE,
            Composed::manifest(&network::service(names, owner)),
        ),
        (resource_names::NETWORK_POLICY, Composed::manifest(&policy)),
        (
            resource_names::SERVICE_ACCOUNT,
            Composed::manifest(&identity::service_account(names, owner)),
        ),
        (
            resource_names::ROLE,
            Composed::manifest(&identity::role(names, owner, watched)),
        ),
        (
            resource_names::ROLE_BINDING,
            Composed::manifest(&identity::role_binding(names, owner)),
        ),
        (
            resource_names::HOST_KEYS,
            Composed::manifest(&identity::host_keys(names, owner)),
        ),
        (
            resource_names::FILES,
            Composed::manifest(&files::programs(names, owner)),
        ),
        (resource_names::AUTHORIZED_KEYS, Composed::manifest(&keys)),
    ];
    written
        .into_iter()
        .filter(|(name, _)| binds || *name != resource_names::ROLE_BINDING)
        .map(|(name, object)| Ok((name.to_owned(), object?)))
        .collect()
}

/// Whether the StatefulSet is dropped, for a short time or until the workspace starts again. Homes
/// stay, because a StatefulSet never deletes them.
///
/// Kueue (0.19) allows no change of the fields that it counts, not even on a StatefulSet without
/// replicas. If a waiting StatefulSet is scaled to 0, Kueue keeps its quota. A StatefulSet with a
/// queue therefore exists only while it is to run. A StatefulSet without a queue is dropped to get
/// its first home, because its volume claim templates cannot change.
fn goes(
    resolved: &Resolved,
    seen: Seen<'_>,
    recorded: Option<&Record>,
    record: &Record,
    step: Step,
) -> bool {
    let Some(observed) = seen.stateful_set() else {
        return false;
    };
    if resolved.deletes_what_is_left && step == Step::Rest {
        return true;
    }
    let is_counted = |record: &Record| record.pods.queue.is_some();
    if is_counted(record) && step != Step::Run {
        return true;
    }
    let lacks_home = resolved.home.is_some() && observed.home_template().is_none();
    let recounted = recorded
        .is_some_and(|recorded| recorded != record && (is_counted(recorded) || is_counted(record)));
    !is_active(seen) && (lacks_home || recounted || observed.is_ending())
}

/// The StatefulSet of the pods; none for a workspace that has never run and is not to run.
fn stateful_set(
    resolved: &Resolved,
    seen: Seen<'_>,
    record: &Record,
    step: Step,
) -> Result<Option<(String, Value)>, Refusal> {
    let observed = seen.stateful_set();
    if observed.is_none() && step == Step::Rest {
        return Ok(None);
    }
    let there = observed
        .and_then(StatefulSet::home_template)
        .map(as_applied);
    let to_come = resolved.home.as_ref().filter(|_| observed.is_none());
    let to_come = to_come.map(|home| homes::template(&resolved.names, &resolved.owner, home));
    let to_come = to_come.map(|home| Composed::manifest(&home)).transpose()?;
    // The API server refuses changes of the template, so an existing template is written as it was
    // read.
    let home = there.or(to_come.map(without_type));
    let pods = Pods {
        names: &resolved.names,
        owner: &resolved.owner,
        record,
        replicas: match step {
            Step::Run => record.pods.nodes,
            Step::Stop | Step::Restart | Step::Rest => 0,
        },
        home: home.as_ref(),
    };
    let name = resource_names::STATEFUL_SET.to_owned();
    Ok(Some((name, pods.manifest()?)))
}

/// Removes API version and kind, which a volume claim template does not have.
fn without_type(mut template: Value) -> Value {
    if let Some(fields) = template.as_object_mut() {
        fields.retain(|field, _| field == "metadata" || field == "spec");
    }
    template
}

/// An observed volume claim template without the fields that the API server adds.
fn as_applied(template: &Json<'_>) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "labels", "annotations"] {
        if let Some(value) = template.pointer(&format!("/metadata/{field}")) {
            metadata.insert(field.to_owned(), value.into());
        }
    }
    let spec = template.get("spec").map(Value::from);
    json!({"metadata": metadata, "spec": spec})
}

fn notices(
    resolved: &Resolved,
    seen: Seen<'_>,
    record: Option<&Record>,
    step: Step,
) -> Vec<String> {
    const NEXT_START: &str = "set spec.parameters.lifecycle.state to Stopped, then to Running";
    let mut notices = resolved.notices.clone();
    if let (Some(record), Ok(fresh), Step::Run) = (record, &resolved.made_from, step)
        && record != fresh
    {
        notices.push(format!(
            "the pods keep the settings that they started with; changes of the claim or of \
             WorkspaceFlavor {} take effect at the next start: {NEXT_START}",
            fresh.pods.flavor
        ));
    }
    if let Err(why) = &resolved.made_from {
        notices.push(format!("if it stops, it cannot start again: {why}"));
    }
    let Some(home) = &resolved.home else {
        return notices;
    };
    notices.extend(homes::too_small(resolved, home, seen));
    let has_template = seen
        .stateful_set()
        .is_none_or(|set| set.home_template().is_some());
    if !has_template && step == Step::Run {
        notices.push(format!("the home is made at the next start: {NEXT_START}"));
    }
    notices
}
