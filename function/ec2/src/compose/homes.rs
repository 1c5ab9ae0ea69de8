//! The home volume of a workspace, and the machine that has it.

use std::collections::BTreeMap;

use api::capacity::CapacityType;
use api::policy::{OnDemandProvider, WorkspacePolicy};
use function_runtime::outcome::Refusal;
use serde_json::Value;

use crate::compose::seen::Seen;
use crate::on_demand::instance::Place;
use crate::on_demand::{OnDemandInstance, home};
use crate::replacement::Choice;
use crate::resolved::Resolved;
use crate::resource_names;
use crate::spot::{self, ObservedPool};

impl<'a> Seen<'a> {
    /// The provider that made the home volume or an on-demand machine; none if neither exists. A
    /// market that changed may have left other resources, for example a security group.
    pub fn maker(&self) -> Option<OnDemandProvider> {
        if let Some(keeper) = self.home_keeper() {
            return Some(keeper);
        }
        let mut instances = self.instances.values();
        let has_instance = instances.any(|instance| !instance.deleting());
        if has_instance || (self.pools.is_empty() && self.has_anything_of_aws()) {
            return Some(OnDemandProvider::ProviderAws);
        }
        let mut pools = self.pools.values();
        let of_pool = pools.any(|pool| pool.parameters.capacity_type == CapacityType::OnDemand);
        of_pool.then_some(OnDemandProvider::SpotPool)
    }

    fn has_anything_of_aws(&self) -> bool {
        let mut names = self.observed.keys();
        names.any(|name| resource_names::owns(name) && !resource_names::is_pool(name))
    }

    /// The provider that manages the home volume; none if there is no home volume and none is
    /// recorded.
    pub fn home_keeper(&self) -> Option<OnDemandProvider> {
        let of_pool = self.recorded_home.is_some_and(|home| home.pool.is_some())
            || self.pools.values().any(ObservedPool::has_home);
        // Observed resources count more than recorded ones.
        if self.home.exists() {
            Some(OnDemandProvider::ProviderAws)
        } else {
            of_pool.then_some(OnDemandProvider::SpotPool)
        }
    }

    /// The home volume, and its attachment to the instance that may have it.
    pub(super) fn home(
        &self,
        resolved: &Resolved,
        policy: &WorkspacePolicy,
        choice: &Choice,
        objects: &mut BTreeMap<String, Value>,
    ) -> Result<(), Refusal> {
        let holder = self.holder(choice);
        let zone = holder
            .filter(|holder| holder.current_id().is_some())
            .and_then(|holder| holder.zone());
        if let Some(volume) = home::volume(resolved, policy, &self.home, zone)? {
            objects.insert(resource_names::HOME.to_owned(), volume);
        }
        if let Some(holder) = holder {
            objects.extend(home::attachment(resolved, policy, &self.home, holder)?);
        }
        // The object of an instance that is not Ready may soon have another instance. Its
        // attachment is kept until the new id is known, because nothing in it is wrong until then.
        let id = holder.and_then(|holder| holder.last_known_id());
        let waiting = id.map(home::attachment_name);
        self.keep(objects, |name| {
            name == resource_names::HOME || waiting.as_deref() == Some(name)
        });
        Ok(())
    }

    /// The state of a pool's home volume; none if the pool has no home.
    pub(super) fn home_of_pool(&self, name: &str) -> Option<home::Finding> {
        let pool = self.pools.get(name)?;
        pool.has_home().then(|| spot::home::finding(pool))
    }

    /// The instance that may have the home volume: the serving instance, until an attachment to the
    /// target is composed. The volume never moves back, because the old instance may already be
    /// stopping.
    pub(super) fn holder(&self, choice: &Choice) -> Option<&OnDemandInstance<'a>> {
        let target = self.instances.get(choice.target.as_str());
        let got_it = |target: &&OnDemandInstance<'_>| {
            let id = target.last_known_id();
            id.is_some_and(|id| self.home.is_composed_for(id))
        };
        if target.as_ref().is_some_and(got_it) {
            return target;
        }
        let id = choice.serving.as_ref().map(|machine| machine.id.as_str());
        let id = id.or(self.recorded);
        let serving = choice
            .kept
            .iter()
            .filter_map(|name| self.instances.get(name.as_str()))
            .find(|instance| id.is_some() && instance.last_known_id() == id);
        serving.or(target)
    }

    pub(super) fn place<'b>(&'b self, resolved: &'b Resolved) -> Place<'b> {
        match self.home.zone() {
            Some(zone) => Place {
                zone: Some(zone),
                subnet: match self.recorded_home {
                    Some(home) => home.subnet_id.as_deref(),
                    None => self.instances.values().find_map(|i| i.subnet()),
                },
            },
            // A new home is created in the zone of an observed instance.
            None if resolved.has_home && self.first_place().is_some() => {
                self.first_place().unwrap_or_default()
            }
            None => Place {
                zone: None,
                subnet: resolved.network.subnet_ids.first().map(String::as_str),
            },
        }
    }

    fn first_place(&self) -> Option<Place<'_>> {
        self.instances.values().find_map(|instance| {
            Some(Place {
                zone: Some(instance.zone()?),
                subnet: instance.subnet(),
            })
        })
    }
}
