//! Between the API's shapes and the planner's.

use api::pool::{
    ColdOffering, InstanceCapacityType, PoolInstance, PoolLaunch, SpotPoolObservation,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use provider_core::{Cold, ColdOfferings, Instance, Launch, Market, Observed, Offering};

use crate::region::Snapshot;

/// What is, of one pool: EC2's lists, and the launches that its status holds.
pub fn observed(
    pool_uid: &str,
    snapshot: &Snapshot,
    status: &SpotPoolObservation,
    cold: ColdOfferings,
    hold_launches_until: Option<Timestamp>,
) -> Observed {
    let mut observed = Observed {
        instances: snapshot
            .instances
            .get(pool_uid)
            .cloned()
            .unwrap_or_default(),
        launches: status.launches.iter().map(launch_from_api).collect(),
        launch_generation: unsigned(status.launch_generation),
        groups: snapshot.groups.get(pool_uid).cloned().unwrap_or_default(),
        group_in_doubt_until: None,
        cold,
        hold_launches_until,
    };
    observed.settle();
    observed
}

/// A launch, as a status holds it.
pub fn launch_to_api(launch: &Launch) -> PoolLaunch {
    PoolLaunch {
        launch: signed(launch.launch),
        slot: i32::try_from(launch.slot).unwrap_or(i32::MAX),
        instance_type: launch.offering.instance_type.clone(),
        zone: launch.offering.zone.clone(),
        capacity_type: capacity(launch.offering.market),
        decided_at: Time(launch.decided_at),
        instance_id: launch.instance_id.clone(),
    }
}

/// An instance, as a status shows it.
pub fn instance_to_api(instance: &Instance) -> PoolInstance {
    PoolInstance {
        id: instance.id.clone(),
        slot: i32::try_from(instance.slot).unwrap_or(i32::MAX),
        launch: signed(instance.launch),
        instance_type: instance.offering.instance_type.clone(),
        zone: instance.offering.zone.clone(),
        capacity_type: capacity(instance.offering.market),
        image_id: instance.image_id.clone(),
        state: instance.state.as_str().to_owned(),
        state_reason: instance.state_reason.clone(),
        public_ip: instance.public_ip.clone(),
        private_ip: instance.private_ip.clone(),
        launched_at: instance.launched_at.map(Time),
    }
}

/// A resting offering, as a status shows it.
pub fn cold_to_api(offering: &Offering, cold: &Cold) -> ColdOffering {
    ColdOffering {
        instance_type: offering.instance_type.clone(),
        zone: offering.zone.clone(),
        capacity_type: capacity(offering.market),
        code: cold.refusal.code.clone(),
        until: Time(cold.until),
    }
}

/// What an instance of a status was bought as.
pub fn offering_of(instance: &PoolInstance) -> Offering {
    offering(
        &instance.instance_type,
        &instance.zone,
        instance.capacity_type,
    )
}

/// A number for the API, which has signed ones only.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn launch_from_api(launch: &PoolLaunch) -> Launch {
    Launch {
        launch: unsigned(launch.launch),
        slot: u32::try_from(launch.slot).unwrap_or_default(),
        offering: offering(&launch.instance_type, &launch.zone, launch.capacity_type),
        decided_at: launch.decided_at.0,
        instance_id: launch.instance_id.clone(),
    }
}

fn offering(instance_type: &str, zone: &str, capacity: InstanceCapacityType) -> Offering {
    Offering {
        instance_type: instance_type.to_owned(),
        zone: zone.to_owned(),
        market: match capacity {
            InstanceCapacityType::Spot => Market::Spot,
            InstanceCapacityType::OnDemand => Market::OnDemand,
        },
    }
}

fn capacity(market: Market) -> InstanceCapacityType {
    match market {
        Market::Spot => InstanceCapacityType::Spot,
        Market::OnDemand => InstanceCapacityType::OnDemand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persisted_launch_keeps_its_token_through_a_restart() {
        let launch = Launch {
            launch: 3,
            slot: 1,
            offering: offering("g5.xlarge", "us-east-1b", InstanceCapacityType::OnDemand),
            decided_at: Timestamp::from_second(1_700_000_000).unwrap(),
            instance_id: Some("i-1".into()),
        };
        let stored = serde_json::to_string(&launch_to_api(&launch)).unwrap();
        let read = launch_from_api(&serde_json::from_str(&stored).unwrap());
        assert_eq!(read, launch);
        assert_eq!(
            provider_core::client_token("uid", &read),
            provider_core::client_token("uid", &launch)
        );
    }
}
