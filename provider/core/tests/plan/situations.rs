//! Tests of the planner in chosen situations.

use std::collections::BTreeSet;

use super::world::{NOW, World, desired, instance, launch, lease, offerings};
use jiff::{SignedDuration, Timestamp};
use provider_core::{
    Action, Desired, Disruption, ErrorClass, InstanceState, Launch, Market, Refusal, Size, Wait,
    plan,
};

fn refusal(class: ErrorClass) -> Refusal {
    Refusal {
        class,
        code: "InsufficientInstanceCapacity".into(),
        message: String::new(),
    }
}

fn after_minutes(minutes: i64) -> Timestamp {
    NOW.saturating_add(SignedDuration::from_mins(minutes))
        .unwrap()
}

fn launches(actions: &[Action]) -> Vec<&Launch> {
    actions
        .iter()
        .filter_map(|a| match a {
            Action::Launch(l) => Some(l),
            _ => None,
        })
        .collect()
}

fn terminated(actions: &[Action]) -> Vec<&str> {
    actions
        .iter()
        .filter_map(|a| match a {
            Action::Terminate { id, .. } => Some(id.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_pool_whose_time_is_over_keeps_only_leased_instances() {
    let mut world = World::default();
    world.run_to_rest(&desired(2));
    let end = world.now + SignedDuration::from_mins(10);
    let ending = Desired {
        ends_at: Some(end),
        ..desired(2)
    };
    let before = plan(&ending, &world.observed, end - SignedDuration::from_secs(1));
    assert_eq!((before.target, terminated(&before.actions).len()), (2, 0));
    let after = plan(&ending, &world.observed, end);
    assert_eq!((after.target, terminated(&after.actions).len()), (0, 2));
    let is_said =
        |a: &Action| matches!(a, Action::Terminate { why, .. } if *why == Disruption::Ended);
    assert!(after.actions.iter().all(is_said), "{:?}", after.actions);

    let leased = Desired {
        leases: vec![lease("alice", false)],
        ..ending
    };
    let binds = plan(&leased, &world.observed, end - SignedDuration::from_secs(1));
    world.apply(&binds);
    assert!(world.observed.bindings.contains_key("alice"));
    world.now = end;
    assert_eq!(world.run_to_rest(&leased).target, 0);
    let left = world.observed.instances.iter();
    assert_eq!(
        left.filter(|i| i.state.is_live()).count(),
        1,
        "whoever has one keeps it"
    );
}

#[test]
fn a_new_pool_creates_its_group_before_it_launches_into_it() {
    let mut world = World::default();
    world.observed.groups.clear();
    let first = plan(&desired(1), &world.observed, NOW);
    assert!(matches!(
        first.actions.as_slice(),
        [Action::CreateGroup { .. }]
    ));
    world.apply(&first);
    let second = plan(&desired(1), &world.observed, NOW);
    assert_eq!(launches(&second.actions).len(), 1);
}

#[test]
fn a_launch_that_was_persisted_before_a_crash_is_repeated_not_doubled() {
    let mut world = World::default();
    let first = plan(&desired(1), &world.observed, NOW);
    let decided = launches(&first.actions)[0].clone();
    world.observed.launches = vec![decided.clone()];
    world.observed.launch_generation = decided.launch;
    let after_crash = plan(&desired(1), &world.observed, NOW);
    assert_eq!(launches(&after_crash.actions), [&decided]);
}

#[test]
fn an_instance_that_ec2_does_not_list_yet_is_not_launched_again() {
    let mut world = World::default();
    world.observed.launches = vec![launch(1, Some("i-1"))];
    world.observed.launch_generation = 1;
    let waiting = plan(&desired(1), &world.observed, NOW);
    assert_eq!(waiting.actions, []);
    assert_eq!(waiting.waits, [Wait::Instances]);
}

#[test]
fn an_instance_that_never_appears_is_forgotten_and_replaced() {
    let mut world = World::default();
    world.observed.launches = vec![launch(1, Some("i-1"))];
    world.observed.launch_generation = 1;
    let later = NOW.saturating_add(SignedDuration::from_mins(5)).unwrap();
    let replaced = plan(&desired(1), &world.observed, later);
    assert!(replaced.actions.contains(&Action::Forget { launch: 1 }));
    assert_eq!(launches(&replaced.actions)[0].launch, 2);
}

#[test]
fn a_launch_that_is_asked_for_again_is_not_forgotten_for_its_age() {
    let mut world = World::default();
    world.observed.launches = vec![launch(1, None)];
    world.observed.launch_generation = 1;
    let later = after_minutes(4);
    let repeated = plan(&desired(1), &world.observed, later);
    let [again] = launches(&repeated.actions)[..] else {
        panic!("one launch expected: {repeated:?}");
    };
    assert_eq!((again.launch, again.decided_at), (1, later));
    world.observed.launches = vec![again.clone()];
    world.observed.launches[0].answer = launch(1, Some("i-1")).answer;
    let unlisted = plan(&desired(1), &world.observed, after_minutes(8));
    assert_eq!(unlisted.actions, [], "EC2 has answered four minutes ago");
}

#[test]
fn a_launch_that_nobody_answers_does_not_keep_a_pool_busy_for_ever() {
    let mut world = World::default();
    world.observed.launches = vec![launch(1, None)];
    let unwanted = plan(&desired(0), &world.observed, after_minutes(5));
    assert_eq!(unwanted.actions, [Action::Forget { launch: 1 }]);
    world.apply(&unwanted);
    let rest = plan(&desired(0), &world.observed, after_minutes(5));
    assert!(rest.is_released(), "{rest:?}");
}

#[test]
fn a_throttled_launch_waits_before_it_is_repeated() {
    let mut world = World::default();
    world.observed.launches = vec![launch(1, None)];
    let until = NOW.saturating_add(SignedDuration::from_secs(10)).unwrap();
    world.observed.hold_launches_until = Some(until);
    let held = plan(&desired(1), &world.observed, NOW);
    assert_eq!(held.actions, []);
    assert!(held.waits.contains(&Wait::Retry { until }));
    let over = plan(&desired(1), &world.observed, until);
    assert_eq!(launches(&over.actions).len(), 1);
}

#[test]
fn a_launch_in_a_zone_that_the_spec_dropped_is_not_repeated() {
    let mut world = World::default();
    world.observed.launches = vec![launch(1, None)];
    world.observed.launch_generation = 1;
    let mut elsewhere = desired(1);
    elsewhere.offerings.remove(0);
    let waiting = plan(&elsewhere, &world.observed, NOW);
    assert_eq!(waiting.actions, [], "it may have happened");
    let replaced = plan(&elsewhere, &world.observed, after_minutes(5));
    let again = launches(&replaced.actions)[0];
    assert!(again.offerings.iter().all(|o| o.zone == "us-east-1b"));
}

#[test]
fn a_smaller_pool_repeats_no_launch_that_could_be_one_too_many() {
    let mut world = World::default();
    world.observed.launches = vec![launch(1, None), launch(2, None)];
    let smaller = plan(&desired(1), &world.observed, NOW);
    assert_eq!(smaller.actions, [], "either of them may run");
    assert_eq!(smaller.waits, [Wait::Instances]);
}

#[test]
fn an_unanswered_launch_is_not_repeated_into_the_place_of_an_instance_that_did_not_end() {
    let mut world = World::default();
    world.observed.instances = vec![instance("i-1", 1, InstanceState::Running)];
    world.observed.ending = [("i-1".to_owned(), "surplus".to_owned())].into();
    world.observed.launches = vec![launch(2, None)];
    world.observed.launch_generation = 2;
    let first = plan(&desired(1), &world.observed, NOW);
    assert!(
        matches!(first.actions[0], Action::Terminate { .. }),
        "{first:?}"
    );
    world.observed.unended = ["i-1".to_owned()].into();
    let stuck = plan(&desired(1), &world.observed, NOW);
    assert_eq!(stuck.actions, [], "launch 2 would be the second instance");
    let room = plan(&desired(2), &world.observed, NOW);
    assert_eq!(launches(&room.actions)[0].launch, 2);
}

#[test]
fn a_reclaimed_instance_is_replaced_under_a_new_number() {
    let mut world = World::default();
    let mut dead = instance("i-1", 1, InstanceState::Terminated);
    dead.state_reason = Some("Server.SpotInstanceTermination".into());
    assert!(dead.was_reclaimed());
    world.observed.instances = vec![dead];
    world.observed.settle();
    let replaced = plan(&desired(1), &world.observed, NOW);
    let [again] = launches(&replaced.actions)[..] else {
        panic!("one launch expected: {replaced:?}");
    };
    assert_eq!((again.count, again.launch), (1, 2));
}

#[test]
fn a_stopped_instance_keeps_its_place_and_is_named() {
    let mut world = World::default();
    world.observed.instances = vec![instance("i-1", 1, InstanceState::Stopped)];
    world.observed.settle();
    let held = plan(&desired(1), &world.observed, NOW);
    assert_eq!(held.actions, []);
    assert_eq!(
        held.waits,
        [Wait::Stopped {
            ids: vec!["i-1".into()]
        }]
    );
}

#[test]
fn an_unavailable_offering_blocks_no_other_and_on_demand_comes_last() {
    let mut world = World::default();
    let mut tried = Vec::new();
    for _ in 0..3 {
        let next = plan(&desired(1), &world.observed, NOW);
        let asked = launches(&next.actions)[0].offerings.clone();
        let unavailable = &mut world.observed.unavailable;
        unavailable.refused(&asked[0], &refusal(ErrorClass::Capacity), &offerings(), NOW);
        tried.push(asked);
    }
    let [first, second, last] = &tried[..] else {
        panic!("{tried:?}")
    };
    assert_eq!(
        (&first[..], &second[..]),
        (&offerings()[..2], &offerings()[1..2])
    );
    assert_eq!((last.len(), last[0].market), (1, Market::OnDemand));
    let none_left = plan(&desired(1), &world.observed, NOW);
    assert_eq!(none_left.actions, []);
    assert!(matches!(none_left.waits[..], [Wait::Capacity { .. }]));
}

#[test]
fn a_pool_that_was_refused_for_its_spec_does_not_hammer_ec2() {
    let mut world = World::default();
    let until = NOW.saturating_add(SignedDuration::from_mins(10)).unwrap();
    world.observed.hold_launches_until = Some(until);
    let held = plan(&desired(1), &world.observed, NOW);
    assert_eq!(held.actions, []);
    assert_eq!(held.waits, [Wait::Retry { until }]);
    let over = plan(&desired(1), &world.observed, until);
    assert_eq!(launches(&over.actions).len(), 1);
}

#[test]
fn a_smaller_pool_terminates_on_demand_then_the_newest() {
    let mut world = World::default();
    let mut on_demand = instance("i-dear", 2, InstanceState::Running);
    on_demand.offering.market = Market::OnDemand;
    world.observed.instances = vec![
        instance("i-old", 1, InstanceState::Running),
        on_demand,
        instance("i-new", 4, InstanceState::Running),
    ];
    world.observed.settle();
    let smaller = plan(&desired(1), &world.observed, NOW);
    assert_eq!(terminated(&smaller.actions), ["i-dear", "i-new"]);
}

#[test]
fn a_deleted_pool_terminates_first_then_deletes_its_group_then_is_released() {
    let mut world = World::default();
    world.observed.instances = vec![instance("i-1", 1, InstanceState::Running)];
    world.observed.settle();
    let mut gone = desired(1);
    gone.deleted = true;
    let first = plan(&gone, &world.observed, NOW);
    assert_eq!(
        first.actions,
        [Action::Terminate {
            id: "i-1".into(),
            why: Disruption::PoolDeleted
        }]
    );
    world.apply(&first);
    let shutting_down = plan(&gone, &world.observed, NOW);
    assert_eq!(shutting_down.actions, []);
    assert!(!shutting_down.is_released());
    world.settle_states();
    let group = plan(&gone, &world.observed, NOW);
    assert!(matches!(group.actions[..], [Action::DeleteGroup { .. }]));
    world.apply(&group);
    assert!(plan(&gone, &world.observed, NOW).is_released());
}

#[test]
fn a_deleted_pool_waits_for_a_launch_that_nobody_answered() {
    let mut world = World::default();
    world.observed.launches = vec![launch(1, None)];
    let mut gone = desired(1);
    gone.deleted = true;
    let waiting = plan(&gone, &world.observed, NOW);
    assert_eq!(waiting.actions, [], "it must not launch, nor release");
    assert!(!waiting.is_released());
    let later = NOW.saturating_add(SignedDuration::from_mins(2)).unwrap();
    let forgotten = plan(&gone, &world.observed, later);
    assert_eq!(forgotten.actions, [Action::Forget { launch: 1 }]);
}

#[test]
fn a_lost_status_never_brings_a_launch_number_back() {
    let mut world = World::default();
    world.observed.instances = vec![instance("i-1", 41, InstanceState::Terminated)];
    world.observed.settle();
    let next = plan(&desired(1), &world.observed, NOW);
    assert_eq!(launches(&next.actions)[0].launch, 42);
}

#[test]
fn a_size_is_clamped_to_its_bounds() {
    let size = Size {
        minimum: 1,
        maximum: 4,
        idle: 2,
    };
    assert_eq!((size.target(0), size.target(1), size.target(9)), (2, 3, 4));
}

fn zones_of(plan: &provider_core::Plan) -> Vec<&str> {
    let launches = launches(&plan.actions).into_iter();
    let offerings = launches.flat_map(|launch| &launch.offerings);
    let zones: BTreeSet<&str> = offerings.map(|o| o.zone.as_str()).collect();
    zones.into_iter().collect()
}

#[test]
fn after_a_failure_each_launch_names_one_zone_and_the_next_one_another() {
    let mut world = World::default();
    assert_eq!(zones_of(&plan(&desired(1), &world.observed, NOW)).len(), 2);
    world.observed.launch_failures = 1;
    let first = plan(&desired(1), &world.observed, NOW);
    world.observed.launch_generation = 1;
    let next = plan(&desired(1), &world.observed, NOW);
    let [first, next] = [zones_of(&first), zones_of(&next)];
    assert_eq!((first.len(), next.len()), (1, 1));
    assert_ne!(first, next);
}

#[test]
fn no_launch_names_the_zone_that_is_down() {
    let mut world = World::default();
    for launch in 0..4 {
        world.observed.launch_generation = launch;
        world.observed.zones_down = Some(["us-east-1a".to_owned()].into());
        let healthy = plan(&desired(1), &world.observed, NOW);
        assert_eq!(zones_of(&healthy), ["us-east-1b"]);
    }
}
