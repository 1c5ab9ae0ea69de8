//! Which machines of a workspace on EC2 cost money, or are to.

use api::capacity::InstanceCapacityType;
use serde_json::Value;

use crate::compose::seen::Seen;
use crate::on_demand::instance;
use crate::on_demand::instance_state::InstanceState;
use crate::prices::Machine;

impl Seen<'_> {
    /// The machines that run.
    pub fn machines(&self) -> Vec<Machine> {
        let of_pools = self.pools.values().flat_map(|pool| {
            pool.running().map(|i| Machine {
                instance_type: i.instance_type.clone(),
                capacity_type: i.capacity_type,
                hourly_usd: i.hourly_usd,
            })
        });
        let running = self.instances.values();
        let running = running.filter(|i| {
            // Its provider looks again within minutes only; its power is known at once.
            let is_off = self.instance_state_of(**i) == Some(InstanceState::Stopped.as_str());
            instance::state(**i) == Some("running") && !is_off
        });
        let of_aws = running.map(|i| Machine {
            instance_type: i
                .at_provider("instanceType")
                .or_else(|| i.for_provider("instanceType"))
                .unwrap_or_default()
                .to_owned(),
            capacity_type: InstanceCapacityType::OnDemand,
            hourly_usd: None,
        });
        of_pools.chain(of_aws).collect()
    }

    /// Whether something composed keeps a machine running, or makes one.
    pub fn is_on(&self) -> bool {
        let wants = |key: &&str| {
            let size = self.observed.get(*key);
            let size = size.and_then(|pool| pool.pointer("/spec/forProvider/size/minimum"));
            size.and_then(Value::as_f64).unwrap_or(1.0) > 0.0
        };
        let mut instances = self.instances.values();
        self.pools.keys().any(wants)
            || instances.any(|i| !instance::is_lost(*i) && !self.is_off(*i))
            || !self.machines().is_empty()
    }
}
