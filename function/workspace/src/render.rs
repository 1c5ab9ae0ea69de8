//! Decides what is desired for a workspace, in every placement.

use std::time::Duration;

use api::internal::InternalStatus;
use api::policy::WorkspacePolicy;
use api::workspace::{GpuDevWorkspaceStatus, Phase, WorkspaceParameters};
use function_runtime::connection::{self, Connection};
use function_runtime::desired::Desired;
use function_runtime::message::bounded;
use function_runtime::outcome::{Refusal, Unresolved};
use function_runtime::response::{CONFIG_RESOLVED, Condition, Event, Response, fields};
use function_runtime::validation::Violations;

use crate::access::Access;
use crate::composition::Composition;
use crate::cost::budget::{self, Verdict};
use crate::cost::{self, Cost};
use crate::lifecycle::Step;
use crate::lifecycle::life::{Life, Sight};
use crate::lifecycle::terms::Bounds;
use crate::limits::{self, admission};
use crate::placed::{Allowance, Claimed, Course, End, Leftovers, Placed, Rest};
use crate::report::{self, Report};
use crate::setup::Setup;
use crate::{catalogue, conditions, labels, memory, parts, placement};

/// When to look again while something changes that Crossplane does not watch.
const UNSETTLED_TTL: Duration = Duration::from_secs(10);
/// When to look again after a refusal.
const REFUSED_TTL: Duration = Duration::from_mins(1);

/// Reads policy and claim, decides about lifecycle and budget, lets the placement compose, and
/// builds the response.
///
/// No error of claim, policy or catalogue stops the decisions about lifecycle and cost. What the
/// function cannot compose stays as it is observed, and the machines of a run that is over end.
pub fn render(claimed: &Claimed<'_>, placed: &impl Placed) -> Response {
    let decided = Decided::read(claimed, placed);
    let policy = claimed.policy.in_force().ok();
    let course = decided.course();
    let composed = match &decided.accepted {
        Ok(Accepted { policy, parameters }) => placed.compose(policy, parameters, &course),
        Err(why) => Err(why.clone()),
    };
    let (outcome, composition) = match composed {
        Ok(composition) => (Ok(()), composition),
        Err(why) => {
            let (why, composition) = unresolved(policy, placed, &course, why);
            (Err(why), composition)
        }
    };
    match decided.answer(policy, placed, &outcome, composition) {
        Ok(response) => response,
        // The status cannot be written. This is a bug of the function, so nothing may change.
        Err(why) => Response::refused(why.reason(), why.to_string()),
    }
}

/// The composition of a workspace that cannot be resolved. All observed resources stay as they are,
/// but the machines of a run that is over end.
fn unresolved(
    policy: Option<&WorkspacePolicy>,
    placed: &impl Placed,
    course: &Course,
    why: Unresolved,
) -> (Unresolved, Composition) {
    let end = match course {
        Course::Rest(rest) => match placed.stopped(policy, rest) {
            Ok(stopped) => return (why, stopped),
            Err(why) => return (why.into(), placed.kept(policy, End::Unknown)),
        },
        Course::Run { end, .. } => *end,
    };
    let mut kept = placed.kept(policy, end);
    if kept
        .resources
        .keys()
        .all(|name| placement::is_everywhere(name))
    {
        kept.report.status.message = Some(why.to_string());
        kept.report.conditions = vec![conditions::compute_blocked()];
        if matches!(why, Unresolved::Refused(_)) {
            kept.report.status.phase = Some(Phase::Failed);
            // The event of the refusal says why.
            kept.report.events = Vec::new();
        }
    }
    (why, kept)
}

/// The decisions about a workspace that do not depend on its placement.
struct Decided<'a> {
    claimed: &'a Claimed<'a>,
    accepted: Result<Accepted<'a>, Unresolved>,
    life: Life,
    cost: Cost,
}

/// A policy in force, and valid parameters of a claim.
struct Accepted<'a> {
    policy: &'a WorkspacePolicy,
    parameters: &'a WorkspaceParameters,
}

impl<'a> Decided<'a> {
    /// Decides about lifecycle and budget.
    fn read(claimed: &'a Claimed<'a>, placed: &impl Placed) -> Self {
        let Claimed {
            request,
            composite,
            previous,
            limits,
            ..
        } = claimed;
        let policy = claimed.policy.in_force();
        let given = policy.as_ref().ok().copied();
        let valid = claimed.parameters.as_ref().ok();
        let prices = given.and_then(|policy| catalogue::prices(policy, request));
        let prices = prices.as_ref();
        let machines = placed.machines(given, valid, prices);
        let budget = budget::read(given, previous, request, *composite, &claimed.owner);
        let sight = Sight {
            installation: machines.installation,
            has_machine: machines.has_machine,
            stop_deletes_disk: machines.stop_deletes_disk,
            reported: machines.reported,
            ends_by: budget.ends_by(previous),
        };
        let bounds = Bounds {
            policy: given.map(|policy| &policy.lifecycle),
            limits: limits.as_ref().and_then(|limits| limits.lifecycle.as_ref()),
            may_delete: valid.is_some(),
        };
        let (life, violations) = Life::of(*composite, previous, bounds, sight, request.now);
        let highest = match (given, valid) {
            (Some(policy), Some(parameters)) => placed.highest_price(policy, parameters, prices),
            // The run keeps the price that it asked its budget for.
            _ => last_price(previous),
        };
        let subject = cost::subject::Subject {
            composite: *composite,
            previous,
            prices,
            running: machines.running,
            homes: &machines.homes,
            is_on: machines.is_on,
            highest: &highest,
            now: request.now,
        };
        let cost = Cost::of(subject, &budget, &life);
        let accepted = match (policy, &claimed.parameters) {
            (Err(why), _) => Err(why),
            (Ok(_), Err(violations)) => Err(Refusal::parameters(violations.clone()).into()),
            (Ok(policy), Ok(parameters)) => Violations::into_result(violations)
                .map(|()| Accepted { policy, parameters })
                .map_err(|violations| Refusal::parameters(violations).into()),
        };
        Self {
            claimed,
            accepted,
            life,
            cost,
        }
    }

    fn course(&self) -> Course {
        let decision = &self.life.decision;
        if decision.step == Step::Run {
            return Course::Run {
                end: self.life.end(),
                budget: match &self.cost.verdict {
                    Verdict::Go | Verdict::Short(_) => Allowance::Run,
                    Verdict::Keep(_) => Allowance::Keep,
                    Verdict::Wait(cause) => Allowance::Wait(cause.clone()),
                },
            };
        }
        Course::Rest(Rest {
            leftovers: match decision.step {
                Step::Delete(_) => Leftovers::Go,
                Step::Run | Step::Stop(_) => Leftovers::Stay,
            },
            cause: self.life.cause(),
            phase: self.life.phase(),
        })
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
        policy: Option<&WorkspacePolicy>,
        placed: &impl Placed,
        outcome: &Result<(), Unresolved>,
        composition: Composition,
    ) -> Result<Response, Refusal> {
        let (config, refusal) = match outcome {
            Ok(()) => (self.config(&composition), None),
            Err(why) => (
                conditions::config_unresolved(why),
                match why {
                    Unresolved::Refused(why) => Event::refusal(self.claimed.composite, why),
                    Unresolved::Held(_) => None,
                },
            ),
        };
        let Composition {
            mut resources,
            report,
            access,
            setup,
            is_settled,
            ..
        } = composition;
        let before = self.claimed.previous.phase;
        let observed = &self.claimed.request.observed;
        let report = parts::reported(report, &resources, observed, before);
        let access = access.or_else(|| Access::observed(self.claimed.composite));
        let report = match access {
            Some(access) => access.reported(report, before),
            None => report,
        };
        let told = Setup::observed(self.claimed.composite);
        let report = match (setup, told) {
            (Some(setup), told) => setup.reported(report, told.is_some(), before),
            (None, Some(told)) => report.with(told),
            (None, None) => report,
        };
        let Report {
            status,
            ready,
            conditions,
            events,
            connection,
        } = report;
        let status = self.recorded(status);
        let events: Vec<Event> = refusal.into_iter().chain(events).collect();
        let news = self.news(status.message.as_deref(), &events);
        let details = connection.into_iter();
        let details = details.map(|(key, value)| (key.to_owned(), value));
        let Connection { details, secret } = Connection::of(
            self.claimed.composite,
            self.claimed.request.observed.get(connection::NAME),
            labels::name_prefix(policy.map(|policy| policy.behaviour_version)),
            details.collect(),
            status.ssh.is_some(),
        );
        // The function composes no Secret for a composite with a claim. Another step of the
        // pipeline may use the name.
        resources.remove(connection::NAME);
        resources.extend(secret.map(|secret| (connection::NAME.to_owned(), secret)));
        let Claimed {
            request, composite, ..
        } = self.claimed;
        if let Some(record) = memory::record(request, *composite, &self.claimed.owner, &status)? {
            resources.insert(memory::NAME.to_owned(), record);
        }
        let in_force = self.claimed.limits.as_ref();
        let limits = limits::requirement(self.claimed.limits_name);
        let binding = in_force.and_then(admission::requirement);
        let fetched = placed.requirements(self.claimed.policy.for_requirements());
        let record = memory::requirement(request, *composite);
        let requirements = limits.into_iter().chain(binding).chain(record);
        let requirements = requirements.chain(fetched);
        let enforced = in_force.and_then(|limits| admission::condition(limits, request));
        Ok(Response {
            ttl: self.within(match outcome {
                Err(Unresolved::Refused(_)) => refused_ttl(policy),
                Ok(()) | Err(Unresolved::Held(_)) => ttl(policy, is_settled),
            }),
            requirements: requirements.collect(),
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
                .chain(enforced)
                .collect(),
            events: events.into_iter().chain(news.events).collect(),
            violations: match outcome {
                Err(Unresolved::Refused(why)) => why.violations().to_vec(),
                Ok(()) | Err(Unresolved::Held(_)) => Vec::new(),
            },
        })
    }

    /// Adds the owner, and the records of lifecycle and cost, to a status. The record of a namespaced
    /// composite has the message, too, so the message is cut off here.
    fn recorded(&self, status: GpuDevWorkspaceStatus) -> GpuDevWorkspaceStatus {
        let decision = &self.life.decision;
        let owner = &self.claimed.owner;
        let internal = InternalStatus {
            handled: decision.handled.clone(),
            ..self.cost.memory().clone()
        };
        GpuDevWorkspaceStatus {
            internal: (internal != InternalStatus::default()).then_some(internal),
            owner: (!owner.is_empty()).then(|| owner.clone()),
            machine: report::machine(&status),
            lifecycle: decision.status.clone().or(status.lifecycle),
            activity: decision.activity.clone().or(status.activity),
            cost: self.cost.status().cloned(),
            message: status.message.map(bounded),
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

/// The price in the last request to the owner's budget, in US dollars per hour.
fn last_price(previous: &GpuDevWorkspaceStatus) -> Result<f64, String> {
    let memory = previous.internal.as_ref();
    let request = memory.and_then(|memory| memory.budget_request.as_ref());
    let price = request.map(|request| request.hourly_usd);
    price.ok_or_else(|| "data.prices".to_owned())
}

fn refused_ttl(policy: Option<&WorkspacePolicy>) -> Duration {
    let least = policy.map(|policy| policy.minimum_refresh_interval.timer());
    least.map_or(REFUSED_TTL, |least| least.max(REFUSED_TTL))
}

/// Longest time until the next call. Crossplane watches composed resources, so only other changes
/// need an early call.
fn ttl(policy: Option<&WorkspacePolicy>, is_settled: bool) -> Duration {
    let Some(policy) = policy else {
        return REFUSED_TTL;
    };
    let refresh = policy.refresh_interval.timer();
    if is_settled {
        return refresh;
    }
    let least = policy.minimum_refresh_interval.timer();
    UNSETTLED_TTL.max(least).min(refresh)
}
