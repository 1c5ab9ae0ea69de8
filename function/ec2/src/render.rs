//! The placement EC2.

use api::catalogue::Prices;
use api::policy::WorkspacePolicy;
use api::workspace::{Phase, WorkspaceParameters};
use function_runtime::composite::Composite;
use function_runtime::outcome::Unresolved;
use function_runtime::request::Request;
use function_runtime::requirement::Requirement;
use function_runtime::response::{Condition, Response};
use function_workspace::cause::Cause;
use function_workspace::placed::{Allowance, Claimed, Course, Leftovers, Machines, Placed};
use function_workspace::report::Composition;
use function_workspace::{claim, conditions};
use jiff::Timestamp;

use crate::claim_paths::ClaimPaths;
use crate::compose::{Composed, Rest, Seen};
use crate::{instance_types, prices, requirements, resolve, resource_names, spot, status};

const OLD_USER_DATA: &str = "changed keys or software take effect on the next instance only: an \
                             instance reads user data at its first boot, and the policy's \
                             instance.replaceOnUserDataChange is off";

/// Decides what is desired for a workspace on EC2.
pub fn render(request: &Request, composite: Composite<'_>) -> Response {
    let claimed = Claimed::read(request, composite);
    match Seen::read(request, &claimed.previous) {
        Ok(seen) => {
            let claimed = &claimed;
            function_workspace::render::render(claimed, &OnEc2 { claimed, seen })
        }
        Err(why) => function_workspace::render::unreadable(
            &claimed,
            |policy| requirements::of(policy, &claimed),
            &why.into(),
        ),
    }
}

struct OnEc2<'a> {
    claimed: &'a Claimed<'a>,
    seen: Seen<'a>,
}

impl Placed for OnEc2<'_> {
    fn requirements(&self, policy: &WorkspacePolicy) -> Vec<Requirement> {
        requirements::of(policy, self.claimed)
    }

    fn machines(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        listed: Option<&Prices>,
    ) -> Machines<'_> {
        let region = &parameters.region;
        let types = instance_types::of(parameters);
        let market = parameters
            .capacity_type
            .unwrap_or(policy.defaults.capacity_type);
        Machines {
            reported: self.seen.reported(policy),
            has_machine: self.seen.has_machine(),
            is_on: self.seen.is_on(),
            running: prices::of_machines(listed, region, &self.seen.machines()),
            highest: prices::highest(listed, region, &types, market),
        }
    }

    fn compose(
        &self,
        policy: &WorkspacePolicy,
        parameters: &WorkspaceParameters,
        course: &Course,
    ) -> Result<Composition, Unresolved> {
        let (ends_at, budget) = match course {
            Course::Run { ends_at, budget } => (*ends_at, budget),
            // This case needs no fetched resources, so a missing catalogue never keeps a machine
            // running.
            Course::Rest {
                leftovers,
                cause,
                phase,
            } => {
                let origin = claim::origin(self.claimed.composite)?;
                let rest = self.seen.at_rest(*leftovers, policy, &origin.namespace)?;
                return Ok(self.resting(rest, cause, *phase));
            }
        };
        let workspace = resolve::workspace(policy, self.claimed, parameters, &self.seen)?;
        let (resolved, paths) = (&workspace.resolved, &workspace.paths);
        let composed = match budget {
            Allowance::Run => self.seen.composed(resolved, policy, paths)?,
            Allowance::Keep => self.seen.held(paths),
            Allowance::Wait(cause) => {
                let namespace = &resolved.origin.namespace;
                let rest = self.seen.at_rest(Leftovers::Stay, policy, namespace)?;
                let waiting = Composition {
                    notices: workspace.notices,
                    ..self.resting(rest, cause, Phase::Queued)
                };
                return Ok(ending(waiting, ends_at));
            }
        };
        let mut notices = workspace.notices;
        if composed.has_old_user_data {
            notices.push(OLD_USER_DATA.to_owned());
        }
        let mut running = Composition {
            notices,
            ..self.running(composed)
        };
        running.report.status.image = Some(workspace.resolved.image);
        Ok(ending(running, ends_at))
    }

    fn kept(&self, policy: &WorkspacePolicy, ends_at: Option<Timestamp>) -> Composition {
        let composed = self.seen.held(&self.claim_paths(policy));
        ending(self.running(composed), ends_at)
    }

    fn conditions(&self, policy: Option<&WorkspacePolicy>) -> Vec<Condition> {
        if self.claimed.request.observed.is_empty() {
            return vec![conditions::compute_blocked()];
        }
        let paths = policy.map(|policy| self.claim_paths(policy));
        let composed = self.seen.held(&paths.unwrap_or_default());
        status::report(&composed, &self.claimed.previous).conditions
    }
}

impl OnEc2<'_> {
    fn running(&self, composed: Composed) -> Composition {
        Composition {
            report: status::report(&composed, &self.claimed.previous),
            is_settled: !composed.is_detaching(),
            resources: composed.resources,
            notices: Vec::new(),
            unresolved: None,
        }
    }

    fn resting(&self, rest: Rest, because: &Cause, phase: Phase) -> Composition {
        let is_detaching = rest.home.as_ref().is_some_and(|home| home.detaching);
        Composition {
            report: status::at_rest(&rest, because, phase, &self.claimed.previous),
            is_settled: !is_detaching && rest.left.is_empty(),
            resources: rest.resources,
            notices: Vec::new(),
            unresolved: None,
        }
    }

    /// The known sources of the pool's fields, for a workspace that is not resolved.
    fn claim_paths(&self, policy: &WorkspacePolicy) -> ClaimPaths {
        let parameters = self.claimed.parameters.as_ref().ok();
        let image = self.claimed.previous.image.as_ref();
        let region = parameters.map(|parameters| parameters.region.clone());
        ClaimPaths {
            catalogue: policy.catalogue.name.clone(),
            instance_types: parameters.map(instance_types::of).unwrap_or_default(),
            region: region.unwrap_or_default(),
            image: image.map(|image| image.name.clone()).unwrap_or_default(),
        }
    }
}

/// Sets the end of the run in every pool, including kept pools. An extended run is therefore
/// extended even while other parts of the claim cannot be resolved.
fn ending(mut composition: Composition, at: Option<Timestamp>) -> Composition {
    let resources = composition.resources.iter_mut();
    for (_, pool) in resources.filter(|(name, _)| resource_names::is_pool(name)) {
        spot::pool::end(&mut pool.object, at);
    }
    composition
}
