//! The decision: from a request to a response, without clock, network or
//! randomness.

use std::collections::BTreeMap;
use std::time::Duration;

use api::lifecycle::StopReason;
use api::policy::WorkspacePolicy;
use api::workspace::{GpuDevWorkspaceStatus, Phase, WorkspaceParameters};

use crate::claim_paths::ClaimPaths;
use crate::compose::{Rest, Seen};
use crate::requirements;
use crate::resolve;
use crate::resolve::Claimed;
use crate::status;
use crate::status::Report;
use crate::{instance_types, prices, spot};
use function_runtime::composite::Composite;
use function_runtime::desired::{Composed, Desired};
use function_runtime::outcome::Hold;
use function_runtime::outcome::Refusal;
use function_runtime::outcome::Unresolved;
use function_runtime::request::Request;
use function_runtime::requirement::Requirement;
use function_runtime::response::{CONFIG_RESOLVED, Condition, Response, fields};
use function_runtime::validation::Violations;
use function_workspace::cause::Cause;
use function_workspace::claim;
use function_workspace::cost;
use function_workspace::cost::Cost;
use function_workspace::cost::budget;
use function_workspace::cost::budget::Verdict;
use function_workspace::lifecycle::Step;
use function_workspace::lifecycle::life::{Life, Sight};
use function_workspace::{catalogue, conditions, policy};

/// How soon to look whether a volume is detached.
const DETACHING_TTL: Duration = Duration::from_secs(10);
const OLD_USER_DATA: &str = "changed keys or software reach the next instance only: user data is \
                             read at the first boot, and the policy's \
                             instance.replaceOnUserDataChange is off";

/// Decides.
pub fn render(request: &Request, composite: Composite<'_>) -> Response {
    let previous = claim::status(composite);
    let parameters = claim::parameters(composite);
    let rendering = Rendering {
        request,
        parameters: parameters.as_ref().ok(),
        previous: &previous,
        seen: Seen::new(request, &previous),
    };
    let policy = match policy::read(request.policy.as_ref()) {
        Ok(policy) => policy,
        Err(violations) => return rendering.refused(None, &Refusal::policy(&violations)),
    };
    let refused = |violations: &Violations| {
        rendering.refused(Some(&policy), &Refusal::parameters(violations.clone()))
    };
    let parameters = match &parameters {
        Ok(parameters) => parameters,
        Err(violations) => return refused(violations),
    };
    let (life, cost) = match rendering.life(&policy, composite, parameters) {
        Ok(both) => both,
        Err(violations) => return refused(&violations),
    };
    let response = if life.decision.step == Step::Run {
        let response = match rendering.workspace(&policy, composite, parameters, &cost.verdict) {
            Ok(response) => response,
            Err(Unresolved::Held(why)) => rendering.held(&policy, &why),
            Err(Unresolved::Refused(why)) => rendering.refused(Some(&policy), &why),
        };
        ending(response, &life)
    } else {
        rendering.at_rest(&policy, composite, &life)
    };
    cost.told(life.told(response))
}

/// Tells whatever runs when it ends, also what is kept as it is: who extends a run while
/// something else is missing keeps it.
fn ending(mut response: Response, life: &Life) -> Response {
    for composed in response
        .desired
        .iter_mut()
        .flat_map(|d| d.resources.values_mut())
    {
        spot::pool::end(&mut composed.object, life.decision.ends_at);
    }
    response
}

/// A request, and what is seen in it.
struct Rendering<'a> {
    request: &'a Request,
    /// The claim's, where they are valid.
    parameters: Option<&'a WorkspaceParameters>,
    previous: &'a GpuDevWorkspaceStatus,
    seen: Seen<'a>,
}

impl Rendering<'_> {
    /// Whether it runs, and what it costs.
    fn life(
        &self,
        policy: &WorkspacePolicy,
        composite: Composite<'_>,
        parameters: &WorkspaceParameters,
    ) -> Result<(Life, Cost), Violations> {
        let budget = budget::read(policy, self.request, &parameters.owner, composite);
        let sight = Sight {
            has_machine: self.seen.has_machine(),
            reported: self.seen.reported(policy),
            ends_by: budget.ends_by(self.previous),
        };
        let life = Life::of(
            composite,
            self.previous,
            parameters.lifecycle.as_ref(),
            &policy.lifecycle,
            sight,
            self.request.now,
        )?;
        let listed = catalogue::prices(policy, self.request);
        let listed = listed.as_ref();
        let region = &parameters.region;
        let types = instance_types::of(parameters);
        let market = parameters
            .capacity_type
            .unwrap_or(policy.defaults.capacity_type);
        let subject = cost::subject::Subject {
            composite,
            previous: self.previous,
            prices: listed,
            running: prices::of_machines(listed, region, &self.seen.machines()),
            is_on: self.seen.is_on(),
            highest: &prices::highest(listed, region, &types, market),
            now: self.request.now,
        };
        let cost = Cost::of(subject, &budget, &life);
        Ok((life, cost))
    }

    /// It does not run. Nothing that has to be fetched is needed for that: a catalogue
    /// that is missing keeps no machine running.
    fn at_rest(&self, policy: &WorkspacePolicy, composite: Composite<'_>, life: &Life) -> Response {
        let origin = match claim::origin(composite) {
            Ok(origin) => origin,
            Err(why) => return self.refused(Some(policy), &why),
        };
        let rest = self
            .seen
            .at_rest(life.decision.step, policy, &origin.namespace);
        self.resting(policy, rest, &life.cause(), life.phase(), String::new())
    }

    fn resting(
        &self,
        policy: &WorkspacePolicy,
        rest: Rest,
        because: &Cause,
        phase: Phase,
        notice: String,
    ) -> Response {
        let report = status::at_rest(&rest, because, phase, self.previous);
        let is_detaching = rest.home.as_ref().is_some_and(|home| home.detaching);
        let config = conditions::config_resolved(notice);
        let ttl = ttl(policy, is_detaching || !rest.left.is_empty());
        self.composed(policy, config, report, rest.resources, ttl)
    }

    fn workspace(
        &self,
        policy: &WorkspacePolicy,
        composite: Composite<'_>,
        parameters: &WorkspaceParameters,
        verdict: &Verdict,
    ) -> Result<Response, Unresolved> {
        let claimed = Claimed {
            composite,
            parameters,
            image: self.previous.image.as_ref(),
        };
        let workspace = resolve::workspace(policy, claimed, &self.seen, self.request)?;
        let composition = match verdict {
            Verdict::Go | Verdict::Short(_) => {
                self.seen
                    .composed(&workspace.wanted, policy, &workspace.paths)?
            }
            Verdict::Keep(_) => self.seen.held(&workspace.paths),
            Verdict::Wait(why) => {
                let stop = Step::Stop(StopReason::State);
                let namespace = &workspace.wanted.origin.namespace;
                let rest = self.seen.at_rest(stop, policy, namespace);
                let notice = workspace.notice;
                return Ok(self.resting(policy, rest, why, Phase::Queued, notice));
            }
        };
        let mut report = status::report(&composition, self.previous);
        report.status.image = Some(workspace.wanted.image);
        let mut notices = vec![workspace.notice];
        if composition.has_old_user_data {
            notices.push(OLD_USER_DATA.to_owned());
        }
        notices.retain(|notice| !notice.is_empty());
        let config = conditions::config_resolved(notices.join("; "));
        let ttl = ttl(policy, composition.is_detaching());
        Ok(self.composed(policy, config, report, composition.resources, ttl))
    }

    fn composed(
        &self,
        policy: &WorkspacePolicy,
        config: Condition,
        report: Report,
        resources: BTreeMap<String, Composed>,
        ttl: Duration,
    ) -> Response {
        let connection = report.connection.into_iter();
        Response {
            ttl,
            requirements: self.requirements(policy),
            desired: Some(Desired {
                resources,
                status: fields(&report.status),
                connection: connection
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect(),
                ready: self.request.readiness(report.ready),
            }),
            conditions: [config, report.compute]
                .into_iter()
                .chain(report.home)
                .collect(),
            events: report.events,
        }
    }

    fn held(&self, policy: &WorkspacePolicy, why: &Hold) -> Response {
        let composition = self.seen.held(&self.claim_paths(policy));
        let mut report = status::report(&composition, self.previous);
        if composition.resources.is_empty() {
            report.status.message = Some(why.to_string());
            report.compute = conditions::compute_blocked();
            report.home = None;
        }
        let config = Condition::fails(CONFIG_RESOLVED, why.reason(), why.to_string());
        let ttl = ttl(policy, composition.is_detaching());
        self.composed(policy, config, report, composition.resources, ttl)
    }

    fn refused(&self, policy: Option<&WorkspacePolicy>, why: &Refusal) -> Response {
        let paths = policy.map(|policy| self.claim_paths(policy));
        let (compute, home) = if self.request.observed.is_empty() {
            (conditions::compute_blocked(), None)
        } else {
            let composition = self.seen.held(&paths.unwrap_or_default());
            let report = status::report(&composition, self.previous);
            (report.compute, report.home)
        };
        let least = policy.map_or(0, |policy| policy.minimum_refresh_seconds);
        let least = Duration::from_secs(least.into());
        Response {
            requirements: policy
                .map(|policy| self.requirements(policy))
                .unwrap_or_default(),
            ..Response::refused(
                why.reason(),
                why.to_string(),
                least,
                [compute].into_iter().chain(home),
            )
        }
    }

    fn requirements(&self, policy: &WorkspacePolicy) -> Vec<Requirement> {
        requirements::of(policy, self.request, self.parameters, self.previous)
    }

    /// As much as is known of a workspace that is not resolved.
    fn claim_paths(&self, policy: &WorkspacePolicy) -> ClaimPaths {
        let image = self.previous.image.as_ref();
        let types = self.parameters.map(instance_types::of);
        let region = self.parameters.map(|parameters| parameters.region.clone());
        ClaimPaths {
            catalogue: policy.catalogue.name.clone(),
            instance_types: types.unwrap_or_default(),
            region: region.unwrap_or_default(),
            image: image.map(|image| image.name.clone()).unwrap_or_default(),
        }
    }
}

/// When to look again at the latest: everything composed is watched, so only
/// what is not has a deadline.
fn ttl(policy: &WorkspacePolicy, is_unsettled: bool) -> Duration {
    let refresh = Duration::from_secs(policy.refresh_seconds.into());
    let least = Duration::from_secs(policy.minimum_refresh_seconds.into());
    let deadline = is_unsettled.then_some(DETACHING_TTL);
    deadline.map_or(refresh, |deadline| deadline.max(least).min(refresh))
}
