//! The decision for a workspace in the cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use api::lifecycle::StopReason;
use api::policy::WorkspacePolicy;
use api::workspace::{GpuDevWorkspaceStatus, Phase, WorkspaceParameters};
use serde_json::{Value, json};

use crate::names::Names;
use crate::plan;
use crate::plan::{Plan, Step};
use crate::prices::Nodes;
use crate::record;
use crate::record::Record;
use crate::report::{Report, Subject};
use crate::required;
use crate::resource_names;
use crate::seen::{Pod, Seen};
use crate::wanted;
use crate::wanted::Wanted;
use crate::{activity, choice};
use function_runtime::composite::Composite;
use function_runtime::desired::{Composed, Desired};
use function_runtime::keep;
use function_runtime::outcome::Hold;
use function_runtime::outcome::Refusal;
use function_runtime::outcome::Unresolved;
use function_runtime::request::Request;
use function_runtime::requirement::Requirement;
use function_runtime::response::{CONFIG_RESOLVED, Condition, Response, fields};
use function_runtime::validation::Violations;
use function_workspace::claim;
use function_workspace::cost;
use function_workspace::cost::Cost;
use function_workspace::cost::budget;
use function_workspace::cost::budget::Verdict;
use function_workspace::lifecycle::life::{Life, Sight};
use function_workspace::{catalogue, conditions, lifecycle, policy};

/// How soon to look again at pods that are on their way, should Crossplane's watches
/// have stopped listening.
const UNSETTLED_TTL: Duration = Duration::from_secs(10);
/// The DNS domain of a workspace whose policy cannot be read; it is in no decision.
const DEFAULT_DOMAIN: &str = "cluster.local";

/// Decides.
pub fn render(request: &Request, composite: Composite<'_>) -> Response {
    let previous = claim::status(composite);
    let parameters = claim::parameters(composite);
    let rendering = Rendering {
        request,
        composite,
        parameters: parameters.as_ref(),
        previous: &previous,
        seen: Seen::new(request),
    };
    let policy = match policy::read(request.policy.as_ref()) {
        Ok(policy) => policy,
        Err(violations) => return rendering.refused(None, &Refusal::policy(&violations)),
    };
    let (life, cost) = match rendering.life(&policy) {
        Ok(both) => both,
        Err(wrong) => return rendering.refused(Some(&policy), &Refusal::parameters(wrong)),
    };
    cost.told(life.told(rendering.decided(&policy, &life, &cost)))
}

/// A request, and what is seen in it.
struct Rendering<'a> {
    request: &'a Request,
    composite: Composite<'a>,
    parameters: Result<&'a WorkspaceParameters, &'a Violations>,
    previous: &'a GpuDevWorkspaceStatus,
    seen: Seen<'a>,
}

impl Rendering<'_> {
    /// Whether it runs, and what it costs.
    fn life(&self, policy: &WorkspacePolicy) -> Result<(Life, Cost), Violations> {
        let parameters = self.parameters.map_err(Clone::clone)?;
        let record = self.seen.stateful_set().and_then(Record::of);
        let pods = record
            .map(|record| record.pods)
            .or(self.previous.pods.clone());
        let budget = budget::read(policy, self.request, &parameters.owner, self.composite);
        let watched = pods.as_ref().map_or(0, plan::watched);
        let report = activity::reported(self.seen, watched);
        let sight = Sight {
            has_machine: self.seen.pods().any(Pod::has_started),
            reported: activity::as_reported(watched > 0, report.as_deref()),
            ends_by: budget.ends_by(self.previous),
        };
        let life = Life::of(
            self.composite,
            self.previous,
            parameters.lifecycle.as_ref(),
            &policy.lifecycle,
            sight,
            self.request.now,
        )?;
        let prices = catalogue::prices(policy, self.request);
        let nodes = Nodes {
            prices: prices.as_ref(),
            chosen: pods.as_ref(),
            wanted: policy
                .cluster
                .as_ref()
                .and_then(|cluster| choice::flavor(parameters, cluster).ok()),
            count: parameters.distributed.as_ref().map_or(1, |d| d.nodes),
            started: self.seen.pods().filter(|pod| pod.has_started()).count(),
        };
        let is_on = self.is_on();
        let subject = cost::subject::Subject {
            composite: self.composite,
            previous: self.previous,
            prices: prices.as_ref(),
            running: nodes.running(),
            is_on,
            highest: &nodes.highest(is_on),
            now: self.request.now,
        };
        let cost = Cost::of(subject, &budget, &life);
        Ok((life, cost))
    }

    /// Whether there are pods, or are to be.
    fn is_on(&self) -> bool {
        let set = self.seen.stateful_set();
        set.is_some_and(|set| set.replicas() > 0) || self.seen.pods().any(Pod::has_started)
    }

    fn decided(&self, policy: &WorkspacePolicy, life: &Life, cost: &Cost) -> Response {
        let set = self.seen.stateful_set();
        let is_stopping = set.is_some_and(|set| set.replicas() == 0);
        let step = match &cost.verdict {
            Verdict::Go | Verdict::Short(_) => life.decision.step,
            // Pods that run stay what they are in any case.
            Verdict::Keep(_) if !is_stopping => life.decision.step,
            Verdict::Keep(_) | Verdict::Wait(_) => lifecycle::Step::Stop(StopReason::State),
        };
        let wanted =
            match wanted::wanted(policy, self.composite, self.parameters, step, self.request) {
                Ok(wanted) => wanted,
                Err(why) => return self.unresolved(policy, why),
            };
        match plan::plan(&wanted, self.seen, self.previous.pods.as_ref()) {
            Ok(plan) => self.planned(policy, &wanted, plan, life, cost),
            Err(why) => self.unresolved(policy, why),
        }
    }

    fn planned(
        &self,
        policy: &WorkspacePolicy,
        wanted: &Wanted,
        plan: Plan,
        life: &Life,
        cost: &Cost,
    ) -> Response {
        let (cause, phase) = match cost.cause() {
            Some(cause) => (cause.clone(), Phase::Queued),
            None => (life.cause(), life.phase()),
        };
        let report = Subject {
            names: &wanted.names,
            seen: self.seen,
            pods: plan.pods.as_ref(),
            step: plan.step,
            has_home: match self.seen.stateful_set() {
                // One that is added later is made at the next start.
                Some(set) => set.home_template().is_some(),
                None => wanted.home.is_some() && !wanted.deletes_what_is_left,
            },
            rest: Some((&cause, phase)),
            previous: self.previous,
        }
        .report();
        let config = match &wanted.made_from {
            // The pods run on; what they would be next time is another matter.
            Err(why) => Condition::fails(CONFIG_RESOLVED, why.reason(), plan.notices.join("; ")),
            Ok(_) => conditions::config_resolved(plan.notices.join("; ")),
        };
        self.composed(policy, config, report, plan.objects)
    }

    fn unresolved(&self, policy: &WorkspacePolicy, why: Unresolved) -> Response {
        match why {
            Unresolved::Held(why) => self.held(policy, &why),
            Unresolved::Refused(why) => self.refused(Some(policy), &why),
        }
    }

    fn composed(
        &self,
        policy: &WorkspacePolicy,
        config: Condition,
        report: Report,
        objects: BTreeMap<String, Value>,
    ) -> Response {
        let resources = objects.into_iter().map(|(key, object)| {
            let ready = match key.as_str() {
                resource_names::STATEFUL_SET => report.ready,
                _ => self.seen.observed.contains_key(&key),
            };
            (key, Composed { object, ready })
        });
        let connection = report.connection.into_iter();
        Response {
            ttl: ttl(policy, report.status.phase),
            requirements: self.requirements(policy),
            desired: Some(Desired {
                resources: resources.collect(),
                status: fields(&report.status),
                connection: connection
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect(),
                ready: self.request.readiness(report.ready),
            }),
            conditions: [config].into_iter().chain(report.conditions).collect(),
            events: report.events,
        }
    }

    /// Everything stays as it is.
    fn held(&self, policy: &WorkspacePolicy, why: &Hold) -> Response {
        let domain = policy
            .cluster
            .as_ref()
            .map(|cluster| cluster.domain.as_str());
        let mut report = self.as_observed(domain);
        if self.seen.observed.is_empty() {
            report.status.message = Some(why.to_string());
            report.conditions = vec![conditions::compute_blocked()];
        }
        let config = Condition::fails(CONFIG_RESOLVED, why.reason(), why.to_string());
        let observed = self.seen.observed.iter();
        let objects = observed.map(|(key, object)| (key.clone(), kept(key, object)));
        self.composed(policy, config, report, objects.collect())
    }

    fn refused(&self, policy: Option<&WorkspacePolicy>, why: &Refusal) -> Response {
        let conditions = if self.seen.observed.is_empty() {
            vec![conditions::compute_blocked()]
        } else {
            self.as_observed(None).conditions
        };
        let least = policy.map_or(0, |policy| policy.minimum_refresh_seconds);
        let least = Duration::from_secs(least.into());
        Response {
            requirements: policy
                .map(|policy| self.requirements(policy))
                .unwrap_or_default(),
            ..Response::refused(why.reason(), why.to_string(), least, conditions)
        }
    }

    fn requirements(&self, policy: &WorkspacePolicy) -> Vec<Requirement> {
        required::requirements(
            policy,
            self.composite,
            self.parameters.ok(),
            self.previous,
            self.seen.stateful_set(),
        )
    }

    fn as_observed(&self, domain: Option<&str>) -> Report {
        let names = match self.composite.origin() {
            Some(origin) => Names::of(&origin, domain.unwrap_or(DEFAULT_DOMAIN)),
            None => Names::of(
                &function_runtime::composite::Origin {
                    namespace: String::new(),
                    name: self.composite.name().to_owned(),
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
            pods: recorded.or(self.previous.pods.as_ref()),
            step: match set {
                Some(set) if set.replicas() > 0 => Step::Run,
                Some(set) if set.current() > 0 => Step::Stop,
                Some(_) => Step::Rest,
                None if matches!(self.previous.phase, Some(Phase::Stopped | Phase::Expired)) => {
                    Step::Rest
                }
                None => Step::Run,
            },
            has_home: set.is_some_and(|set| set.home_template().is_some()),
            rest: None,
            previous: self.previous,
        }
        .report()
    }
}

/// An observed object as it must be desired to stay as it is. A Secret's contents
/// are the pods', and Kueue's keys are Kueue's.
fn kept(key: &str, observed: &Value) -> Value {
    let mut kept = keep::kept(observed);
    match key {
        // What is in a Lease is the agent's.
        _ if key.starts_with(resource_names::NODE_ACTIVITY_PREFIX) => {
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
            // The queue is this function's to name; it is no label of its own.
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

fn ttl(policy: &WorkspacePolicy, phase: Option<Phase>) -> Duration {
    let refresh = Duration::from_secs(policy.refresh_seconds.into());
    let least = Duration::from_secs(policy.minimum_refresh_seconds.into());
    match phase {
        Some(Phase::Ready | Phase::Stopped | Phase::Expired) => refresh,
        _ => UNSETTLED_TTL.max(least).min(refresh),
    }
}
