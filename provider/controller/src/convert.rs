//! Converts between the API's types and the planner's.

use std::collections::{BTreeMap, BTreeSet};

use api::capacity::InstanceCapacityType;
use api::pool::{
    PoolInstance, PoolLaunch, PoolLaunched, PoolNotice, PoolOffering, PoolScheduledEvent,
    SpotPoolObservation, UnavailableOffering,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use provider_core::{
    Instance, InstanceState, Launch, Launched, Market, Notice, NoticeKind, Observed, ObservedHome,
    Offering, ScheduledEvent, Unavailable, UnavailableOfferings,
};

use crate::holds::Holds;
use crate::home;
use crate::numbers::{signed, small, unsigned};
use crate::region::Snapshot;
use crate::setup;

/// How long an instance has to fail EC2's checks before it counts as impaired. A reboot takes
/// minutes.
const IMPAIRED_LIMIT: SignedDuration = SignedDuration::from_mins(5);

/// The generations of the pool's launch templates. EC2 is not asked for templates, so a pool whose
/// status a backup did not restore has those of its instances.
fn templates(instances: &[Instance], status: &SpotPoolObservation) -> BTreeSet<String> {
    if status.launch_generation > 0 {
        return status.launch_templates.iter().cloned().collect();
    }
    let generations = instances.iter().filter_map(|i| i.generation.clone());
    generations.collect()
}

/// The observed state of one pool, from EC2's lists and the pool's status.
pub fn observed(
    pool_uid: &str,
    snapshot: &Snapshot,
    status: &SpotPoolObservation,
    announced: BTreeMap<String, Notice>,
    unavailable: UnavailableOfferings,
    holds: &Holds,
) -> Observed {
    let instances = snapshot.instances.get(pool_uid).into_iter().flatten();
    let instances: Vec<Instance> = instances.map(|i| i.as_ref().clone()).collect();
    let mut notices = announced;
    for shown in &status.instances {
        let notice = shown.notice.as_ref().and_then(notice_from_api);
        if let Some(notice) = notice {
            let known = notices.entry(shown.id.clone()).or_insert(notice);
            *known = notice.max(*known);
        }
    }
    let impaired_since = impaired_since(snapshot, status);
    let impaired = impaired_since.into_iter();
    let impaired = impaired
        .filter(|(_, since)| snapshot.at.duration_since(*since) >= IMPAIRED_LIMIT)
        .map(|(id, _)| id);
    let scheduled = &snapshot.checks.scheduled;
    let of_pool = |i: &Instance| Some((i.id.clone(), scheduled.get(&i.id)?.clone()));
    let scheduled = instances.iter().filter_map(of_pool).collect();
    let shown = status.instances.iter();
    let not_set_up = shown.filter(|shown| setup::is_open(shown));
    let mut observed = Observed {
        templates: templates(&instances, status),
        instances,
        launches: status.launches.iter().map(launch_from_api).collect(),
        launch_generation: unsigned(status.launch_generation),
        bindings: status.leases.clone(),
        ending: status.ending.clone(),
        notices,
        scheduled,
        impaired: impaired.collect(),
        not_set_up: not_set_up.map(|shown| shown.id.clone()).collect(),
        unended: [].into(),
        untagged: [].into(),
        missing_since: [].into(),
        zones_down: snapshot.zones_down.clone(),
        spot_short_since: status.spot_short_since.as_ref().map(|time| time.0),
        groups: snapshot.groups.get(pool_uid).cloned().unwrap_or_default(),
        are_groups_unseen: snapshot.groups_at.is_none(),
        group_in_doubt_until: None,
        unavailable,
        hold_launches_until: holds.launches_until,
        launch_failures: holds.launch_failures,
        home: ObservedHome {
            record: status.home.as_ref().map(home::from_api),
            ..ObservedHome::default()
        },
    };
    // AWS interrupts spot instances only. The provider leaves the end of an interrupted instance to
    // AWS, so a forged message about an on-demand instance would keep it running.
    let on_demand = |id: &String| {
        let mut instances = observed.instances.iter();
        instances.any(|i| i.id == *id && i.offering.market == Market::OnDemand)
    };
    observed.notices.retain(|id, _| !on_demand(id));
    observed.settle();
    observed
}

/// Since when each instance of the pool fails EC2's checks. The status tells it; a new failure
/// begins with this look.
pub fn impaired_since(
    snapshot: &Snapshot,
    status: &SpotPoolObservation,
) -> BTreeMap<String, Timestamp> {
    let shown = |id: &String| {
        let shown = status.instances.iter().find(|i| i.id == *id);
        shown.and_then(|i| i.impaired_since.as_ref().map(|time| time.0))
    };
    let impaired = snapshot.checks.impaired.iter();
    impaired
        .map(|id| (id.clone(), shown(id).unwrap_or(snapshot.at)))
        .collect()
}

/// A launch in the form of the status.
pub fn launch_to_api(launch: &Launch) -> PoolLaunch {
    let market = launch.offerings.first().map_or(Market::Spot, |o| o.market);
    let offerings = launch.offerings.iter().map(|o| PoolOffering {
        instance_type: o.instance_type.clone(),
        zone: o.zone.clone(),
    });
    let launched = |one: &Launched| PoolLaunched {
        id: one.id.clone(),
        instance_type: one.offering.instance_type.clone(),
        zone: one.offering.zone.clone(),
    };
    let answer = launch.answer.as_ref();
    PoolLaunch {
        launch: signed(launch.launch),
        count: small(launch.count),
        generation: launch.generation.clone(),
        capacity_type: capacity(market),
        offerings: offerings.collect(),
        decided_at: Time(launch.decided_at),
        failures: small(launch.failures),
        answer: answer.map(|answer| answer.iter().map(launched).collect()),
    }
}

/// An instance in the form of the status.
pub fn instance_to_api(instance: &Instance) -> PoolInstance {
    PoolInstance {
        id: instance.id.clone(),
        launch: signed(instance.launch),
        generation: instance.generation.clone(),
        lease: instance.lease.clone(),
        notice: None,
        scheduled_event: None,
        impaired_since: None,
        missing_since: None,
        why: None,
        instance_type: instance.offering.instance_type.clone(),
        zone: instance.offering.zone.clone(),
        capacity_type: capacity(instance.offering.market),
        image_id: instance.image_id.clone(),
        state: instance.state.as_str().to_owned(),
        state_reason: instance.state_reason.clone(),
        public_ip: instance.public_ip.clone(),
        private_ip: instance.private_ip.clone(),
        launched_at: instance.launched_at.map(Time),
        activity: instance.activity.clone(),
        hourly_usd: None,
        host_key: instance.host_key.clone(),
        console_host_keys: Vec::new(),
        setup: None,
    }
}

/// An instance of the status. `None` if its state is not a name of EC2's.
pub fn instance_from_api(pool_uid: &str, shown: &PoolInstance) -> Option<Instance> {
    Some(Instance {
        id: shown.id.clone(),
        pool_uid: pool_uid.to_owned(),
        launch: unsigned(shown.launch),
        generation: shown.generation.clone(),
        lease: shown.lease.clone(),
        lease_digest: None,
        authorized_keys: BTreeMap::new(),
        activity: shown.activity.clone(),
        host_key: shown.host_key.clone(),
        setup: None,
        offering: offering_of(shown),
        image_id: shown.image_id.clone(),
        state: InstanceState::parse(&shown.state)?,
        state_reason: shown.state_reason.clone(),
        state_message: None,
        public_ip: shown.public_ip.clone(),
        private_ip: shown.private_ip.clone(),
        launched_at: shown.launched_at.as_ref().map(|time| time.0),
    })
}

/// An unavailable offering in the form of the status.
pub fn unavailable_to_api(offering: &Offering, unavailable: &Unavailable) -> UnavailableOffering {
    UnavailableOffering {
        instance_type: offering.instance_type.clone(),
        zone: offering.zone.clone(),
        capacity_type: capacity(offering.market),
        code: unavailable.refusal.code.clone(),
        until: Time(unavailable.until),
    }
}

/// The offering that an instance of the status was bought as.
pub fn offering_of(instance: &PoolInstance) -> Offering {
    offering(
        &instance.instance_type,
        &instance.zone,
        instance.capacity_type,
    )
}

fn launch_from_api(launch: &PoolLaunch) -> Launch {
    let bought = |kind: &str, zone: &str| offering(kind, zone, launch.capacity_type);
    let offerings = launch.offerings.iter();
    let launched = |one: &PoolLaunched| Launched {
        id: one.id.clone(),
        offering: bought(&one.instance_type, &one.zone),
    };
    let answer = launch.answer.as_ref();
    Launch {
        launch: unsigned(launch.launch),
        count: u32::try_from(launch.count).unwrap_or_default(),
        generation: launch.generation.clone(),
        offerings: offerings
            .map(|o| bought(&o.instance_type, &o.zone))
            .collect(),
        decided_at: launch.decided_at.0,
        failures: u32::try_from(launch.failures).unwrap_or_default(),
        answer: answer.map(|answer| answer.iter().map(launched).collect()),
    }
}

/// A scheduled event in the form of the status.
pub fn scheduled_to_api(event: &ScheduledEvent) -> PoolScheduledEvent {
    PoolScheduledEvent {
        code: event.code.clone(),
        not_before: event.not_before.map(Time),
    }
}

/// An announcement of the status. `None` if its kind is unknown.
pub fn notice_from_api(notice: &PoolNotice) -> Option<Notice> {
    let at = notice.at.0;
    NoticeKind::parse(&notice.kind).map(|kind| Notice { kind, at })
}

/// An announcement in the form of the status.
pub fn notice_to_api(notice: &Notice) -> PoolNotice {
    PoolNotice {
        kind: notice.kind.as_str().to_owned(),
        at: Time(notice.at),
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
        let bought = |zone| offering("g5.xlarge", zone, InstanceCapacityType::OnDemand);
        let launch = Launch {
            launch: 3,
            count: 2,
            generation: "0123".into(),
            offerings: vec![bought("us-east-1b"), bought("us-east-1a")],
            decided_at: Timestamp::from_second(1_700_000_000).unwrap(),
            failures: 2,
            answer: Some(vec![Launched {
                id: "i-1".into(),
                offering: bought("us-east-1a"),
            }]),
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
