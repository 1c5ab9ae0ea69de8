//! The composed resources of a workspace: the desired ones, and the old ones that are kept.

use std::collections::BTreeMap;

use api::policy::WorkspacePolicy;
use function_runtime::desired;
use function_runtime::outcome::Refusal;
use function_workspace::cause::{Cause, Reason};
use serde_json::Value;

use crate::claim_paths::ClaimPaths;
use crate::finding::{self, Finding, Machine};
use crate::on_demand::instance_state::{self, InstanceState};
use crate::on_demand::{self, OnDemandInstance, home, instance, network, usages};
use crate::replacement::{self, Candidate, Choice, KeepReason};
use crate::resolved::Resolved;
use crate::resource_names;
use crate::spot::{self, ObservedPool};

mod homes;
mod rest;
mod running;
mod seen;

pub use rest::AtRest;
pub use seen::{Closed, Seen};

/// The composed resources of a workspace, and their observed state.
#[derive(Clone, Debug)]
pub struct Composed {
    /// The resources, by composition resource name.
    pub resources: BTreeMap<String, desired::Composed>,
    /// The observed state of the target compute resource.
    pub target: Finding,
    /// The machine that serves the owner until the target serves; none if the target serves.
    pub serving: Option<Machine>,
    /// The state of the home volume; none if the workspace has no home.
    pub home: Option<home::Finding>,
    /// Whether the instance was created with user data that differs from today's.
    pub has_old_user_data: bool,
    /// Whether the pool's instance has another type or market than the claim.
    pub has_other_offering: bool,
}

impl Composed {
    /// The machine that the owner can use now; none if there is none.
    pub fn machine(&self) -> Option<&Machine> {
        self.serving.as_ref().or(self.target.machine.as_ref())
    }

    /// Whether the home volume is still attached to another instance.
    pub fn is_detaching(&self) -> bool {
        self.home.as_ref().is_some_and(|home| home.detaching)
    }
}

impl Seen<'_> {
    /// Holds the workspace: all observed resources stay as they are, but for closed ways in.
    pub fn held(&self, paths: &ClaimPaths) -> Composed {
        let candidates = self.candidates(paths, |_| true, |_| true);
        let choice = replacement::choose_existing(&candidates);
        let target = match &choice {
            Some(choice) => self.target(choice, paths),
            None => self.without_compute(),
        };
        let chosen = choice.as_ref().map(|choice| choice.target.as_str());
        let holder = chosen.and_then(|name| self.instances.get(name));
        let resources = self.open().map(|(name, observed)| {
            let object = self.kept(name, observed);
            let ready = self.is_ready(name, chosen, &target);
            (name.clone(), desired::Composed { object, ready })
        });
        Composed {
            resources: resources.collect(),
            serving: None,
            has_old_user_data: false,
            has_other_offering: false,
            home: chosen
                .and_then(|name| self.home_of_pool(name))
                .or_else(|| self.home.exists().then(|| self.home.finding(holder))),
            target,
        }
    }

    /// Builds the desired resources. Observed compute that does not fit is kept until its
    /// replacement serves. A home volume is attached only after it is detached from the old
    /// instance. While a machine of the other market is being deleted, nothing changes.
    pub fn composed(
        &self,
        resolved: &Resolved,
        policy: &WorkspacePolicy,
        paths: &ClaimPaths,
    ) -> Result<Composed, Refusal> {
        let choice = self.choose(resolved, policy, paths);
        let is_of_pool = resolved.market().is_some();
        if resource_names::is_pool(&choice.target) != is_of_pool {
            // The target is being deleted. Its successor has another kind, and another name.
            return Ok(self.held(paths));
        }
        let target = self.target(&choice, paths);
        let mut objects = BTreeMap::new();
        match resolved.market() {
            Some(market) => {
                let pool = {
                    let observed = self.pools.get(choice.target.as_str());
                    spot::pool::desired(resolved, market, policy, observed)?
                };
                objects.insert(choice.target.clone(), pool);
                self.keep(&mut objects, |name| {
                    !is_computed(name) && (self.has_group() || !resource_names::is_rule(name))
                });
            }
            None => self.on_demand(resolved, policy, &choice, &mut objects)?,
        }
        let holder = self.holder(&choice);
        if resolved.has_home && !is_of_pool {
            self.home(resolved, policy, &choice, &mut objects)?;
        }
        let has_home = (resolved.has_home && !is_of_pool) || self.home.exists();
        self.keep(&mut objects, |name| {
            choice.kept.iter().any(|kept| kept == name) || self.is_draining(name, has_home)
        });
        objects.extend(self.usages(&resolved.origin.namespace)?);
        let resources = objects.into_iter().map(|(name, object)| {
            let ready = self.is_ready(&name, Some(&choice.target), &target);
            (name, desired::Composed { object, ready })
        });
        Ok(Composed {
            resources: resources.collect(),
            home: resolved.has_home.then(|| {
                if is_of_pool {
                    let of_pool = self.home_of_pool(&choice.target);
                    of_pool.unwrap_or_else(spot::home::absent)
                } else {
                    self.home.finding(holder)
                }
            }),
            has_old_user_data: self
                .instances
                .get(choice.target.as_str())
                .is_some_and(|i| i.for_provider.user_data != resolved.user_data),
            has_other_offering: resolved.market().is_some_and(|market| {
                let pool = self.pools.get(choice.target.as_str());
                pool.is_some_and(|pool| spot::pool::keeps_another(pool, resolved, market))
            }),
            serving: choice.serving,
            target,
        })
    }

    fn choose(&self, resolved: &Resolved, policy: &WorkspacePolicy, paths: &ClaimPaths) -> Choice {
        let market = resolved.market();
        let zone = self.home.zone();
        let candidates = self.candidates(
            paths,
            |pool| market.is_some_and(|market| spot::pool::fits(pool, resolved, market)),
            |instance| {
                market.is_none()
                    && !instance.is_lost()
                    && instance::fits(instance, resolved, policy, zone)
            },
        );
        let fresh = match market {
            Some(market) => {
                let taken = self.pools.contains_key(resource_names::POOL);
                spot::pool::fresh_name(resolved, market, taken)
            }
            None => {
                instance::fresh_name(resolved, self.place(resolved), self.recorded, self.lost())
            }
        };
        replacement::choose(&candidates, &fresh)
    }

    /// The ids of the lost instances, without the recorded one.
    fn lost(&self) -> impl Iterator<Item = &str> {
        let lost = self.instances.values().filter(|i| i.is_lost());
        lost.filter_map(|instance| instance.last_known_id())
            .filter(|id| self.recorded != Some(*id))
    }

    /// The `Usages` that order deletions, by composition resource name.
    fn usages(&self, namespace: &str) -> Result<BTreeMap<String, Value>, Refusal> {
        usages::usages(namespace, self.observed, &self.instances, &self.home)
    }

    /// The security group, its rules, the instance, and the state of an instance that starts again.
    fn on_demand(
        &self,
        resolved: &Resolved,
        policy: &WorkspacePolicy,
        choice: &Choice,
        objects: &mut BTreeMap<String, Value>,
    ) -> Result<(), Refusal> {
        // An instance that was created with its own security group keeps it.
        let own_group = resolved.network.security_group_ids.is_empty() || self.has_group();
        if own_group {
            let group = self.group.as_ref();
            objects.extend(network::desired(resolved, policy, group, self.observed)?);
        }
        let observed = self.instances.get(choice.target.as_str());
        let (place, tags) = (self.place(resolved), self.home.tags());
        let mut object = instance::desired(resolved, policy, place, own_group, observed, tags)?;
        if let Some(observed) = observed.filter(|observed| self.is_off(observed)) {
            let namespace = &resolved.origin.namespace;
            let running = InstanceState::Running;
            let config = &policy.on_demand_provider_config_ref;
            let on = instance_state::desired(observed, namespace, running, config)?;
            objects.extend(on);
            instance_state::mark(&mut object, self.state_word_of(observed));
        }
        objects.insert(choice.target.clone(), object);
        Ok(())
    }

    /// Whether the security group exists. EC2 deletes the rules of a group with the group.
    fn has_group(&self) -> bool {
        self.observed.contains_key(resource_names::SECURITY_GROUP)
    }

    fn candidates(
        &self,
        paths: &ClaimPaths,
        pool_fits: impl Fn(&ObservedPool) -> bool,
        instance_fits: impl Fn(&OnDemandInstance<'_>) -> bool,
    ) -> Vec<Candidate<'_>> {
        let recorded = self.recorded;
        let pools = self.pools.iter().map(|(name, pool)| Candidate {
            name,
            fits: pool_fits(pool),
            deleting: pool.deleting,
            keep: KeepReason::of(
                recorded.is_some_and(|id| pool.instance(id).is_some()),
                pool.may_hold_work(),
            ),
            finding: spot::finding(Some(pool), recorded, paths),
        });
        let instances = self.instances.iter().map(|(name, instance)| Candidate {
            name,
            fits: instance_fits(instance),
            deleting: instance.deleting(),
            keep: KeepReason::of(
                match recorded.filter(|id| self.is_there(id)) {
                    Some(recorded) => instance.last_known_id() == Some(recorded),
                    // Without an observed recorded instance, the instance that has the home is the
                    // owner's.
                    None => self.home.is_attached_to(instance),
                },
                instance.may_hold_work(),
            ),
            finding: self.finding_of(instance, recorded),
        });
        pools.chain(instances).collect()
    }

    /// The observed state of the target. While another machine serves, the recorded machine does
    /// not count as lost.
    fn target(&self, choice: &Choice, paths: &ClaimPaths) -> Finding {
        let recorded = self.recorded.filter(|_| choice.serving.is_none());
        let name = choice.target.as_str();
        if name.starts_with(resource_names::INSTANCE_PREFIX) {
            match self.instances.get(name) {
                Some(instance) => self.finding_of(instance, recorded),
                None => on_demand::finding::absent(recorded),
            }
        } else {
            spot::finding(self.pools.get(name), recorded, paths)
        }
    }

    /// The state of a workspace for which no compute resource is observed.
    fn without_compute(&self) -> Finding {
        let waiting = || Cause::new(Reason::Creating, "waiting for its machine to be composed");
        Finding::absent(
            self.recorded
                .map_or_else(waiting, |id| finding::lost(id, None)),
        )
    }

    fn is_ready(&self, name: &str, target: Option<&str>, finding: &Finding) -> bool {
        if Some(name) == target {
            finding.serves_well()
        } else {
            self.is_in_order(name)
        }
    }
}

/// Whether the function decides for each resource of this kind whether to keep it.
fn is_computed(name: &str) -> bool {
    [
        resource_names::POOL,
        resource_names::INSTANCE_PREFIX,
        resource_names::ATTACHMENT_PREFIX,
        resource_names::INSTANCE_STATE_PREFIX,
        resource_names::USAGE_PREFIX,
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use api::workspace::GpuDevWorkspaceStatus;
    use function_runtime::request::Request;

    use super::*;

    #[test]
    fn a_held_workspace_without_machines_waits_for_its_machine() {
        let (request, previous) = (Request::default(), GpuDevWorkspaceStatus::default());
        let seen = Seen::read(&request, &previous);
        let held = seen.held(&ClaimPaths::default());
        assert_eq!(
            held.target.cause.message,
            "waiting for its machine to be composed"
        );
    }
}
