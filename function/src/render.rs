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
use crate::resolve;
use crate::response::{Condition, Desired, Event, Response, Severity};
use crate::status::{self, Report};
use crate::{input, limits};

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
    let policy = match input::policy(request.policy.as_ref()) {
        Ok(policy) => policy,
        Err(violations) => return refused(request, None, &Refusal::Policy(violations)),
    };
    let Some(composite) = request.composite.as_ref().map(Composite::new) else {
        return refused(request, Some(&policy), &Refusal::NoComposite);
    };
    let observed = request.pool.as_ref().map(ObservedPool::read);
    match resolve::workspace(&policy, composite, observed.as_ref(), &request.catalogue) {
        Ok(workspace) => {
            let mut report = report(request, &workspace.paths);
            report.status.image = Some(workspace.image);
            let config = Condition::config_resolved(workspace.notice);
            let ready = report.ready;
            respond(
                request,
                &policy,
                config,
                report,
                Some((workspace.pool, ready)),
            )
        }
        Err(Unresolved::Held(why)) => held(request, &policy, composite, &why),
        Err(Unresolved::Refused(why)) => refused(request, Some(&policy), &why),
    }
}

fn held(
    request: &Request,
    policy: &WorkspacePolicy,
    composite: Composite<'_>,
    why: &Hold,
) -> Response {
    let mut report = report(request, &claim_paths(policy, composite));
    let pool = request
        .pool
        .as_ref()
        .map(|pool| (hold::kept(pool), report.ready));
    if pool.is_none() {
        report.status.message = Some(why.to_string());
        report.compute = blocked();
    }
    let config = Condition::fails(CONFIG_RESOLVED, why.reason(), why.to_string());
    respond(request, policy, config, report, pool)
}

fn refused(request: &Request, policy: Option<&WorkspacePolicy>, why: &Refusal) -> Response {
    let composite = request.composite.as_ref().map(Composite::new);
    let paths = policy
        .zip(composite)
        .map(|(policy, composite)| claim_paths(policy, composite));
    // Crossplane sets conditions that a fatal response leaves out to Unknown,
    // and the instance may well run.
    let compute = match request.pool {
        Some(_) => report(request, &paths.unwrap_or_default()).compute,
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

fn report(request: &Request, paths: &ClaimPaths) -> Report {
    let observed = request.pool.as_ref().map(ObservedPool::read);
    let previous = request
        .composite
        .as_ref()
        .map(|c| Composite::new(c).status());
    status::report(observed.as_ref(), &previous.unwrap_or_default(), paths)
}

fn respond(
    request: &Request,
    policy: &WorkspacePolicy,
    config: Condition,
    report: Report,
    pool: Option<(Value, bool)>,
) -> Response {
    let connection = report.connection.into_iter();
    Response {
        ttl: Duration::from_secs(policy.refresh_seconds.into()),
        catalogue: Some(policy.catalogue.name.clone()),
        desired: Some(Desired {
            pool,
            status: fields(&report.status),
            connection: connection
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
            ready: readiness(report.ready, request),
        }),
        conditions: vec![config, report.compute],
        events: report.event.into_iter().collect(),
    }
}

/// An explicit readiness of the XR overrides that of its resources. Where other
/// steps desire some too, a ready workspace leaves the verdict to Crossplane.
fn readiness(ready: bool, request: &Request) -> Option<bool> {
    match (ready, request.has_earlier_resources) {
        (true, true) => None,
        (ready, _) => Some(ready),
    }
}

fn fields(status: &GpuDevWorkspaceStatus) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        // A struct of strings and enums always serializes to an object.
        _ => Map::new(),
    }
}
