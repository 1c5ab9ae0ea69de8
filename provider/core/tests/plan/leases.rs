//! Tests of leases: which instance a lease gets, and how the planner tells an instance of its
//! lease.

use provider_core::{Action, InstanceState, plan};

use super::world::{DIGEST, NOW, World, desired, instance, lease};

fn bound(actions: &[Action]) -> Vec<(&str, &str)> {
    let bound = actions.iter().filter_map(|action| match action {
        Action::Bind { lease, instance_id } => Some((lease.as_str(), instance_id.as_str())),
        _ => None,
    });
    bound.collect()
}

#[test]
fn an_instance_that_was_not_told_of_its_lease_is_told_again() {
    let mut world = World::default();
    world.observed.instances = vec![instance("i-1", 1, InstanceState::Running)];
    let id = "i-1".to_owned();
    world.observed.bindings.insert("alice".into(), id);
    let mut desired = desired(1);
    desired.leases = vec![lease("alice", false)];
    for (told, digest, is_told) in [
        (None, None, false),
        (Some("alice"), Some("before"), false),
        (Some("alice"), Some(DIGEST), true),
    ] {
        let own = &mut world.observed.instances[0];
        own.lease = told.map(str::to_owned);
        own.lease_digest = digest.map(str::to_owned);
        let next = plan(&desired, &world.observed, NOW);
        let expected = [("alice", "i-1")];
        let expected = if is_told { &[][..] } else { &expected };
        assert_eq!(bound(&next.actions), expected, "{told:?} {digest:?}");
    }
}

#[test]
fn an_instance_that_a_lease_had_is_given_to_no_other_whatever_the_status_says() {
    let mut world = World::default();
    let mut had = instance("i-had", 1, InstanceState::Running);
    had.lease = Some("alice".into());
    world.observed.instances = vec![had, instance("i-new", 2, InstanceState::Running)];
    let id = "i-new".to_owned();
    world.observed.bindings.insert("alice".into(), id);
    let mut desired = desired(3);
    desired.leases = vec![lease("alice", false), lease("bob", false)];
    let next = plan(&desired, &world.observed, NOW);
    assert_eq!(bound(&next.actions), [("alice", "i-new")], "and bob waits");
    desired.leases = vec![lease("alice", true), lease("bob", false)];
    let next = plan(&desired, &world.observed, NOW);
    let ended = next.actions.iter().filter_map(|action| match action {
        Action::Terminate { id, .. } => Some(id.as_str()),
        _ => None,
    });
    assert_eq!(ended.collect::<Vec<_>>(), ["i-had", "i-new"]);
}
