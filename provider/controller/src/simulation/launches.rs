//! Launches with a fault between the decision and the status.

use api::capacity::CapacityType;
use api::condition::LAUNCHED;
use api::pool::PoolLaunch;
use jiff::SignedDuration;
use memory_ec2::{Fault, RECLAIMED};
use provider_core::{Market, Offering};

use super::earth::{How, STATUS};
use super::provider::{Behind, Provider, Turn};
use super::store::Edit;
use super::world::{World, pool, size};

const NOT_LISTED_FOR: SignedDuration = SignedDuration::from_secs(45);

/// A pool of one instance whose first launch's answer was lost.
fn after_a_lost_reply() -> World {
    let mut world = World::new(pool(1));
    let mut earth = world.earth.lock();
    earth.cloud.pace.lists_instance = NOT_LISTED_FOR;
    earth
        .faults
        .once
        .push_back(("CreateFleet", Fault::LostReply));
    drop(earth);
    world.turn();
    world.wait(6);
    assert_eq!(world.observation().launches[0].answer, None);
    world
}

fn promised(launch: &PoolLaunch) -> Vec<&str> {
    let answer = launch.answer.iter().flatten();
    answer.map(|one| one.id.as_str()).collect()
}

fn machines(world: &World) -> usize {
    world.earth.lock().cloud.machines.len()
}

#[test]
fn a_crash_between_launch_and_status_write_doubles_no_instance() {
    for how in [How::DiesBefore, How::DiesAfter] {
        for at in ["CreateFleet", STATUS] {
            let mut world = World::new(pool(1));
            assert_eq!(world.turn_until(at, how), Turn::Died);
            world.wait(1);
            world.settle().unwrap();
            world.assert_lawful();
            assert_eq!(machines(&world), 1, "{how:?} {at}");
        }
    }
}

#[test]
fn a_lost_reply_doubles_no_instance() {
    let mut world = after_a_lost_reply();
    world.turn();
    let first = &world.observation().launches[0];
    assert_eq!(promised(first), ["i-0"]);
    assert_eq!(world.events("Launched").len(), 1);
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(machines(&world), 1);
}

#[test]
fn a_lost_refusal_that_ec2_repeats_later_does_not_keep_the_pool_short() {
    let mut world = World::new(pool(1));
    let mut earth = world.earth.lock();
    earth.faults.no_quota.insert(Market::Spot);
    let lost = ("CreateFleet", Fault::LostReply);
    earth.faults.once.push_back(lost);
    drop(earth);
    world.turn();
    world.earth.lock().faults.end();
    world.work_for(60);
    assert_eq!(machines(&world), 1);
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_token_burnt_by_a_dead_instance_does_not_keep_the_pool_short() {
    let mut world = after_a_lost_reply();
    let mut earth = world.earth.lock();
    let now = earth.now;
    earth.cloud.end("i-0", RECLAIMED, now);
    drop(earth);
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_spec_edited_between_intent_and_repeat_doubles_no_instance() {
    let mut world = after_a_lost_reply();
    world.edit(Edit::UserData("#cloud-config\n# edited".into()));
    world.turn();
    assert_eq!(world.observation().launches[0].answer, None);
    world.wait(NOT_LISTED_FOR.as_secs());
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(machines(&world), 1);
}

#[test]
fn a_zone_dropped_between_intent_and_repeat_doubles_no_instance() {
    let mut world = after_a_lost_reply();
    world.edit(Edit::Zones(Some(vec!["us-east-1b".into()])));
    world.work_for(30);
    assert_eq!(world.earth.lock().calls_of("CreateFleet"), 1);
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(machines(&world), 1);
}

#[test]
fn a_permission_lost_between_intent_and_repeat_doubles_no_instance() {
    let mut world = after_a_lost_reply();
    let denied = Fault::Refused("UnauthorizedOperation");
    world
        .earth
        .lock()
        .faults
        .once
        .push_back(("CreateFleet", denied));
    world.turn();
    assert_eq!(
        world.observation().launches.len(),
        1,
        "it may have happened"
    );
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(machines(&world), 1);
}

#[test]
fn a_launch_that_succeeds_after_minutes_of_throttling_is_not_doubled() {
    let mut world = World::new(pool(1));
    let throttled = Fault::Refused("RequestLimitExceeded");
    let slow_down = |world: &World, fault| {
        let mut earth = world.earth.lock();
        match fault {
            Some(fault) => earth.faults.always.insert("CreateFleet", fault),
            None => earth.faults.always.remove("CreateFleet"),
        };
    };
    slow_down(&world, Some(throttled));
    world.work_for(420);
    assert!(world.earth.lock().calls_of("CreateFleet") <= 16, "hammers");
    slow_down(&world, None);
    world.work_for(120);
    world.assert_lawful();
    assert_eq!(machines(&world), 1);
}

#[test]
fn an_instance_that_ec2_showed_once_and_then_not_is_not_doubled() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.hide("i-0", 60);
    world.work_for(70);
    assert!(world.events("Interrupted").is_empty());
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(machines(&world), 1);
}

#[test]
fn an_instance_that_is_listed_after_minutes_is_not_doubled() {
    let mut world = World::new(pool(2));
    world.earth.lock().cloud.pace.lists_instance = SignedDuration::from_secs(280);
    world.work_for(275);
    assert_eq!(world.earth.lock().calls_of("CreateFleet"), 1);
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(machines(&world), 2);
}

#[test]
fn one_list_that_lacks_an_instance_replaces_nothing() {
    let mut world = World::new(pool(2));
    world.settle().unwrap();
    world.earth.lock().faults.flicker = 100;
    world.work_for(300);
    assert_eq!(world.observation().instances.len(), 2);
    assert_eq!(world.events("Interrupted"), [""; 0]);
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(machines(&world), 2);
}

#[test]
fn a_provider_with_a_stale_cache_launches_nothing() {
    let mut world = World::new(pool(2));
    let mut stale = Provider::new(&world.earth);
    world.turn();
    let behind = Behind {
        versions: usize::MAX,
        looks: 0,
    };
    let (turn, _) = stale.drive(&world.earth, behind, None, |_| {});
    assert_eq!(turn, Turn::Refused);
    world.assert_lawful();
    assert_eq!(world.earth.lock().calls_of("CreateFleet"), 1);
}

#[test]
fn a_second_provider_during_an_upgrade_doubles_no_instance() {
    for at in ["CreateSecurityGroup", STATUS, "CreateFleet"] {
        let mut world = World::new(pool(2));
        let mut second = Provider::new(&world.earth);
        world.turn_meanwhile(at, |earth| {
            second.look(earth);
            second.drive(earth, Behind::default(), None, |_| {});
        });
        world.settle().unwrap();
        world.assert_lawful();
        assert_eq!(machines(&world), 2, "{at}");
    }
}

#[test]
fn a_pool_edited_to_nothing_between_decision_and_launch_launches_nothing() {
    let mut world = World::new(pool(2));
    let turn = world.turn_meanwhile(STATUS, |earth| {
        let mut earth = earth.lock();
        let now = earth.now;
        earth.store.edit(Edit::Size(size(0)), now);
    });
    assert_eq!(turn, Turn::Refused);
    world.settle().unwrap();
    assert_eq!(machines(&world), 0);
}

#[test]
fn a_lost_status_doubles_no_instance() {
    let mut world = World::new(pool(2));
    world.settle().unwrap();
    world.earth.lock().store.lose_status();
    world
        .earth
        .lock()
        .cloud
        .end("i-1", RECLAIMED, jiff::Timestamp::UNIX_EPOCH);
    world.settle().unwrap();
    world.assert_lawful();
    let instances = world.observation().instances;
    let launches: Vec<i64> = instances.iter().map(|i| i.launch).collect();
    assert_eq!(launches, [1, 2], "no number comes back");
}

#[test]
fn a_reclaimed_instance_is_replaced_from_another_offering() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    let mut earth = world.earth.lock();
    let now = earth.now;
    earth.cloud.end("i-0", RECLAIMED, now);
    drop(earth);
    world.turn();
    assert_eq!(
        world.events("Interrupted"),
        ["lost i-0 (g4dn.xlarge spot in us-east-1a): Server.SpotInstanceTermination"]
    );
    let launch = &world.observation().launches[0];
    assert!(launch.offerings.iter().all(|o| o.zone == "us-east-1b"));
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_pool_on_demand_asks_for_no_spot_instance() {
    let mut world = World::new(pool(1));
    world.edit(Edit::Market(CapacityType::OnDemand));
    world.settle().unwrap();
    let asked = world.earth.lock().asked.clone();
    assert_eq!(asked[0].market, provider_core::Market::OnDemand);
    assert_eq!(asked.len(), 1);
    assert_eq!(world.condition(LAUNCHED).reason, "Launched");
}

#[test]
fn a_fleet_that_comes_in_part_is_made_up_from_other_offerings() {
    let mut world = World::new(pool(3));
    world.earth.lock().faults.most_each = Some(1);
    world.turn();
    assert_eq!(machines(&world), 2, "one of each zone");
    let known = world.observation();
    assert_eq!(known.unavailable_offerings.len(), 2);
    assert_eq!(world.condition(LAUNCHED).reason, "Capacity");
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(machines(&world), 3);
}

#[test]
fn a_launch_template_that_somebody_deletes_is_made_again() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.earth.lock().cloud.templates.clear();
    world.edit(Edit::Size(size(2)));
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(machines(&world), 2);
}

#[test]
fn another_spec_has_another_template_and_the_last_one_goes() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.edit(Edit::UserData("#cloud-config\n# edited".into()));
    world.edit(Edit::Size(size(2)));
    world.settle().unwrap();
    world.assert_lawful();
    let templates = world.earth.lock().cloud.templates.clone();
    let [name] = &templates.keys().collect::<Vec<_>>()[..] else {
        panic!("{templates:?}")
    };
    let known = world.observation();
    assert!(name.ends_with(&known.launch_templates[0]));
    assert_ne!(known.instances[0].generation, known.instances[1].generation);
}

/// EC2 refused the first call for capacity, and bound the token to its parameters. The answer was
/// lost, and the repeated call has other parameters.
#[test]
fn a_token_that_ec2_never_accepts_again_keeps_no_pool_from_its_instance() {
    let mut world = World::new(pool(1));
    {
        let mut earth = world.earth.lock();
        for zone in ["us-east-1a", "us-east-1b"] {
            earth.faults.no_capacity.insert(Offering {
                instance_type: "g4dn.xlarge".into(),
                zone: zone.into(),
                market: Market::Spot,
            });
        }
        let lost = ("CreateFleet", Fault::LostReply);
        earth.faults.once.push_back(lost);
    }
    world.turn();
    world.edit(Edit::Tag("team", "vision"));
    world.earth.lock().faults.end();
    world.work_for(400);
    assert_eq!(machines(&world), 1);
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn an_error_that_nobody_knows_is_neither_asked_nor_written_every_five_seconds() {
    let mut world = World::new(pool(1));
    let unknown = Fault::Refused("SomethingNew");
    world.always("CreateFleet", unknown);
    world.work_for(3600);
    let earth = world.earth.lock();
    let (calls, writes) = (earth.calls_of("CreateFleet"), earth.store.writes);
    drop(earth);
    assert!((10..=25).contains(&calls), "{calls} calls in an hour");
    let launched = world.condition(LAUNCHED);
    assert_eq!(launched.status.as_str(), "False");
    assert!(
        launched.message.contains("SomethingNew"),
        "{}",
        launched.message
    );
    assert!(writes <= 4 * calls, "{writes} writes");
    world.settle().unwrap();
    world.assert_lawful();
}
