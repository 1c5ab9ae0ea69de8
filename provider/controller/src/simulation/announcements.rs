//! Interruption notices and rebalance recommendations, and the provider's reaction.

use api::capacity::CapacityType;
use api::pool::{PoolRebalance, PoolReplace, PoolSize};
use provider_aws::Event;
use provider_core::{Notice, NoticeKind, ScheduledEvent};

use super::ours::Instances as _;
use super::store::Edit;
use super::world::{World, pool};

fn live(world: &World) -> Vec<String> {
    let earth = world.earth.lock();
    let live = earth.cloud.live().into_iter();
    live.map(|machine| machine.id.clone()).collect()
}

#[test]
fn an_interrupted_instance_is_replaced_elsewhere_before_it_goes_and_aws_ends_it() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.earth.lock().announce("i-0", NoticeKind::Interruption);
    world.turn();
    assert_eq!(live(&world), ["i-0", "i-1"], "in the same reconcile");
    assert_eq!(
        world.events("InterruptionWarning"),
        ["AWS takes i-0 back within two minutes"]
    );
    let zones: Vec<String> = {
        let earth = world.earth.lock();
        let live = earth.cloud.live().into_iter();
        live.map(|machine| machine.offering.zone.clone()).collect()
    };
    assert_ne!(zones[0], zones[1], "the interrupted offering rests");
    world.work_for(119);
    assert_eq!(world.earth.lock().calls_of("TerminateInstances"), 0);
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(world.earth.lock().calls_of("TerminateInstances"), 0);
    assert_eq!(live(&world), ["i-1"]);
}

#[test]
fn a_provider_that_starts_anew_remembers_what_was_announced() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.earth.lock().announce("i-0", NoticeKind::Interruption);
    world.turn();
    world.provider = super::provider::Provider::new(&world.earth);
    world.work_for(60);
    world.assert_lawful();
    assert_eq!(world.earth.lock().calls_of("TerminateInstances"), 0);
    assert_eq!(live(&world), ["i-0", "i-1"]);
    world.settle().unwrap();
}

#[test]
fn a_recommendation_replaces_only_where_the_spec_says_so() {
    for rebalance in [
        PoolRebalance::Ignore,
        PoolRebalance::Cordon,
        PoolRebalance::ReplaceFirst,
    ] {
        let mut world = World::new(pool(1));
        world.edit(Edit::Size(PoolSize {
            minimum: 1,
            maximum: 2,
            idle: 0,
        }));
        world.edit(Edit::Replace(PoolReplace {
            rebalance,
            ..PoolReplace::default()
        }));
        world.settle().unwrap();
        world.earth.lock().announce("i-0", NoticeKind::Rebalance);
        world.turn();
        world.settle().unwrap();
        world.assert_lawful();
        let replaced = rebalance == PoolRebalance::ReplaceFirst;
        let expected = if replaced { "i-1" } else { "i-0" };
        assert_eq!(live(&world), [expected], "{rebalance:?}");
        assert_eq!(world.events("RebalanceRecommendation").len(), 1);
    }
}

#[test]
fn a_drifted_instance_makes_way_when_its_successor_runs() {
    let mut world = World::new(pool(1));
    world.edit(Edit::Size(PoolSize {
        minimum: 1,
        maximum: 2,
        idle: 0,
    }));
    world.settle().unwrap();
    world.edit(Edit::UserData("#cloud-config\n# edited".into()));
    world.work_for(600);
    assert_eq!(live(&world), ["i-0"], "nobody asked for a replacement");
    world.edit(Edit::Replace(PoolReplace {
        drifted: true,
        ..PoolReplace::default()
    }));
    world.turn();
    assert_eq!(live(&world), ["i-0", "i-1"]);
    world.work_for(15);
    assert_eq!(live(&world), ["i-0", "i-1"], "the next one boots");
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(live(&world), ["i-1"]);
    let events = world.events("Terminated");
    assert_eq!(
        events,
        ["terminated i-0: it was launched from another spec"]
    );
}

/// An event comes once, and EC2 may be in trouble just then.
#[test]
fn a_warning_that_comes_while_ec2_does_not_answer_is_not_lost() {
    for is_new_process in [false, true] {
        let mut world = World::new(pool(1));
        world.settle().unwrap();
        world.earth.lock().faults.is_unreachable = true;
        if is_new_process {
            world.provider = super::provider::Provider::new(&world.earth);
        }
        world.earth.lock().announce("i-0", NoticeKind::Interruption);
        world.provider.look(&world.earth);
        world.earth.lock().faults.end();
        world.turn();
        assert_eq!(
            live(&world),
            ["i-0", "i-1"],
            "new process: {is_new_process}"
        );
        world.settle().unwrap();
        world.assert_lawful();
    }
}

#[test]
fn a_forged_warning_keeps_no_on_demand_instance_running() {
    let mut pool = pool(1);
    pool.spec.for_provider.capacity_type = CapacityType::OnDemand;
    let mut world = World::new(pool);
    world.settle().unwrap();
    {
        let mut earth = world.earth.lock();
        let at = earth.now;
        let kind = NoticeKind::Interruption;
        earth.queue.push(Event {
            instance_id: "i-0".into(),
            notice: Some(Notice { kind, at }),
        });
    }
    world.edit(Edit::EndsIn(Some(0)));
    world.work_for(10);
    assert_eq!(live(&world), [""; 0]);
    world.assert_lawful();
}

#[test]
fn an_instance_that_aws_is_to_retire_says_so_once_and_stays() {
    let mut world = World::new(pool(2));
    world.settle().unwrap();
    let retired = ScheduledEvent {
        code: "instance-retirement".to_owned(),
        not_before: "2026-12-08T06:00:00Z".parse().ok(),
    };
    world.earth.lock().cloud.machine("i-0").scheduled = Some(retired);
    // The provider asks for EC2's checks once a minute.
    world.work_for(120);
    world.settle().unwrap();
    let told = "AWS has scheduled instance-retirement for i-0, not before 2026-12-08T06:00:00Z";
    assert_eq!(world.events("ScheduledEvent"), [told]);
    let shown = world.observation().instances;
    let codes: Vec<Option<&str>> = shown
        .iter()
        .map(|i| i.scheduled_event.as_ref().map(|event| event.code.as_str()))
        .collect();
    assert_eq!(codes, [Some("instance-retirement"), None]);
    assert_eq!(live(&world), ["i-0", "i-1"]);

    world.earth.lock().cloud.machine("i-0").scheduled = None;
    world.work_for(120);
    let shown = world.observation().instances;
    assert!(shown.iter().all(|i| i.scheduled_event.is_none()));
}
