//! Replacements in pools whose leases come and go.

use jiff::SignedDuration;
use provider_core::{Action, Desired, Instance, InstanceState, Replace, Size, plan};

use super::world::{DIGEST, NOW, World, desired, instance, lease};

/// A pool of this size that replaces drifted instances.
fn leasing(minimum: u32, maximum: u32, idle: u32) -> Desired {
    Desired {
        size: Size {
            minimum,
            maximum,
            idle,
        },
        replace: Replace {
            drifted: true,
            ..Replace::default()
        },
        ..desired(0)
    }
}

fn leased(id: &str, launch: u64, uid: &str, state: InstanceState) -> Instance {
    Instance {
        lease: Some(uid.into()),
        lease_digest: Some(DIGEST.into()),
        ..instance(id, launch, state)
    }
}

fn drifted(id: &str, launch: u64) -> Instance {
    Instance {
        generation: Some("another".into()),
        ..instance(id, launch, InstanceState::Running)
    }
}

/// A world some minutes after the launch of its instances.
fn later() -> World {
    World {
        now: NOW.saturating_add(SignedDuration::from_mins(5)).unwrap(),
        ..World::default()
    }
}

#[test]
fn instances_of_leases_that_start_and_end_delay_no_replacement() {
    let mut world = later();
    world.observed.instances = vec![
        leased("i-1", 1, "a", InstanceState::Running),
        drifted("i-2", 2),
        instance("i-3", 3, InstanceState::Pending),
        leased("i-4", 4, "c", InstanceState::ShuttingDown),
    ];
    world.observed.settle();
    let mut pool = leasing(0, 10, 1);
    pool.leases = vec![lease("a", false), lease("b", false)];
    let planned = plan(&pool, &world.observed, world.now);
    let launches = planned.actions.iter().filter(|one| asked(one) > 0);
    assert_eq!(launches.count(), 1, "{planned:?}");
}

#[test]
fn no_more_are_replaced_at_once_than_the_pool_says() {
    let mut world = later();
    world.observed.instances = vec![
        drifted("i-1", 1),
        drifted("i-2", 2),
        instance("i-3", 3, InstanceState::Pending),
        instance("i-4", 4, InstanceState::ShuttingDown),
    ];
    world.observed.settle();
    for (at_once, more) in [(1, 0), (2, 1), (3, 2)] {
        let mut pool = leasing(0, 3, 3);
        pool.replace.at_once = at_once;
        let planned = plan(&pool, &world.observed, world.now);
        let count: u32 = planned.actions.iter().map(asked).sum();
        assert_eq!(count, more, "{at_once} at once: {planned:?}");
    }
}

/// How many instances an action asks EC2 for.
fn asked(action: &Action) -> u32 {
    match action {
        Action::Launch(launch) => launch.count,
        _ => 0,
    }
}

/// In each round a lease ends and another one begins, so there is always an instance that starts
/// and one that shuts down.
#[test]
fn a_drifted_instance_goes_although_leases_come_and_go_all_the_time() {
    let mut world = World::default();
    world.observed.instances = vec![
        leased("i-1", 1, "lease-0", InstanceState::Running),
        instance("i-2", 2, InstanceState::Running),
        drifted("i-3", 3),
    ];
    world.observed.settle();
    let mut pool = leasing(0, 6, 2);
    pool.leases = vec![lease("lease-0", false)];
    for round in 1..=20 {
        for before in &mut pool.leases {
            before.is_over = true;
        }
        let ids: Vec<String> = live(&world).map(|i| i.id.clone()).collect();
        let bound = &world.observed.bindings;
        pool.leases
            .retain(|l| bound.get(&l.uid).is_some_and(|id| ids.contains(id)));
        pool.leases.push(lease(&format!("lease-{round}"), false));
        let before = world.observed.instances.clone();
        let next = plan(&pool, &world.observed, world.now);
        world.apply(&next);
        finish_what_was_begun(&mut world, &before);
        let is_drifted = |i: &Instance| i.generation.as_deref() == Some("another");
        if !live(&world).any(is_drifted) {
            return;
        }
        world.now = world
            .now
            .saturating_add(SignedDuration::from_mins(1))
            .unwrap();
    }
    panic!("never replaced: {:?}", world.observed.instances);
}

fn live(world: &World) -> impl Iterator<Item = &Instance> {
    world
        .observed
        .instances
        .iter()
        .filter(|i| i.state.is_live())
}

/// Instances that started or shut down before are done with it.
fn finish_what_was_begun(world: &mut World, before: &[Instance]) {
    let state_of = |id: &str| before.iter().find(|i| i.id == id).map(|i| i.state);
    for instance in &mut world.observed.instances {
        instance.state = match (state_of(&instance.id), instance.state) {
            (Some(InstanceState::Pending), InstanceState::Pending) => InstanceState::Running,
            (Some(InstanceState::ShuttingDown), InstanceState::ShuttingDown) => {
                InstanceState::Terminated
            }
            (_, state) => state,
        };
    }
    world.observed.settle();
}
