//! The security group of a pool, and its rules.

use provider_core::{Action, Group, GroupRules, SecurityGroups, plan};

use super::world::{NOW, World, desired};

#[test]
fn a_group_that_somebody_widened_is_narrowed_again() {
    let mut world = World::default();
    world.observed.groups[0]
        .rules
        .ssh_cidrs
        .insert("0.0.0.0/0".into());
    world.observed.groups[0]
        .rules
        .ssh_groups
        .insert("sg-theirs".into());
    world.observed.groups[0]
        .foreign_rule_ids
        .insert("sgr-1".into());
    let narrowed = plan(&desired(0), &world.observed, NOW);
    let [
        Action::SetGroupRules {
            authorize,
            revoke,
            revoke_ids,
            ..
        },
    ] = &narrowed.actions[..]
    else {
        panic!("{narrowed:?}");
    };
    assert!(authorize.is_empty());
    assert!(revoke.ssh_cidrs.contains("0.0.0.0/0"));
    assert!(revoke.ssh_groups.contains("sg-theirs"));
    assert!(revoke_ids.contains("sgr-1"));
}

#[test]
fn a_pool_opens_to_the_security_groups_of_its_spec_and_to_no_others() {
    let mut world = World::default();
    world.observed.groups[0]
        .rules
        .ssh_groups
        .insert("sg-before".into());
    let mut opened = desired(0);
    let SecurityGroups::Owned { rules, .. } = &mut opened.groups else {
        panic!("the pool owns its group");
    };
    rules.ssh_groups.insert("sg-bastion".into());
    let changes = plan(&opened, &world.observed, NOW).actions;
    let [
        Action::SetGroupRules {
            authorize,
            revoke,
            revoke_ids,
            ..
        },
    ] = &changes[..]
    else {
        panic!("{changes:?}");
    };
    let only = |id: &str| GroupRules {
        ssh_groups: [id.to_owned()].into(),
        ..GroupRules::default()
    };
    assert_eq!(
        (authorize, revoke),
        (&only("sg-bastion"), &only("sg-before"))
    );
    assert!(revoke_ids.is_empty());
}

#[test]
fn a_pool_in_groups_of_others_owns_none() {
    let mut world = World::default();
    world.observed.groups.clear();
    let mut given = desired(1);
    given.groups = SecurityGroups::Given(vec!["sg-theirs".into()]);
    let actions = plan(&given, &world.observed, NOW).actions;
    assert!(matches!(actions[..], [Action::Launch(_)]));
}

#[test]
fn a_group_rule_set_subtracts() {
    let a = GroupRules {
        ssh_cidrs: ["10.0.0.0/8".to_owned()].into(),
        ssh_groups: ["sg-bastion".to_owned()].into(),
        members: true,
    };
    assert!(a.without(&a).is_empty());
    assert_eq!(a.without(&GroupRules::default()), a);
    let group = Group {
        id: "sg-1".into(),
        pool_uid: String::new(),
        vpc_id: String::new(),
        rules: a,
        foreign_rule_ids: [].into(),
    };
    assert!(group.rules.members);
}
