//! Refusals of EC2, the messages for users, and the number of calls.

use api::capacity::CapacityType;
use api::condition::{LAUNCHED, READY, SYNCED};
use api::duration::Duration;
use api::pool::PoolFallback;
use memory_ec2::{Fault, Habits};
use provider_core::{Market, Offering};

use super::luck::GONE_IMAGE;
use super::ours::Instances as _;
use super::provider::{Behind, Turn};
use super::store::Edit;
use super::world::{World, pool, size};

const DENIED: Fault = Fault::Refused("UnauthorizedOperation");

fn offering(zone: &str, market: Market) -> Offering {
    Offering {
        instance_type: "g4dn.xlarge".into(),
        zone: zone.into(),
        market,
    }
}

/// The offerings of the pool's live instances.
fn live(world: &World) -> impl Iterator<Item = Offering> {
    let earth = world.earth.lock();
    let live = earth.cloud.live().into_iter();
    let offerings: Vec<_> = live.map(|machine| machine.offering.clone()).collect();
    offerings.into_iter()
}

/// A world with a pool for which every call of an operation ends with this fault.
fn world_with(size: i32, operation: &'static str, fault: Fault) -> World {
    let world = World::new(pool(size));
    world.always(operation, fault);
    world
}

#[test]
fn a_reached_quota_says_which_one_and_what_to_do() {
    let mut world = World::new(pool(4));
    world.earth.lock().faults.no_quota.insert(Market::Spot);
    world.turn();
    let launched = world.condition(LAUNCHED);
    assert_eq!(launched.reason, "Quota");
    for part in [
        "g4dn.xlarge spot in us-east-1",
        "MaxSpotInstanceCountExceeded",
        "raise the quota L-3819A6DF (All G and VT Spot Instance Requests)",
    ] {
        assert!(launched.message.contains(part), "{}", launched.message);
    }
    assert_eq!(world.events("LaunchRefused"), [launched.message.as_str()]);
    assert_eq!(world.earth.lock().calls_of("CreateFleet"), 1);
    world.work_for(14 * 60);
    assert_eq!(world.earth.lock().calls_of("CreateFleet"), 1, "hammers");
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn one_offering_without_capacity_does_not_block_the_others() {
    let mut world = World::new(pool(3));
    let none = offering("us-east-1a", Market::Spot);
    world.earth.lock().faults.no_capacity.insert(none.clone());
    world.turn();
    let launches = world.observation().launches;
    let answer = launches[0].answer.clone().unwrap();
    assert!(answer.iter().all(|one| one.zone == "us-east-1b"));
    assert_eq!(answer.len(), 3, "in the same reconcile");
    let asked = world.earth.lock().asked.clone();
    assert_eq!(asked.iter().filter(|o| **o == none).count(), 1);
    assert_eq!(world.condition(LAUNCHED).reason, "Launched");
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn on_demand_is_bought_only_when_every_spot_offering_is_unavailable() {
    let mut world = World::new(pool(1));
    world.edit(Edit::Market(CapacityType::SpotWithFallback));
    let spot = ["us-east-1a", "us-east-1b"].map(|zone| offering(zone, Market::Spot));
    world.earth.lock().faults.no_capacity = spot.clone().into();
    world.turn();
    let bought = offering("us-east-1a", Market::OnDemand);
    let asked = world.earth.lock().asked.clone();
    assert_eq!(asked, [spot[0].clone(), spot[1].clone(), bought]);
    world.assert_lawful();
}

#[test]
fn no_capacity_anywhere_waits_and_says_so() {
    let mut world = World::new(pool(2));
    let spot = ["us-east-1a", "us-east-1b"].map(|zone| offering(zone, Market::Spot));
    world.earth.lock().faults.no_capacity = spot.into();
    world.turn();
    let launched = world.condition(LAUNCHED);
    assert_eq!(launched.reason, "Capacity");
    assert!(
        launched.message.contains("InsufficientInstanceCapacity"),
        "{}",
        launched.message
    );
    let unavailable = world.observation().unavailable_offerings;
    assert_eq!(unavailable.len(), 2);
    assert_eq!(world.condition(READY).message, "0 of 2 instances run");
    world.work_for(170);
    assert_eq!(world.earth.lock().calls_of("CreateFleet"), 1, "hammers");
    world.work_for(20);
    assert_eq!(world.earth.lock().calls_of("CreateFleet"), 2, "gave up");
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_denied_launch_does_not_hammer_ec2() {
    let mut world = world_with(4, "CreateFleet", DENIED);
    world.turn();
    let launched = world.condition(LAUNCHED);
    assert_eq!(launched.reason, "Denied");
    assert!(
        launched.message.contains("check the permissions"),
        "{}",
        launched.message
    );
    world.work_for(20 * 60);
    assert!(world.earth.lock().calls_of("CreateFleet") <= 5, "hammers");
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_launch_that_cannot_work_does_not_hammer_ec2_until_the_spec_is_mended() {
    let fault = Fault::Refused("InvalidParameterValue");
    let mut world = world_with(4, "CreateFleet", fault);
    world.work_for(4 * 60);
    assert_eq!(world.earth.lock().calls_of("CreateFleet"), 1, "hammers");
    assert_eq!(world.condition(LAUNCHED).reason, "Configuration");
    world.earth.lock().faults.end();
    world.edit(Edit::UserData("#cloud-config\n# mended".into()));
    world.turn();
    assert_eq!(world.observation().launches[0].count, 4, "at once");
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_denied_group_does_not_hammer_ec2() {
    let mut world = world_with(1, "CreateSecurityGroup", DENIED);
    let turns = world.work_for(20 * 60);
    assert!(turns <= 21, "{turns} reconciles");
    let synced = world.condition(SYNCED);
    assert!(
        synced
            .message
            .contains("CreateSecurityGroup: UnauthorizedOperation"),
        "{}",
        synced.message
    );
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_throttled_provider_slows_down() {
    let throttled = Fault::Refused("RequestLimitExceeded");
    let mut world = world_with(4, "CreateFleet", throttled);
    world.work_for(60);
    let calls = world.earth.lock().calls_of("CreateFleet");
    assert!(calls <= 7, "{calls} calls in a minute");
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_spec_that_cannot_work_leaves_running_instances_alone_and_names_the_field() {
    let mut world = World::new(pool(2));
    world.settle().unwrap();
    world.edit(Edit::Image(GONE_IMAGE));
    world.edit(Edit::Size(size(1)));
    let turn = world.turn();
    assert!(matches!(turn, Turn::Again(_)), "{turn:?}");
    world.work_for(10 * 60);
    assert_eq!(world.earth.lock().cloud.live().len(), 2);
    let launched = world.condition(LAUNCHED);
    assert_eq!(launched.reason, "Configuration");
    assert!(
        launched.message.starts_with("spec.forProvider.image.id: "),
        "{}",
        launched.message
    );
    world.assert_lawful();
}

#[test]
fn a_pool_with_nothing_to_do_calls_nobody() {
    let mut world = World::new(pool(2));
    world.settle().unwrap();
    let calls = world.earth.lock().calls.len();
    let turns = world.work_for(30 * 60);
    let checks = world.earth.lock().calls_of("DescribeInstanceStatus");
    assert!(checks <= 33, "{checks} looks at the checks in half an hour");
    let after = world.earth.lock().calls.len();
    let looks = after - calls;
    assert!(looks <= 4 * turns, "{looks} beside the shared look");
}

/// A pool of the claims' default: spot, and on demand after ten minutes without spot.
fn falling_back() -> World {
    let world = World::new(pool(1));
    world.edit(Edit::Market(CapacityType::SpotWithFallback));
    world.edit(Edit::Fallback(PoolFallback {
        after: Some(Duration::of_seconds(600)),
        return_after: None,
    }));
    world
}

#[test]
fn on_demand_stands_in_where_a_zone_has_no_spot_at_all() {
    let mut world = falling_back();
    let [first, second] = ["us-east-1a", "us-east-1b"].map(|zone| offering(zone, Market::Spot));
    world.earth.lock().faults.not_in_zone.insert(first.clone());
    world.earth.lock().faults.no_capacity.insert(second);
    world.work_for(590);
    assert_eq!(world.earth.lock().cloud.live().len(), 0);
    let asked = world.earth.lock().asked.clone();
    let times = asked.iter().filter(|one| **one == first).count();
    assert_eq!(times, 1, "a zone without spot is asked once an hour");
    world.work_for(60);
    let markets: Vec<Market> = live(&world).map(|one| one.market).collect();
    assert_eq!(markets, [Market::OnDemand]);
    world.assert_lawful();
}

#[test]
fn a_zone_in_which_the_spec_cannot_work_is_left_for_another_one() {
    let mut world = World::new(pool(1));
    let second = offering("us-east-1b", Market::Spot);
    let mut earth = world.earth.lock();
    earth.faults.refuses.insert(second, "InvalidParameterValue");
    earth.faults.most_each = Some(0);
    drop(earth);
    world.work_for(30);
    world.earth.lock().faults.most_each = None;
    world.work_for(200);
    let zones: Vec<String> = live(&world).map(|one| one.zone).collect();
    assert_eq!(zones, ["us-east-1a"]);
    world.assert_lawful();
}

#[test]
fn on_demand_stands_in_where_the_account_lacks_the_role_for_spot_instances() {
    let mut world = falling_back();
    world.earth.lock().faults.lacks_spot_role = true;
    world.work_for(300);
    let launched = world.condition(LAUNCHED);
    let advice = "aws iam create-service-linked-role";
    assert!(launched.message.contains(advice), "{}", launched.message);
    world.work_for(360);
    let markets: Vec<Market> = live(&world).map(|one| one.market).collect();
    assert_eq!(markets, [Market::OnDemand]);
    world.assert_lawful();
}

/// EC2 may refuse the caller inside an answer that succeeded: aws/karpenter-provider-aws#7370.
#[test]
fn a_refusal_of_the_caller_inside_an_answer_does_not_hammer_ec2() {
    for (code, reason, most) in [
        ("UnauthorizedOperation", "Denied", 5),
        ("RequestLimitExceeded", "Throttled", 40),
        ("InvalidParameterValue", "Configuration", 5),
    ] {
        let mut world = World::new(pool(1));
        world.earth.lock().faults.inside = Some(code);
        world.work_for(20 * 60);
        let launched = world.condition(LAUNCHED);
        assert_eq!(launched.reason, reason, "{code}");
        let calls = world.earth.lock().calls_of("CreateFleet");
        assert!((2..=most).contains(&calls), "{code}: {calls} calls");
        world.settle().unwrap();
        assert_eq!(world.earth.lock().cloud.machines.len(), 1);
        world.assert_lawful();
    }
}

#[test]
fn a_type_that_no_zone_has_on_spot_says_so_and_does_not_hammer_ec2() {
    let mut world = World::new(pool(1));
    let spot = ["us-east-1a", "us-east-1b"].map(|zone| offering(zone, Market::Spot));
    world.earth.lock().faults.not_in_zone = spot.into();
    world.work_for(50 * 60);
    let launched = world.condition(LAUNCHED);
    assert_eq!(launched.reason, "Capacity");
    for part in [
        "InvalidFleetConfiguration",
        "is not supported",
        "in an hour",
    ] {
        assert!(launched.message.contains(part), "{}", launched.message);
    }
    assert_eq!(world.earth.lock().calls_of("CreateFleet"), 1, "hammers");
    world.earth.lock().faults.end();
    world.work_for(20 * 60);
    assert_eq!(world.earth.lock().cloud.live().len(), 1);
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_deprecated_image_is_launched_and_named_to_its_administrator() {
    let mut world = World::new(pool(1));
    let mut earth = world.earth.lock();
    let now = earth.now;
    earth.cloud.deprecated.insert("ami-0123456789abcdef0", now);
    drop(earth);
    world.settle().unwrap();
    assert_eq!(world.earth.lock().cloud.live().len(), 1);
    let synced = world.condition(SYNCED);
    assert_eq!(synced.status.as_str(), "True");
    let said = "ami-0123456789abcdef0 is deprecated since";
    assert!(synced.message.starts_with(said), "{}", synced.message);
    world.assert_lawful();
}

#[test]
fn an_image_that_will_be_deprecated_is_not_named_yet() {
    let mut world = World::new(pool(1));
    let mut earth = world.earth.lock();
    let later = earth.now + jiff::SignedDuration::from_hours(10_000);
    earth
        .cloud
        .deprecated
        .insert("ami-0123456789abcdef0", later);
    drop(earth);
    world.settle().unwrap();
    assert_eq!(world.condition(SYNCED).message, "");
}

#[test]
fn a_lack_of_capacity_has_awss_words_and_makes_one_event() {
    let mut world = World::new(pool(1));
    for zone in ["us-east-1a", "us-east-1b"] {
        let spot = offering(zone, Market::Spot);
        world.earth.lock().faults.no_capacity.insert(spot);
    }
    world.work_for(20 * 60);
    let launched = world.condition(LAUNCHED);
    let said = "We currently do not have sufficient g4dn.xlarge capacity";
    assert!(launched.message.contains(said), "{}", launched.message);
    assert!(
        world.events("LaunchRefused").len() <= 2,
        "one for each zone"
    );
    world.settle().unwrap();
    world.assert_lawful();
}

/// EC2 carries the launch out, and its answer is lost.
fn unanswered(habits: Habits) -> World {
    let mut world = World::new(pool(1));
    world.earth.lock().cloud.habits = habits;
    while world.observation().launches.is_empty() {
        world.always("CreateFleet", Fault::LostReply);
        world.turn();
        world.earth.lock().faults.end();
    }
    assert_eq!(world.earth.lock().cloud.live().len(), 1);
    world
}

#[test]
fn a_launch_whose_instance_ended_before_anybody_saw_it_is_over() {
    let mut world = unanswered(Habits {
        refuses_ended_tokens: true,
        ..Habits::default()
    });
    let mut earth = world.earth.lock();
    let now = earth.now;
    earth.cloud.end("i-0", "Client.UserInitiatedShutdown", now);
    drop(earth);
    world.hide("i-0", 3600);
    world.work_for(60);
    let earth = world.earth.lock();
    let live: Vec<&str> = earth.cloud.live().iter().map(|m| m.id.as_str()).collect();
    assert_eq!(live, ["i-1"], "the launch blocks its place");
    drop(earth);
    world.assert_lawful();
}

/// A launch of which EC2 lists nothing yet is not over: its instance would run without an owner.
#[test]
fn a_limit_before_the_token_forgets_no_instance_that_ec2_lists_late() {
    let mut world = unanswered(Habits {
        looks_for_limits_first: true,
        ..Habits::default()
    });
    world.hide("i-0", 60);
    world.earth.lock().faults.no_quota.insert(Market::Spot);
    for _ in 0..12 {
        world.work_for(10);
        world.assert_lawful();
    }
    assert_eq!(world.earth.lock().cloud.machines.len(), 1, "bought twice");
    world.earth.lock().faults.end();
    world.settle().unwrap();
    assert_eq!(world.earth.lock().cloud.machines.len(), 1, "bought twice");
    world.assert_lawful();
}

#[test]
fn a_limit_that_ec2_looks_for_before_the_token_buys_nothing_twice() {
    let mut world = unanswered(Habits {
        looks_for_limits_first: true,
        ..Habits::default()
    });
    world.edit(Edit::Market(CapacityType::SpotWithFallback));
    world.earth.lock().faults.no_quota.insert(Market::Spot);
    // The provider works by a look from before the launch.
    let old = Behind {
        looks: 1,
        ..Behind::default()
    };
    world.wait(6);
    world.reconcile(old, None, |_| {});
    world.earth.lock().faults.end();
    world.reconcile(old, None, |_| {});
    world.settle().unwrap();
    assert_eq!(world.earth.lock().cloud.machines.len(), 1, "bought twice");
    assert_eq!(world.events("Terminated"), [""; 0]);
    world.assert_lawful();
}
