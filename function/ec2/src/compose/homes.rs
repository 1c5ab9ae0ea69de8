//! Where a workspace's home volume is, and which machine has it.

use std::collections::BTreeMap;

use api::policy::WorkspacePolicy;
use function_runtime::outcome::Refusal;
use serde_json::Value;

use crate::capacity::HomeKeeper;
use crate::compose::seen::Seen;
use crate::on_demand::instance::Place;
use crate::on_demand::{OnDemandInstance, home};
use crate::replacement::Choice;
use crate::resolved::Resolved;
use crate::resource_names;
use crate::spot::{self, ObservedPool};

impl<'a> Seen<'a> {
    /// Who has the home volume, where there is one, or was one.
    pub fn home_keeper(&self) -> Option<HomeKeeper> {
        let of_pool = self.recorded_home.is_some_and(|home| home.pool.is_some())
            || self.pools.values().any(ObservedPool::has_home);
        // What is observed counts more than what is remembered.
        if self.home.exists() {
            Some(HomeKeeper::ProviderAws)
        } else {
            of_pool.then_some(HomeKeeper::SpotPool)
        }
    }

    /// The volume, and its attachment to the instance that has it.
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
        // An instance that is not Ready may be another one soon: until its new id
        // is known, its attachment says nothing that is wrong.
        let id = holder.and_then(|holder| holder.last_known_id());
        let waiting = id.map(home::attachment_name);
        self.keep(objects, |name| {
            name == resource_names::HOME || waiting.as_deref() == Some(name)
        });
        Ok(())
    }

    /// The home volume of a pool, where it has one.
    pub(super) fn home_of_pool(&self, name: &str) -> Option<home::Finding> {
        let pool = self.pools.get(name)?;
        pool.has_home().then(|| spot::home::finding(pool))
    }

    /// The instance that has the home volume: the one that serves, until the one
    /// to come has got it. It never goes back: that instance may be on its way out.
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
            // A home that is about to be made is made where an instance is.
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
