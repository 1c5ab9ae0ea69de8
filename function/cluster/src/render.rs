//! The placement `Cluster`.

use std::collections::BTreeMap;

use api::catalogue::Prices;
use api::cluster::ChosenPods;
use api::lifecycle::WorkspaceState;
use api::policy::WorkspacePolicy;
use api::workspace::{Phase, WorkspaceParameters};
use function_runtime::composite::{Composite, Origin};
use function_runtime::desired::Composed;
use function_runtime::json::Json;
use function_runtime::keep;
use function_runtime::object::{EXTERNAL_NAME, ObservedObject};
use function_runtime::outcome::{Refusal, Unresolved};
use function_runtime::request::Request;
use function_runtime::requirement::Requirement;
use function_runtime::response::Response;
use function_workspace::composition::Composition;
use function_workspace::placed::{
    Allowance, Claimed, Course, End, Leftovers, Machines, Placed, Rest,
};
use function_workspace::report::Report;
use function_workspace::setup::{self, Installation, Setup};
use function_workspace::{bastion, flavor, ssh_networks};
use serde_json::{Value, json};

use crate::names::{DEFAULT_DOMAIN, Naming};
use crate::plan::{self, Step};
use crate::record::{self, Record};
use crate::report::Subject;
use crate::seen::Seen;
use crate::{activity, choice, files, homes, network, prices, required, resolved, resource_names};

/// Decides what is desired for a workspace in the cluster. `limits` names the `EnvironmentConfig`
/// with the platform's limits.
pub fn render(request: &Request, composite: Composite<'_>, limits: Option<&str>) -> Response {
    let claimed = Claimed::read(request, composite, limits);
    let workspace = InCluster::new(&claimed);
    function_workspace::render::render(&claimed, &workspace)
}

struct InCluster<'a> {
    claimed: &'a Claimed<'a>,
    seen: Seen<'a>,
    /// The pods' settings: those recorded on the StatefulSet, or else those in status.
    pods: Option<ChosenPods>,
    /// The reports of all pods' agents, combined into one.
    reported: Option<String>,
    /// The number of pods that hold a node, and so cost money.
    placed_pods: usize,
}

impl Placed for InCluster<'_> {
    fn requirements(&self, policy: Option<&WorkspacePolicy>) -> Vec<Requirement> {
        required::requirements(policy, self.claimed, self.seen)
    }

    fn machines(
        &self,
        _: Option<&WorkspacePolicy>,
        _: Option<&WorkspaceParameters>,
        prices: Option<&Prices>,
    ) -> Machines<'_> {
        let has_agent = self.pods.as_ref().map_or(0, plan::watched) > 0;
        Machines {
            installation: Installation::Unknown,
            reported: activity::as_reported(has_agent, self.reported.as_deref()),
            has_machine: self.placed_pods > 0,
            stop_deletes_disk: false,
            is_on: self.is_on(),
            running: prices::running(self.pods.as_ref(), prices, self.placed_pods),
            homes: prices::homes(self.seen, &self.claimed.owner, prices),
        }
    }

    fn highest_price(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        prices: Option<&Prices>,
    ) -> Result<f64, String> {
        // Running pods keep the settings that they started with.
        if let Some(pods) = self.pods.as_ref().filter(|_| self.is_on()) {
            return prices::of(&pods.flavor, pods.size_permille, pods.nodes, prices);
        }
        let cluster = policy.cluster.as_ref();
        let flavor = cluster.and_then(|cluster| choice::flavor(parameters, cluster).ok());
        // An unknown flavor starts no pods.
        let chosen = cluster.zip(flavor).and_then(|(cluster, name)| {
            let spec = flavor::of(self.claimed.request, name).ok()?;
            let is_bounded = network::is_closed(policy.behaviour_version);
            choice::pods(parameters, cluster, name, &spec, is_bounded).ok()
        });
        let size = chosen.and_then(|pods| pods.size_permille);
        let nodes = choice::node_count(parameters);
        prices::of(flavor.unwrap_or_default(), size, nodes, prices)
    }

    fn compose(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        course: &Course,
    ) -> Result<Composition, Unresolved> {
        let stays = Leftovers::Stay;
        let (state, leftovers, mut rest) = match course {
            Course::Rest(rest) => {
                let because = Some((&rest.cause, rest.phase));
                (WorkspaceState::Stopped, rest.leftovers, because)
            }
            Course::Run { budget, .. } => match budget {
                Allowance::Run => (WorkspaceState::Running, stays, None),
                // Running pods keep their settings, so to run them is to keep them.
                Allowance::Keep if !self.is_stopping() => (WorkspaceState::Running, stays, None),
                Allowance::Keep => (WorkspaceState::Stopped, stays, None),
                Allowance::Wait(cause) => {
                    let queued = Some((cause, Phase::Queued));
                    (WorkspaceState::Stopped, stays, queued)
                }
            },
        };
        let is_on = self.is_on();
        let mut resolved =
            resolved::resolved(policy, self.claimed, parameters, state, leftovers, is_on)?;
        let access = resolved.access.clone();
        let barrier = access.as_ref().and_then(|access| access.barrier(policy));
        let barrier = self.claimed.suspended.as_ref().or(barrier);
        // Pods that run stay: the owner may be at work in an open session.
        let barrier = barrier.filter(|_| state == WorkspaceState::Running && !is_on);
        if let Some(cause) = barrier {
            resolved.state = WorkspaceState::Stopped;
            rest = Some((cause, Phase::Failed));
        }
        let plan = plan::plan(&resolved, self.seen, self.claimed.previous.pods.as_ref())?;
        let report = Subject {
            names: &resolved.names,
            seen: self.seen,
            pods: plan.pods.as_ref(),
            step: plan.step,
            has_home: match self.seen.stateful_set() {
                // A home that is added later is created at the next start.
                Some(set) => set.home_template().is_some(),
                None => resolved.home.is_some() && !resolved.deletes_what_is_left,
            },
            rest,
            previous: &self.claimed.previous,
        }
        .report();
        Ok(Composition {
            notices: plan.notices,
            access,
            setup: setup::is_awaited(policy.behaviour_version).then_some(Setup::InImage),
            // Settings for the next start do not concern running pods.
            unresolved: resolved.made_from.as_ref().err().map(Unresolved::reason),
            ..self.composed(report, plan.objects)
        })
    }

    fn kept(&self, policy: Option<&WorkspacePolicy>, _: End) -> Composition {
        let observed = self.seen.observed.iter();
        let objects = observed.map(|(name, object)| (name.clone(), self.kept_object(name, object)));
        self.composed(self.as_observed(policy, None), objects.collect())
    }

    fn stopped(
        &self,
        policy: Option<&WorkspacePolicy>,
        rest: &Rest,
    ) -> Result<Composition, Refusal> {
        let observed = self.seen.observed.iter();
        let stopped = observed.filter_map(|(name, object)| {
            let mut object = self.kept_object(name, object);
            if name == resource_names::STATEFUL_SET {
                // Kueue frees the quota of a StatefulSet only when it is deleted.
                let is_counted = self.pods.as_ref().is_some_and(|pods| pods.queue.is_some());
                if is_counted {
                    return None;
                }
                object["spec"]["replicas"] = json!(0);
            }
            Some((name.clone(), object))
        });
        let report = self.as_observed(policy, Some(rest));
        Ok(self.composed(report, stopped.collect()))
    }
}

impl<'a> InCluster<'a> {
    fn new(claimed: &'a Claimed<'a>) -> Self {
        let seen = Seen::new(claimed.request);
        let record = seen.stateful_set().and_then(Record::of);
        let pods = record.map(|record| record.pods);
        let pods = pods.or(claimed.previous.pods.clone());
        let watched = pods.as_ref().map_or(0, plan::watched);
        Self {
            claimed,
            seen,
            pods,
            reported: activity::reported(seen, watched),
            placed_pods: seen.pods().filter(|pod| pod.holds_node()).count(),
        }
    }

    /// An observed object as it is desired while the claim cannot be resolved. It stays as it is,
    /// but the keys of a suspended owner go, and so do networks beside the bastion where the policy
    /// allows none.
    fn kept_object(&self, name: &str, observed: &Json<'_>) -> Value {
        let mut kept = kept(name, observed);
        if name == resource_names::AUTHORIZED_KEYS && self.claimed.suspended.is_some() {
            kept["data"] = json!({(files::AUTHORIZED_KEYS): ""});
        }
        let policy = self.claimed.policy.in_force().ok();
        let only = policy.filter(|policy| ssh_networks::is_of_bastion_only(policy));
        if let Some(policy) = only.filter(|_| name == resource_names::NETWORK_POLICY) {
            network::open_only(&mut kept, bastion::pods(policy).as_ref());
        }
        kept
    }

    fn is_on(&self) -> bool {
        let set = self.seen.stateful_set();
        set.is_some_and(|set| set.replicas() > 0) || self.placed_pods > 0
    }

    fn is_stopping(&self) -> bool {
        let set = self.seen.stateful_set();
        set.is_some_and(|set| set.replicas() == 0)
    }

    fn composed(&self, report: Report, objects: BTreeMap<String, Value>) -> Composition {
        let resources = objects.into_iter().map(|(name, object)| {
            let ready = match name.as_str() {
                resource_names::STATEFUL_SET => report.ready,
                _ => self.seen.observed.contains_key(&name),
            };
            (name, Composed { object, ready })
        });
        let settled = [Phase::Ready, Phase::Stopped, Phase::Expired];
        Composition {
            resources: resources.collect(),
            is_settled: report
                .status
                .phase
                .is_some_and(|phase| settled.contains(&phase)),
            report,
            notices: Vec::new(),
            access: None,
            setup: None,
            unresolved: None,
        }
    }

    /// The report about the observed objects. With `rest` the workspace does not run.
    fn as_observed(&self, policy: Option<&WorkspacePolicy>, rest: Option<&Rest>) -> Report {
        let composite = self.claimed.composite;
        let origin = composite.origin().unwrap_or_else(|| Origin {
            namespace: String::new(),
            name: composite.name().to_owned(),
        });
        let cluster = policy.and_then(|policy| policy.cluster.as_ref());
        let domain = cluster.map_or(DEFAULT_DOMAIN, |cluster| cluster.domain.as_str());
        let set = self.seen.stateful_set();
        Subject {
            names: &Naming::of(self.claimed, &origin, policy).names(domain),
            seen: self.seen,
            pods: self.pods.as_ref(),
            step: match rest {
                Some(_) if plan::is_active(self.seen) => Step::Stop,
                Some(_) => Step::Rest,
                None => self.observed_step(),
            },
            has_home: set.is_some_and(|set| set.home_template().is_some()),
            rest: rest.map(|rest| (&rest.cause, rest.phase)),
            previous: &self.claimed.previous,
        }
        .report()
    }

    fn observed_step(&self) -> Step {
        let was_at_rest = matches!(
            self.claimed.previous.phase,
            Some(Phase::Stopped | Phase::Expired)
        );
        match self.seen.stateful_set() {
            Some(set) if set.replicas() > 0 => Step::Run,
            Some(set) if set.current() > 0 => Step::Stop,
            Some(_) => Step::Rest,
            None if was_at_rest => Step::Rest,
            None => Step::Run,
        }
    }
}

/// An observed object as it must be desired to stay as it is. The contents of a Secret belong to
/// the pods, and Kueue's labels belong to Kueue.
fn kept(name: &str, observed: &Json<'_>) -> Value {
    if resource_names::home_of_pod(name).is_some() {
        return homes::kept(observed);
    }
    let mut kept = keep::kept(observed);
    match name {
        // A resource of the other placement. Without its external name, a provider would create
        // another volume in the place of the home.
        _ if !resource_names::owns(name) => {
            if let Some(id) = ObservedObject::new(observed).external_name() {
                kept["metadata"]["annotations"] = json!({EXTERNAL_NAME: id});
            }
        }
        // The contents of a Lease belong to the agent.
        _ if name.starts_with(resource_names::POD_ACTIVITY_PREFIX) => {
            if let Some(lease) = kept.as_object_mut() {
                lease.remove("spec");
            }
        }
        resource_names::HOST_KEYS => {
            if let Some(secret) = kept.as_object_mut() {
                secret.remove("data");
            }
        }
        resource_names::STATEFUL_SET => {
            for part in ["labels", "annotations"] {
                let pointer = format!("/spec/template/metadata/{part}");
                let keys = kept.pointer_mut(&pointer).and_then(Value::as_object_mut);
                if let Some(keys) = keys {
                    keys.retain(|key, _| !key.starts_with("kueue.x-k8s.io/"));
                }
            }
            if let Some(record) = observed
                .pointer("/metadata/annotations")
                .and_then(|annotations| annotations.get(record::ANNOTATION))
            {
                kept["metadata"]["annotations"] =
                    json!({(record::ANNOTATION): Value::from(record)});
            }
            // This function sets the queue's labels, although they do not have its own prefix.
            let labels = observed.pointer("/metadata/labels");
            for (label, value) in labels.into_iter().flat_map(Json::fields) {
                if label.starts_with("kueue.x-k8s.io/") {
                    kept["metadata"]["labels"][label] = value.into();
                }
            }
        }
        _ => {}
    }
    kept
}
