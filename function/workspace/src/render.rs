//! Decides what is desired for a workspace, in every placement.

use std::time::Duration;

use api::policy::WorkspacePolicy;
use api::workspace::{GpuDevWorkspaceStatus, WorkspaceParameters};
use function_runtime::connection::{self, Connection};
use function_runtime::desired::Desired;
use function_runtime::outcome::{Hold, Refusal, Unresolved};
use function_runtime::requirement::Requirement;
use function_runtime::response::{CONFIG_RESOLVED, Condition, Event, Response, fields};
use function_runtime::validation::Violations;

use crate::conditions;
use crate::cost::budget::{self, Verdict};
use crate::cost::{self, Cost};
use crate::lifecycle::Step;
use crate::lifecycle::life::{Life, Sight};
use crate::placed::{Allowance, Claimed, Course, Leftovers, Placed};
use crate::report::{Composition, Report};
use crate::{catalogue, policy};

/// When to look again while something changes that Crossplane does not watch.
const UNSETTLED_TTL: Duration = Duration::from_secs(10);

/// Reads policy and claim, decides about lifecycle and budget, lets the placement compose, and
/// builds the response.
pub fn render(claimed: &Claimed<'_>, placed: &impl Placed) -> Response {
    let policy = match policy::read(claimed.request.policy.as_ref()) {
        Ok(policy) => policy,
        Err(violations) => return refused(None, placed, &Refusal::policy(&violations)),
    };
    let decided = match Decided::read(claimed, placed, &policy) {
        Ok(decided) => decided,
        Err(violations) => {
            return refused(Some(&policy), placed, &Refusal::parameters(violations));
        }
    };
    let course = decided.course();
    let (config, composition) = match placed.compose(&policy, decided.parameters, &course) {
        Ok(composition) => (decided.config(&composition), composition),
        Err(Unresolved::Held(why)) => held(&why, placed.kept(&policy, course.ends_at())),
        Err(Unresolved::Refused(why)) => return decided.refused(&policy, placed, &why),
    };
    match decided.answer(&policy, placed, config, composition) {
        Ok(response) => response,
        Err(why) => decided.refused(&policy, placed, &why),
    }
}

/// The response if an observed resource cannot be read. Nothing is applied, because the function
/// does not know the state of the workspace.
pub fn unreadable(
    claimed: &Claimed<'_>,
    requirements: impl Fn(&WorkspacePolicy) -> Vec<Requirement>,
    why: &Refusal,
) -> Response {
    let policy = policy::read(claimed.request.policy.as_ref());
    let (why, policy) = match &policy {
        Ok(policy) => (why, Some(policy)),
        Err(violations) => (&Refusal::policy(violations), None),
    };
    refusal(policy, why, requirements, [conditions::compute_blocked()])
}

/// Holds the workspace: all observed resources stay as they are.
fn held(why: &Hold, mut composition: Composition) -> (Condition, Composition) {
    if composition.resources.is_empty() {
        composition.report.status.message = Some(why.to_string());
        composition.report.conditions = vec![conditions::compute_blocked()];
    }
    let config = Condition::is_false(CONFIG_RESOLVED, why.reason(), why.to_string());
    (config, composition)
}

/// Refuses the request: Crossplane applies nothing until a person changes the claim or the policy.
fn refused(policy: Option<&WorkspacePolicy>, placed: &impl Placed, why: &Refusal) -> Response {
    let requirements = |policy: &WorkspacePolicy| placed.requirements(policy);
    refusal(policy, why, requirements, placed.conditions(policy))
}

/// A refusal that still requires what every call requires. `others` are the conditions besides
/// `ConfigResolved`.
fn refusal(
    policy: Option<&WorkspacePolicy>,
    why: &Refusal,
    requirements: impl Fn(&WorkspacePolicy) -> Vec<Requirement>,
    others: impl IntoIterator<Item = Condition>,
) -> Response {
    let least = policy.map_or(0, |policy| policy.minimum_refresh_seconds);
    let least = Duration::from_secs(least.into());
    Response {
        requirements: policy.map(requirements).unwrap_or_default(),
        ..Response::refused(why.reason(), why.to_string(), least, others)
    }
}

/// The decisions about a workspace that do not depend on its placement.
struct Decided<'a> {
    claimed: &'a Claimed<'a>,
    parameters: &'a WorkspaceParameters,
    life: Life,
    cost: Cost,
}

impl<'a> Decided<'a> {
    /// Decides about lifecycle and budget.
    fn read(
        claimed: &'a Claimed<'a>,
        placed: &impl Placed,
        policy: &WorkspacePolicy,
    ) -> Result<Self, Violations> {
        let Claimed {
            request,
            composite,
            previous,
            ..
        } = claimed;
        let parameters = claimed.parameters.as_ref().map_err(Clone::clone)?;
        let prices = catalogue::prices(policy, request);
        let machines = placed.machines(policy, parameters, prices.as_ref());
        let budget = budget::read(policy, request, &parameters.owner, *composite);
        let sight = Sight {
            has_machine: machines.has_machine,
            reported: machines.reported,
            ends_by: budget.ends_by(previous),
        };
        let life = Life::of(
            *composite,
            previous,
            parameters.lifecycle.as_ref(),
            &policy.lifecycle,
            sight,
            request.now,
        )?;
        let subject = cost::subject::Subject {
            composite: *composite,
            previous,
            prices: prices.as_ref(),
            running: machines.running,
            is_on: machines.is_on,
            highest: &machines.highest,
            now: request.now,
        };
        let cost = Cost::of(subject, &budget, &life);
        Ok(Self {
            claimed,
            parameters,
            life,
            cost,
        })
    }

    fn course(&self) -> Course {
        let decision = &self.life.decision;
        if decision.step == Step::Run {
            return Course::Run {
                ends_at: decision.ends_at,
                budget: match &self.cost.verdict {
                    Verdict::Go | Verdict::Short(_) => Allowance::Run,
                    Verdict::Keep(_) => Allowance::Keep,
                    Verdict::Wait(cause) => Allowance::Wait(cause.clone()),
                },
            };
        }
        Course::Rest {
            leftovers: match decision.step {
                Step::Delete(_) => Leftovers::Go,
                Step::Run | Step::Stop(_) => Leftovers::Stay,
            },
            cause: self.life.cause(),
            phase: self.life.phase(),
        }
    }

    /// `ConfigResolved` for the composed resources.
    fn config(&self, composition: &Composition) -> Condition {
        let said = composition.notices.iter();
        let Some(reason) = composition.unresolved else {
            let told = self.life.decision.notices.iter().chain(self.cost.notice());
            let all: Vec<&str> = said.chain(told).map(String::as_str).collect();
            return conditions::config_resolved(all.join("; "));
        };
        let said: Vec<&str> = said.map(String::as_str).collect();
        Condition::is_false(CONFIG_RESOLVED, reason, said.join("; "))
    }

    fn answer(
        &self,
        policy: &WorkspacePolicy,
        placed: &impl Placed,
        config: Condition,
        composition: Composition,
    ) -> Result<Response, Refusal> {
        let Composition {
            mut resources,
            report,
            is_settled,
            ..
        } = composition;
        let Report {
            status,
            ready,
            conditions,
            events,
            connection,
        } = report;
        let status = self.recorded(status);
        let news = self.news(status.message.as_deref(), &events);
        let details = connection.into_iter();
        let details = details.map(|(key, value)| (key.to_owned(), value));
        let Connection { details, secret } = Connection::of(
            self.claimed.composite,
            self.claimed.request.observed.get(connection::NAME),
            details.collect(),
            status.ssh.is_some(),
        );
        // The function composes no Secret for a composite with a claim. Another step of the
        // pipeline may use the name.
        resources.remove(connection::NAME);
        resources.extend(secret.map(|secret| (connection::NAME.to_owned(), secret)));
        Ok(Response {
            ttl: self.within(ttl(policy, is_settled)),
            requirements: placed.requirements(policy),
            desired: Some(Desired {
                resources,
                status: fields(&status)?,
                connection: details,
                ready: self.claimed.request.readiness(ready),
            }),
            conditions: [config]
                .into_iter()
                .chain(conditions)
                .chain(news.conditions)
                .collect(),
            events: events.into_iter().chain(news.events).collect(),
        })
    }

    fn refused(&self, policy: &WorkspacePolicy, placed: &impl Placed, why: &Refusal) -> Response {
        let refused = refused(Some(policy), placed, why);
        let news = self.news(None, &refused.events);
        Response {
            ttl: self.within(refused.ttl),
            conditions: refused
                .conditions
                .into_iter()
                .chain(news.conditions)
                .collect(),
            events: refused.events.into_iter().chain(news.events).collect(),
            ..refused
        }
    }

    /// Adds the records of lifecycle and cost to a status.
    fn recorded(&self, status: GpuDevWorkspaceStatus) -> GpuDevWorkspaceStatus {
        let decision = &self.life.decision;
        GpuDevWorkspaceStatus {
            lifecycle: decision.status.clone().or(status.lifecycle),
            activity: decision.activity.clone().or(status.activity),
            cost: self.cost.status().cloned(),
            ..status
        }
    }

    /// The conditions and events of lifecycle and budget. `message` and `events` are already in the
    /// response, so they are not repeated.
    fn news(&self, message: Option<&str>, events: &[Event]) -> News {
        let (stop, stops) = self.life.notice();
        let told: Vec<&Event> = events.iter().chain(&stops).collect();
        let exceeds = self.cost.event(message, &told);
        News {
            conditions: stop.into_iter().chain(self.cost.condition()).collect(),
            events: stops.into_iter().chain(exceeds).collect(),
        }
    }

    /// When to look again: after `ttl`, or earlier if lifecycle or budget need it.
    fn within(&self, ttl: Duration) -> Duration {
        let asked = [self.life.looks_again(), self.cost.looks_again()];
        asked.into_iter().flatten().fold(ttl, Duration::min)
    }
}

struct News {
    conditions: Vec<Condition>,
    events: Vec<Event>,
}

/// Longest time until the next call. Crossplane watches composed resources, so only other changes
/// need an early call.
fn ttl(policy: &WorkspacePolicy, is_settled: bool) -> Duration {
    let refresh = Duration::from_secs(policy.refresh_seconds.into());
    if is_settled {
        return refresh;
    }
    let least = Duration::from_secs(policy.minimum_refresh_seconds.into());
    UNSETTLED_TTL.max(least).min(refresh)
}
