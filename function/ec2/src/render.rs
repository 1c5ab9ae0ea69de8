//! The placement EC2.

use api::catalogue::Prices;
use api::policy::WorkspacePolicy;
use api::workspace::{Phase, WorkspaceParameters};
use function_runtime::composite::Composite;
use function_runtime::outcome::{Refusal, Unresolved};
use function_runtime::request::Request;
use function_runtime::requirement::Requirement;
use function_runtime::response::Response;
use function_workspace::bastion;
use function_workspace::cause::Cause;
use function_workspace::claim;
use function_workspace::composition::Composition;
use function_workspace::placed::{
    Allowance, Claimed, Course, End, Leftovers, Machines, Placed, Rest,
};
use function_workspace::setup::Setup;
use function_workspace::ssh_networks;

use crate::choice::Choice;
use crate::claim_paths::ClaimPaths;
use crate::compose::{AtRest, Closed, Composed, Seen};
use crate::finding::Machine;
use crate::resolved::is_of_provider_aws;
use crate::{access, capacity, prices, requirements, resolve, resource_names, spot, status};

const OLD_USER_DATA: &str = "changed keys or software take effect on the next instance only: an \
                             instance reads user data at its first boot, and the policy's \
                             instance.replaceOnUserDataChange is off";

const OTHER_OFFERING: &str = "changed instance types or market take effect on the next instance only: \
                              the home volume stays at the running one until it ends";

/// Decides what is desired for a workspace on EC2. `limits` names the `EnvironmentConfig` with
/// the platform's limits.
pub fn render(request: &Request, composite: Composite<'_>, limits: Option<&str>) -> Response {
    let claimed = Claimed::read(request, composite, limits);
    let seen = Seen::read(request, &claimed.previous);
    let closed = closed(&claimed, &seen);
    let workspace = OnEc2 {
        claimed: &claimed,
        seen: seen.with_closed(closed),
    };
    function_workspace::render::render(&claimed, &workspace)
}

/// The ways into a machine that are closed whatever else is wrong with its claim.
fn closed(claimed: &Claimed<'_>, seen: &Seen<'_>) -> Closed {
    let policy = claimed.policy.in_force().ok();
    Closed {
        keys: claimed.suspended.is_some(),
        others_than: policy
            .filter(|policy| ssh_networks::is_of_bastion_only(policy))
            .map(|policy| bastion::sources(policy, seen.region(None, Some(policy)))),
    }
}

struct OnEc2<'a> {
    claimed: &'a Claimed<'a>,
    seen: Seen<'a>,
}

impl Placed for OnEc2<'_> {
    fn requirements(&self, policy: Option<&WorkspacePolicy>) -> Vec<Requirement> {
        requirements::of(policy, self.claimed, self.seen.maker())
    }

    fn machines(
        &self,
        policy: Option<&WorkspacePolicy>,
        parameters: Option<&WorkspaceParameters>,
        listed: Option<&Prices>,
    ) -> Machines<'_> {
        let region = self.seen.region(parameters, policy);
        Machines {
            installation: self.seen.installation(),
            reported: self.seen.reported(policy),
            has_machine: self.seen.has_machine(),
            stop_deletes_disk: self.seen.has_on_demand_pool_without_home(),
            is_on: self.seen.is_on(),
            running: self.seen.running(listed, region),
            homes: self.seen.homes(listed, region),
        }
    }

    fn highest_price(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        listed: Option<&Prices>,
    ) -> Result<f64, String> {
        let region = self.seen.region(Some(parameters), Some(policy));
        // A machine whose types are not known has no price, so no budget is granted for it.
        let choice = self.choice(policy, parameters, region);
        let choice = choice.map_err(|_| format!("data.prices.hourlyUsd.{region} for its types"))?;
        let types = &choice.instance_types;
        let market = capacity::wished(parameters, policy, &choice);
        let provider = capacity::on_demand_provider(policy, self.seen.maker());
        let considered = if is_of_provider_aws(market, provider) {
            types.get(..1).unwrap_or_default()
        } else {
            types
        };
        prices::highest(listed, region, considered, market)
    }

    fn compose(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        course: &Course,
    ) -> Result<Composition, Unresolved> {
        if let Some(problem) = self.seen.problem() {
            return Err(Refusal::from(problem.clone()).into());
        }
        let (end, budget) = match course {
            Course::Run { end, budget } => (*end, budget),
            // The stop needs no fetched resources, so a missing catalogue never keeps a machine
            // running.
            Course::Rest(rest) => {
                claim::origin(self.claimed.composite)?;
                let access = access::at_rest(policy, self.claimed, parameters, &self.seen);
                return Ok(Composition {
                    // Without a decision, the workspace keeps the access that the last call reported.
                    access: access.unwrap_or_default(),
                    ..self.stopped(Some(policy), rest)?
                });
            }
        };
        let workspace = resolve::workspace(policy, self.claimed, parameters, &self.seen)?;
        let (resolved, paths) = (&workspace.resolved, &workspace.paths);
        let access = workspace.access;
        let barrier = access.as_ref().and_then(|access| access.barrier(policy));
        let suspended = self.claimed.suspended.as_ref();
        let waits = match (suspended, budget) {
            (None, Allowance::Wait(cause)) => Some((cause, Phase::Queued)),
            // What runs stays: the owner may be at work in an open session.
            _ if self.seen.is_on() => None,
            _ => suspended.or(barrier).map(|cause| (cause, Phase::Failed)),
        };
        if let Some((cause, phase)) = waits {
            let namespace = &resolved.origin.namespace;
            let rest = self.seen.at_rest(Leftovers::Stay, policy, namespace)?;
            let waiting = Composition {
                notices: workspace.notices,
                access: access.clone(),
                ..self.resting(rest, cause, phase)
            };
            return Ok(self.ending(waiting, end));
        }
        let composed = match (suspended, budget) {
            // A changed claim would start another machine.
            (Some(_), _) | (None, Allowance::Keep) => self.seen.held(paths),
            (None, Allowance::Run | Allowance::Wait(_)) => {
                self.seen.composed(resolved, policy, paths)?
            }
        };
        let mut notices = workspace.notices;
        if composed.has_old_user_data {
            notices.push(OLD_USER_DATA.to_owned());
        }
        notices.extend(
            composed
                .machine()
                .and_then(|machine| machine.scheduled.clone()),
        );
        if composed.has_other_offering {
            notices.push(OTHER_OFFERING.to_owned());
        }
        let mut running = Composition {
            notices,
            access,
            ..self.running(composed)
        };
        let status = &mut running.report.status;
        status.region = Some(workspace.resolved.region);
        status.choice = workspace.resolved.choice;
        status.image = Some(workspace.resolved.image);
        status.opencv_version = Some(workspace.resolved.opencv);
        status.pytorch_version = workspace.resolved.pytorch;
        Ok(self.ending(running, end))
    }

    fn kept(&self, policy: Option<&WorkspacePolicy>, end: End) -> Composition {
        let paths = policy.map(|policy| self.claim_paths(policy));
        let composed = self.seen.held(&paths.unwrap_or_default());
        let mut kept = self.running(composed);
        if self.seen.problem().is_some() {
            kept.report = status::unread(self.claimed);
            kept.setup = None;
        }
        self.ending(kept, end)
    }

    fn stopped(
        &self,
        policy: Option<&WorkspacePolicy>,
        rest: &Rest,
    ) -> Result<Composition, Refusal> {
        let origin = self.claimed.composite.origin();
        let readable = policy.filter(|_| self.seen.problem().is_none());
        let at_rest = match (readable, origin) {
            (Some(policy), Some(origin)) => {
                self.seen
                    .at_rest(rest.leftovers, policy, &origin.namespace)?
            }
            _ => self.seen.at_rest_as_observed()?,
        };
        Ok(self.resting(at_rest, &rest.cause, rest.phase))
    }
}

impl OnEc2<'_> {
    fn choice(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        region: &str,
    ) -> Result<Choice, Unresolved> {
        let Claimed {
            request, previous, ..
        } = self.claimed;
        Choice::of(
            parameters,
            policy,
            region,
            previous.choice.as_ref(),
            request,
        )
    }

    fn running(&self, composed: Composed) -> Composition {
        Composition {
            setup: Some(self.setup(composed.machine())),
            report: status::report(&composed, self.claimed),
            is_settled: !composed.is_detaching(),
            resources: composed.resources,
            notices: Vec::new(),
            access: None,
            unresolved: None,
        }
    }

    /// The setup of the machine that the owner can use. A machine that the last call called ready
    /// stays so: consoles forget, and an earlier version of the function read none.
    fn setup(&self, machine: Option<&Machine>) -> Setup {
        let Some(machine) = machine else {
            return Setup::NotRunning;
        };
        let previous = &self.claimed.previous;
        let was_ready = || {
            let told = Setup::was_ready(self.claimed.composite);
            told.unwrap_or(previous.phase == Some(Phase::Ready))
        };
        match &machine.setup {
            Setup::Going(_) | Setup::Unknown(_)
                if previous.instance_id.as_ref() == Some(&machine.id) && was_ready() =>
            {
                Setup::Done
            }
            setup => setup.clone(),
        }
    }

    fn resting(&self, rest: AtRest, because: &Cause, phase: Phase) -> Composition {
        let is_detaching = rest.home.as_ref().is_some_and(|home| home.detaching);
        Composition {
            setup: Some(Setup::NotRunning),
            report: status::at_rest(&rest, because, phase, self.claimed),
            is_settled: !is_detaching && rest.left.is_empty(),
            resources: rest.resources,
            notices: Vec::new(),
            access: None,
            unresolved: None,
        }
    }

    /// The known sources of the pool's fields, for a workspace that is not resolved.
    fn claim_paths(&self, policy: &WorkspacePolicy) -> ClaimPaths {
        let parameters = self.claimed.parameters.as_ref().ok();
        let image = self.claimed.previous.image.as_ref();
        let region = self.seen.region(parameters, Some(policy));
        let choice = parameters.and_then(|known| self.choice(policy, known, region).ok());
        ClaimPaths {
            catalogue: policy.catalogue.name.clone(),
            instance_types: choice.unwrap_or_default().instance_types,
            region: region.to_owned(),
            image: image.map(|image| image.name.clone()).unwrap_or_default(),
        }
    }

    /// Sets the end of the run in every pool, including kept pools. An extended run is therefore
    /// extended even while other parts of the claim cannot be resolved.
    fn ending(&self, mut composition: Composition, end: End) -> Composition {
        let resources = composition.resources.iter_mut();
        for (name, pool) in resources.filter(|(name, _)| resource_names::is_pool(name)) {
            let observed = self.claimed.request.observed.get(name);
            let at = end.after(observed.and_then(spot::pool::ends_at));
            spot::pool::end(&mut pool.object, at);
        }
        composition
    }
}
