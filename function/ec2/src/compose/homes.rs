//! Where a workspace's home volume is, and which machine has it.

use std::collections::BTreeMap;

use api::policy::WorkspacePolicy;
use function_runtime::object::ObservedObject;
use serde_json::Value;

use crate::capacity::HomeKeeper;
use crate::compose::seen::Seen;
use crate::on_demand::home;
use crate::on_demand::instance::{self, Place};
use crate::replacement::Choice;
use crate::resource_names;
use crate::spot;
use crate::wanted::Wanted;

impl<'a> Seen<'a> {
    /// Who has the home volume, where there is one, or was one.
    pub fn home_keeper(&self) -> Option<HomeKeeper> {
        let of_pool = self.recorded_home.is_some_and(|home| home.pool.is_some())
            || self.pools.values().any(|pool| pool.has_home);
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
        wanted: &Wanted,
        policy: &WorkspacePolicy,
        choice: &Choice,
        objects: &mut BTreeMap<String, Value>,
    ) {
        let holder = self.holder(choice);
        let zone = holder
            .filter(|holder| instance::id(*holder).is_some())
            .and_then(|holder| holder.at_provider("availabilityZone"));
        if let Some(volume) = home::volume(wanted, policy, &self.home, zone) {
            objects.insert(resource_names::HOME.to_owned(), volume);
        }
        let attached =
            holder.and_then(|holder| home::attachment(wanted, policy, &self.home, holder));
        objects.extend(attached);
        // An instance that is not Ready may be another one soon: until its new id
        // is known, its attachment says nothing that is wrong.
        let id = holder.and_then(|holder| holder.at_provider("id"));
        let waiting = id.map(home::attachment_key);
        self.keep(objects, |key| {
            key == resource_names::HOME || waiting.as_deref() == Some(key)
        });
    }

    /// The home volume of a pool, where it has one.
    pub(super) fn home_of_pool(&self, key: &str) -> Option<home::Finding> {
        let pool = self.pools.get(key)?;
        pool.has_home.then(|| spot::home::finding(pool))
    }

    /// The instance that has the home volume: the one that serves, until the one
    /// to come has got it. It never goes back: that instance may be on its way out.
    pub(super) fn holder(&self, choice: &Choice) -> Option<ObservedObject<'a>> {
        let target = self.instances.get(choice.target.as_str()).copied();
        let got_it = |target: &ObservedObject<'_>| {
            target
                .at_provider("id")
                .is_some_and(|id| self.home.is_composed_for(id))
        };
        if target.as_ref().is_some_and(got_it) {
            return target;
        }
        let id = choice.serving.as_ref().map(|machine| machine.id.as_str());
        let id = id.or(self.recorded);
        let serving = choice
            .kept
            .iter()
            .filter_map(|key| self.instances.get(key.as_str()))
            .find(|i| id.is_some() && i.at_provider("id") == id);
        serving.copied().or(target)
    }

    pub(super) fn place<'b>(&'b self, wanted: &'b Wanted) -> Place<'b> {
        match self.home.zone() {
            Some(zone) => Place {
                zone: Some(zone),
                subnet: match self.recorded_home {
                    Some(home) => home.subnet_id.as_deref(),
                    None => self
                        .instances
                        .values()
                        .find_map(|i| i.for_provider("subnetId")),
                },
            },
            // A home that is about to be made is made where an instance is.
            None if wanted.has_home && self.first_place().is_some() => {
                self.first_place().unwrap_or_default()
            }
            None => Place {
                zone: None,
                subnet: wanted.network.subnet_ids.first().map(String::as_str),
            },
        }
    }

    fn first_place(&self) -> Option<Place<'_>> {
        self.instances.values().find_map(|instance| {
            Some(Place {
                zone: Some(instance.at_provider("availabilityZone")?),
                subnet: instance.for_provider("subnetId"),
            })
        })
    }
}
