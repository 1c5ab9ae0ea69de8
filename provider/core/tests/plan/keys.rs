//! Tests of public keys: which tags the planner writes.

use std::collections::BTreeMap;

use provider_core::{Action, InstanceState, plan};

use super::world::{NOW, World, desired, instance};

fn tags(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = of.iter().map(|(tag, key)| ((*tag).into(), (*key).into()));
    owned.collect()
}

fn written(actions: &[Action]) -> Vec<(&str, &BTreeMap<String, String>)> {
    let written = actions.iter().filter_map(|action| match action {
        Action::Authorize { instance_id, tags } => Some((instance_id.as_str(), tags)),
        _ => None,
    });
    written.collect()
}

#[test]
fn only_tags_that_differ_are_written_and_only_to_live_instances() {
    let mut world = World::default();
    let mut running = instance("i-1", 1, InstanceState::Running);
    running.authorized_keys = tags(&[("key-1", "alice"), ("key-2", "bob"), ("key-3", "carol")]);
    world.observed.instances = vec![running, instance("i-2", 2, InstanceState::ShuttingDown)];
    let mut desired = desired(1);
    let next = plan(&desired, &world.observed, NOW);
    assert!(
        written(&next.actions).is_empty(),
        "the pool decides nothing about keys"
    );
    desired.authorized_keys = Some(tags(&[("key-1", "alice"), ("key-2", "carol")]));
    let next = plan(&desired, &world.observed, NOW);
    let expected = tags(&[("key-2", "carol"), ("key-3", "")]);
    assert_eq!(written(&next.actions), [("i-1", &expected)]);
    desired.authorized_keys = Some(BTreeMap::new());
    let next = plan(&desired, &world.observed, NOW);
    let expected = tags(&[("key-1", ""), ("key-2", ""), ("key-3", "")]);
    assert_eq!(written(&next.actions), [("i-1", &expected)]);
}
