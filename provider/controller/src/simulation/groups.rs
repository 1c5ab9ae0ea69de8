//! The pool's own security group.

use api::condition::SYNCED;
use jiff::SignedDuration;
use memory_ec2::{Fault, Rule, YoungGroups};

use super::earth::{At, How, Stop};
use super::ours::{Collection as _, Instances as _};
use super::provider::{Behind, Provider};
use super::store::Edit;
use super::world::{World, pool};

fn rules(world: &World) -> Vec<Rule> {
    let earth = world.earth.lock();
    let groups: Vec<_> = earth.cloud.firewall.ours().collect();
    assert_eq!(groups.len(), 1);
    groups[0].rules.values().cloned().collect()
}

fn ssh(cidr: &str) -> Rule {
    Rule::Ssh(cidr.into())
}

#[test]
fn a_group_that_somebody_widened_is_narrowed_again() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    for rule in [ssh("0.0.0.0/0"), Rule::Web] {
        world.earth.lock().cloud.firewall.widen("sg-1", rule);
    }
    world.turn();
    assert_eq!(rules(&world), [ssh("203.0.113.0/24"), Rule::Members]);
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_network_that_the_spec_names_no_more_is_locked_out() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.edit(Edit::SshCidrs(vec!["198.51.100.0/24".into()]));
    world.turn();
    assert_eq!(rules(&world), [Rule::Members, ssh("198.51.100.0/24")]);
    world.edit(Edit::SshCidrs(vec![]));
    world.turn();
    assert_eq!(rules(&world), [Rule::Members]);
    world.assert_lawful();
}

#[test]
fn the_members_of_a_group_connect_as_long_as_the_spec_names_it() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    let bastion = "sg-0123456789abcdef0";
    world.edit(Edit::SshGroups(vec![bastion.into()]));
    world.turn();
    let open = [ssh("203.0.113.0/24"), Rule::Members];
    let [cidr, members] = open.clone();
    assert_eq!(
        rules(&world),
        [cidr, members, Rule::SshFrom(bastion.into())]
    );
    world.edit(Edit::SshGroups(vec![]));
    let added = Rule::SshFrom("sg-00000000".into());
    world.earth.lock().cloud.firewall.widen("sg-1", added);
    world.turn();
    assert_eq!(rules(&world), open);
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_crash_in_the_group_s_creation_leaves_one_group_with_its_rules() {
    for name in ["CreateSecurityGroup", "AuthorizeSecurityGroupIngress"] {
        for how in [How::DiesBefore, How::DiesAfter] {
            let mut world = World::new(pool(1));
            world.turn_until(name, how);
            world.settle().unwrap();
            world.assert_lawful();
            assert_eq!(rules(&world).len(), 2, "{how:?} {name}");
        }
    }
}

#[test]
fn a_group_that_is_not_listed_yet_is_created_and_announced_once() {
    let mut world = World::new(pool(1));
    world.turn();
    // The observer has made no look since.
    let at = At::Named("nothing");
    let stop = Some(Stop {
        at,
        how: How::Pauses,
    });
    world.wait(1);
    world.reconcile(Behind::default(), stop, |_| {});
    world.settle().unwrap();
    world.assert_lawful();
    assert_eq!(world.events("CreatedGroup").len(), 1);
    assert_eq!(rules(&world).len(), 2);
}

#[test]
fn a_lost_reply_of_a_revocation_does_not_keep_the_group_wide() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    let mut earth = world.earth.lock();
    earth.cloud.firewall.widen("sg-1", ssh("0.0.0.0/0"));
    let revoke = "RevokeSecurityGroupIngress";
    earth.faults.once.push_back((revoke, Fault::LostReply));
    drop(earth);
    world.work_for(60);
    assert_eq!(rules(&world).len(), 2);
    world.settle().unwrap();
}

#[test]
fn a_group_whose_tags_somebody_removed_is_named_with_the_next_step() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.earth.lock().cloud.firewall.groups[0].tags.clear();
    world.turn();
    let message = world.condition(SYNCED).message;
    for part in ["gpu-spot-pool-pool-uid exists in vpc-1", "delete it"] {
        assert!(message.contains(part), "{message}");
    }
    world.assert_lawful();
}

/// The API server takes such a network, and EC2 lists it in another form.
#[test]
fn a_network_with_bits_of_a_host_is_added_once() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    world.edit(Edit::SshCidrs(vec!["198.51.100.7/24".into()]));
    world.settle().unwrap();
    assert_eq!(rules(&world), [Rule::Members, ssh("198.51.100.0/24")]);
    world.assert_lawful();
}

#[test]
fn a_rule_that_somebody_took_away_first_is_no_error() {
    for is_default_vpc in [false, true] {
        take_a_rule_away_first(is_default_vpc);
    }
}

fn take_a_rule_away_first(is_default_vpc: bool) {
    let mut world = World::new(pool(1));
    world.earth.lock().cloud.firewall.is_default_vpc = is_default_vpc;
    world.settle().unwrap();
    let wide = Rule::Ssh("198.51.100.0/24".into());
    {
        let mut earth = world.earth.lock();
        let firewall = &mut earth.cloud.firewall;
        let group = firewall.ours().next().unwrap().id.clone();
        firewall.widen(&group, wide.clone());
    }
    world.turn_meanwhile("RevokeSecurityGroupIngress", |earth| {
        for group in &mut earth.lock().cloud.firewall.groups {
            group.rules.retain(|_, rule| *rule != wide);
        }
    });
    assert_eq!(world.earth.lock().calls_of("RevokeSecurityGroupIngress"), 1);
    assert_eq!(world.condition(SYNCED).status.as_str(), "True");
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_launch_that_does_not_find_the_new_group_yet_is_repeated_within_seconds() {
    for groups in [YoungGroups::RefusedInFront, YoungGroups::RefusedInside] {
        // A launch finds the group ten seconds later than the lists show it.
        for listed_after in [0, 20] {
            launch_into_a_new_group(groups, listed_after);
        }
    }
}

fn launch_into_a_new_group(groups: YoungGroups, listed_after: i64) {
    let mut world = World::new(pool(1));
    let mut earth = world.earth.lock();
    earth.cloud.habits.young_groups = groups;
    earth.cloud.pace.lists_group = SignedDuration::from_secs(listed_after);
    drop(earth);
    world.work_for(45);
    assert_eq!(
        world.earth.lock().cloud.live().len(),
        1,
        "five minutes late"
    );
    world.settle().unwrap();
    world.assert_lawful();
}

#[test]
fn a_list_that_lacks_the_group_does_not_take_it_from_the_status() {
    let mut world = World::new(pool(1));
    world.settle().unwrap();
    let named = |world: &World| world.observation().security_group_id;
    let group = named(&world);
    assert!(group.is_some());
    let mut earth = world.earth.lock();
    let until = earth.now + SignedDuration::from_mins(10);
    earth.cloud.firewall.groups[0].listed_from = until;
    drop(earth);
    world.always("CreateSecurityGroup", Fault::LostReply);
    // A new process does not remember that the group was created.
    world.provider = Provider::new(&world.earth);
    world.work_for(300);
    assert_eq!(named(&world), group);
    world.earth.lock().faults.end();
    world.wait(600);
    world.settle().unwrap();
    assert_eq!(named(&world), group);
    world.assert_lawful();
}
