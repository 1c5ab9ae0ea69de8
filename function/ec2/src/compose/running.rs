//! The machines of a workspace on EC2 that cost money.

use api::capacity::{CapacityType, InstanceCapacityType};
use api::catalogue::Prices;
use function_workspace::cost::price::{Homes, Running};
use function_workspace::setup::Installation;

use crate::compose::seen::Seen;
use crate::on_demand::OnDemandInstance;
use crate::on_demand::instance_state::InstanceState;
use crate::prices::{self, Machine};
use crate::setup;
use crate::spot::ObservedPool;

impl Seen<'_> {
    /// Whether a machine exists that costs money, as far as that is known.
    pub fn has_machine(&self) -> bool {
        !self.machines().is_empty() || self.unknown().next().is_some()
    }

    /// How far the setup of the machine is that the owner can use. A machine whose software is
    /// installed serves until its successor does.
    pub fn installation(&self) -> Installation {
        let pools = self.pools.values();
        let of_pools = pools.filter_map(|pool| {
            let (instance, _) = pool.usable(self.recorded)?;
            Some(setup::of_pool(pool, instance).installation())
        });
        let instances = self.instances.values();
        let of_instances = instances.filter_map(|instance| {
            let machine = self.finding_of(instance, self.recorded).machine?;
            Some(machine.setup.installation())
        });
        let all: Vec<Installation> = of_pools.chain(of_instances).collect();
        let known = [Installation::Done, Installation::Going];
        known
            .into_iter()
            .find(|one| all.contains(one))
            .unwrap_or_default()
    }

    /// The price of the running machines. Machines that are not known have no price.
    pub fn running(&self, prices: Option<&Prices>, region: &str) -> Running {
        if self.unknown().next().is_some() {
            return Running::Unpriced;
        }
        prices::of_machines(prices, region, &self.machines())
    }

    /// The home volumes that exist in EC2, and their price.
    pub fn homes(&self, prices: Option<&Prices>, region: &str) -> Homes {
        let pools = self.pools.values();
        let has_unknown = self.problem().is_some() || pools.clone().any(|p| p.unreadable.is_some());
        if has_unknown {
            return Homes::Unknown;
        }
        let of_pools = pools.filter_map(ObservedPool::home_volume);
        let volumes: Vec<_> = of_pools.chain(self.home.existing_volume()).collect();
        prices::of_volumes(prices, region, &volumes)
    }

    /// The running machines.
    pub fn machines(&self) -> Vec<Machine> {
        let of_pools = self.pools.values().flat_map(|pool| {
            pool.running().map(|i| Machine {
                instance_type: i.instance_type.clone(),
                capacity_type: i.capacity_type,
                hourly_usd: i.hourly_usd,
            })
        });
        // provider-aws observes an instance only every few minutes. The `InstanceState` shows a
        // stop at once.
        let is_off = |instance: &OnDemandInstance<'_>| {
            self.instance_state_of(instance) == Some(InstanceState::Stopped)
        };
        let instances = self.instances.values();
        let of_aws = instances
            .filter(|instance| instance.runs() && !is_off(instance))
            .map(|instance| Machine {
                instance_type: instance.instance_type().to_owned(),
                capacity_type: InstanceCapacityType::OnDemand,
                hourly_usd: None,
            });
        of_pools.chain(of_aws).collect()
    }

    /// Whether a stop deletes the disk of an on-demand machine. Owners of spot machines expect that,
    /// and owners of on-demand machines do not.
    pub fn has_on_demand_pool_without_home(&self) -> bool {
        let mut pools = self.pools.values();
        pools
            .any(|pool| pool.parameters.capacity_type == CapacityType::OnDemand && !pool.has_home())
    }

    /// Whether a composed resource keeps a machine running or creates one.
    pub fn is_on(&self) -> bool {
        let mut instances = self.instances.values();
        self.unknown().next().is_some()
            || self.pools.values().any(ObservedPool::is_on)
            || instances.any(|i| !i.is_lost() && !self.is_off(i))
            || !self.machines().is_empty()
    }
}
