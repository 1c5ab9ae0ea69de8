//! The placement `Cluster`.

use std::collections::BTreeMap;

use api::catalogue::Prices;
use api::cluster::ChosenPods;
use api::lifecycle::WorkspaceState;
use api::policy::WorkspacePolicy;
use api::workspace::{Phase, WorkspaceParameters};
use function_runtime::composite::{Composite, Origin};
use function_runtime::desired::Composed;
use function_runtime::keep;
use function_runtime::outcome::Unresolved;
use function_runtime::request::Request;
use function_runtime::requirement::Requirement;
use function_runtime::response::{Condition, Response};
use function_workspace::conditions;
use function_workspace::placed::{Allowance, Claimed, Course, Leftovers, Machines, Placed};
use function_workspace::report::{Composition, Report};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::names::Names;
use crate::plan::{self, Step};
use crate::prices::PodPrices;
use crate::record::{self, Record};
use crate::report::Subject;
use crate::seen::Seen;
use crate::{activity, choice, required, resolved, resource_names};

/// The DNS domain to use while the policy cannot be read. No decision depends on it.
const DEFAULT_DOMAIN: &str = "cluster.local";

/// Decides what is desired for a workspace in the cluster.
pub fn render(request: &Request, composite: Composite<'_>) -> Response {
    let claimed = Claimed::read(request, composite);
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
}

impl Placed for InCluster<'_> {
    fn requirements(&self, policy: &WorkspacePolicy) -> Vec<Requirement> {
        required::requirements(policy, self.claimed, self.seen.stateful_set())
    }

    fn machines(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        prices: Option<&Prices>,
    ) -> Machines<'_> {
        let started = self.seen.pods().filter(|pod| pod.has_started()).count();
        let prices = PodPrices {
            prices,
            chosen: self.pods.as_ref(),
            resolved: policy
                .cluster
                .as_ref()
                .and_then(|cluster| choice::flavor(parameters, cluster).ok()),
            count: parameters.distributed.as_ref().map_or(1, |d| d.nodes),
            started,
        };
        let set = self.seen.stateful_set();
        let is_on = set.is_some_and(|set| set.replicas() > 0) || started > 0;
        let has_agent = self.pods.as_ref().map_or(0, plan::watched) > 0;
        Machines {
            reported: activity::as_reported(has_agent, self.reported.as_deref()),
            has_machine: started > 0,
            is_on,
            running: prices.running(),
            highest: prices.highest(is_on),
        }
    }

    fn compose(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        course: &Course,
    ) -> Result<Composition, Unresolved> {
        let stays = Leftovers::Stay;
        let (state, leftovers, rest) = match course {
            Course::Rest {
                leftovers,
                cause,
                phase,
            } => (WorkspaceState::Stopped, *leftovers, Some((cause, *phase))),
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
        let resolved = resolved::resolved(policy, self.claimed, parameters, state, leftovers)?;
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
            // Settings for the next start do not concern running pods.
            unresolved: resolved.made_from.as_ref().err().map(Unresolved::reason),
            ..self.composed(report, plan.objects)
        })
    }

    fn kept(&self, policy: &WorkspacePolicy, _: Option<Timestamp>) -> Composition {
        let domain = policy.cluster.as_ref();
        let domain = domain.map(|cluster| cluster.domain.as_str());
        let observed = self.seen.observed.iter();
        let objects = observed.map(|(name, object)| (name.clone(), kept(name, object)));
        self.composed(self.as_observed(domain), objects.collect())
    }

    fn conditions(&self, _: Option<&WorkspacePolicy>) -> Vec<Condition> {
        if self.seen.observed.is_empty() {
            vec![conditions::compute_blocked()]
        } else {
            self.as_observed(None).conditions
        }
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
        }
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
            unresolved: None,
        }
    }

    fn as_observed(&self, domain: Option<&str>) -> Report {
        let names = match self.claimed.composite.origin() {
            Some(origin) => Names::of(&origin, domain.unwrap_or(DEFAULT_DOMAIN)),
            None => Names::of(
                &Origin {
                    namespace: String::new(),
                    name: self.claimed.composite.name().to_owned(),
                },
                DEFAULT_DOMAIN,
            ),
        };
        let set = self.seen.stateful_set();
        let record = set.and_then(Record::of);
        let recorded = record.as_ref().map(|record| &record.pods);
        Subject {
            names: &names,
            seen: self.seen,
            pods: recorded.or(self.claimed.previous.pods.as_ref()),
            step: match set {
                Some(set) if set.replicas() > 0 => Step::Run,
                Some(set) if set.current() > 0 => Step::Stop,
                Some(_) => Step::Rest,
                None if matches!(
                    self.claimed.previous.phase,
                    Some(Phase::Stopped | Phase::Expired)
                ) =>
                {
                    Step::Rest
                }
                None => Step::Run,
            },
            has_home: set.is_some_and(|set| set.home_template().is_some()),
            rest: None,
            previous: &self.claimed.previous,
        }
        .report()
    }
}

/// An observed object as it must be desired to stay as it is. The contents of a Secret belong to
/// the pods, and Kueue's labels belong to Kueue.
fn kept(name: &str, observed: &Value) -> Value {
    let mut kept = keep::kept(observed);
    match name {
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
                kept["metadata"]["annotations"] = json!({(record::ANNOTATION): record});
            }
            // This function sets the queue's labels, although they do not have its own prefix.
            let labels = observed
                .pointer("/metadata/labels")
                .and_then(Value::as_object);
            for (label, value) in labels.into_iter().flatten() {
                if label.starts_with("kueue.x-k8s.io/") {
                    kept["metadata"]["labels"][label] = value.clone();
                }
            }
        }
        _ => {}
    }
    kept
}
