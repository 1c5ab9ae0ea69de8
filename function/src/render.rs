//! The decision: from a request to a response, without clock, network or
//! randomness.

use std::time::Duration;

use api::condition::{COMPUTE_READY, CONFIG_RESOLVED};
use api::policy::WorkspacePolicy;
use api::workspace::GpuDevWorkspaceStatus;
use serde_json::{Map, Value};

use crate::claim_paths::ClaimPaths;
use crate::composite::Composite;
use crate::hold::{self, Hold};
use crate::observed::ObservedPool;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::response::{Condition, Desired, Event, Response, Severity};
use crate::status::{self, Report};
use crate::{input, limits, resolve};

/// How soon to look again at what a person has to change.
const REFUSED_TTL: Duration = Duration::from_mins(1);

/// Why there is no desired pool.
#[derive(Debug)]
pub enum Unresolved {
    /// The function does not know enough: what exists stays as it is.
    Held(Hold),
    /// A person has to change something: nothing is applied.
    Refused(Refusal),
}

impl From<Hold> for Unresolved {
    fn from(hold: Hold) -> Self {
        Self::Held(hold)
    }
}

impl From<Refusal> for Unresolved {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Decides.
pub fn render(request: &Request) -> Response {
    let seen = Seen::of(request);
    let policy = match input::policy(request.policy.as_ref()) {
        Ok(policy) => policy,
        Err(violations) => return seen.refused(None, &Refusal::Policy(violations)),
    };
    let Some(composite) = seen.composite else {
        return seen.refused(Some(&policy), &Refusal::NoComposite);
    };
    match resolve::workspace(&policy, composite, seen.pool.as_ref(), &request.catalogue) {
        Ok(workspace) => {
            let mut report = seen.report(&workspace.paths);
            report.status.image = Some(workspace.image);
            let config = Condition::config_resolved(workspace.notice);
            seen.composed(&policy, config, report, Some(workspace.pool))
        }
        Err(Unresolved::Held(why)) => seen.held(&policy, composite, &why),
        Err(Unresolved::Refused(why)) => seen.refused(Some(&policy), &why),
    }
}

/// A request, its observed parts read.
struct Seen<'a> {
    request: &'a Request,
    composite: Option<Composite<'a>>,
    pool: Option<ObservedPool>,
}

impl<'a> Seen<'a> {
    fn of(request: &'a Request) -> Self {
        Self {
            request,
            composite: request.composite.as_ref().map(Composite::new),
            pool: request.pool.as_ref().map(ObservedPool::read),
        }
    }

    fn report(&self, paths: &ClaimPaths) -> Report {
        let previous = self.composite.map(Composite::status);
        status::report(self.pool.as_ref(), &previous.unwrap_or_default(), paths)
    }

    fn composed(
        &self,
        policy: &WorkspacePolicy,
        config: Condition,
        report: Report,
        pool: Option<Value>,
    ) -> Response {
        let connection = report.connection.into_iter();
        Response {
            ttl: Duration::from_secs(policy.refresh_seconds.into()),
            catalogue: Some(policy.catalogue.name.clone()),
            desired: Some(Desired {
                pool: pool.map(|pool| (pool, report.ready)),
                status: fields(&report.status),
                connection: connection
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect(),
                ready: self.readiness(report.ready),
            }),
            conditions: vec![config, report.compute],
            events: report.event.into_iter().collect(),
        }
    }

    fn held(&self, policy: &WorkspacePolicy, composite: Composite<'_>, why: &Hold) -> Response {
        let mut report = self.report(&claim_paths(policy, composite));
        let pool = self.request.pool.as_ref().map(hold::kept);
        if pool.is_none() {
            report.status.message = Some(why.to_string());
            report.compute = blocked();
        }
        let config = Condition::fails(CONFIG_RESOLVED, why.reason(), why.to_string());
        self.composed(policy, config, report, pool)
    }

    fn refused(&self, policy: Option<&WorkspacePolicy>, why: &Refusal) -> Response {
        let paths = policy
            .zip(self.composite)
            .map(|(policy, composite)| claim_paths(policy, composite));
        // Crossplane sets conditions that a fatal response leaves out to
        // Unknown, and the instance may well run.
        let compute = match self.pool {
            Some(_) => self.report(&paths.unwrap_or_default()).compute,
            None => blocked(),
        };
        Response {
            ttl: REFUSED_TTL,
            catalogue: policy.map(|policy| policy.catalogue.name.clone()),
            desired: None,
            conditions: vec![
                Condition::fails(CONFIG_RESOLVED, why.reason(), why.to_string()),
                compute,
            ],
            events: vec![Event {
                severity: Severity::Fatal,
                reason: why.reason(),
                message: why.to_string(),
            }],
        }
    }

    /// An explicit readiness of the XR overrides that of its resources and what
    /// earlier steps said of it. Where there is either, a ready workspace leaves
    /// the verdict to Crossplane.
    fn readiness(&self, ready: bool) -> Option<bool> {
        match (ready, self.request.others_decide_readiness) {
            (true, true) => None,
            (ready, _) => Some(ready),
        }
    }
}

/// There is no pool, and none is composed until the other condition holds.
fn blocked() -> Condition {
    Condition::fails(
        COMPUTE_READY,
        "ConfigUnresolved",
        format!("waiting for {CONFIG_RESOLVED}"),
    )
}

/// As much as is known of a workspace that is not resolved.
fn claim_paths(policy: &WorkspacePolicy, composite: Composite<'_>) -> ClaimPaths {
    let parameters = composite.parameters().ok();
    let image = composite.status().image;
    ClaimPaths {
        catalogue: policy.catalogue.name.clone(),
        instance_types: parameters
            .as_ref()
            .map(limits::instance_types)
            .unwrap_or_default(),
        region: parameters
            .map(|parameters| parameters.region)
            .unwrap_or_default(),
        image: image.map(|image| image.name).unwrap_or_default(),
    }
}

fn fields(status: &GpuDevWorkspaceStatus) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        // A struct of strings and enums always serializes to an object.
        _ => Map::new(),
    }
}
