//! Tests of the validation: the error of an invalid spec names the field, and a valid spec gives
//! the pool that its author asked for.

use std::collections::BTreeMap;

use api::managed::{ManagementAction, ProviderConfigReference};
use api::pool::{PoolImage, PoolLeases, PoolSize, PoolSsh, SpotPoolSpec};
use jiff::Timestamp;

use super::*;
use crate::seals::Marks;

/// The tags of the pool under test.
const MARKS: Marks<'static> = Marks {
    cluster: "cluster",
    pool: "first-uid",
};

fn pool() -> SpotPool {
    let spec = SpotPoolSpec {
        write_connection_secret_to_ref: None,
        management_policies: vec![ManagementAction::All],
        provider_config_ref: ProviderConfigReference::default(),
        for_provider: SpotPoolParameters {
            read_console: false,
            home: None,
            region: "us-east-1".into(),
            size: PoolSize {
                minimum: 1,
                maximum: 3,
                idle: 2,
            },
            capacity_type: CapacityType::Spot,
            instance_types: vec!["g5.xlarge".into(), "g4dn.xlarge".into()],
            type_preference: PoolTypePreference::Ordered,
            spread: None,
            fallback: None,
            replace: None,
            leases: None,
            ends_at: None,
            zones: None,
            subnet_ids: None,
            image: PoolImage {
                id: "ami-0123456789abcdef0".into(),
            },
            user_data: None,
            security_group_ids: None,
            ssh: None,
            authorized_keys: None,
            root_volume_size_gib: Some(100),
            kms_key_id: None,
            iam_instance_profile: Some("gpu".into()),
            tags: [("team".to_owned(), "vision".to_owned())].into(),
        },
    };
    let mut pool = SpotPool::new("alice", spec);
    pool.metadata.namespace = Some("team-vision".into());
    pool.metadata.uid = Some("pool-uid".into());
    pool
}

fn subnet(id: &str, zone: &str, vpc: &str) -> Subnet {
    Subnet {
        id: id.into(),
        zone: zone.into(),
        vpc_id: vpc.into(),
    }
}

fn facts() -> Facts {
    let zones = |zones: &[&str]| zones.iter().map(|z| (*z).to_owned()).collect();
    Facts {
        zones_by_type: BTreeMap::from([
            ("g5.xlarge".to_owned(), zones(&["us-east-1a"])),
            (
                "g4dn.xlarge".to_owned(),
                zones(&["us-east-1a", "us-east-1b"]),
            ),
        ]),
        subnets: vec![
            subnet("subnet-b", "us-east-1b", "vpc-1"),
            subnet("subnet-a", "us-east-1a", "vpc-1"),
        ],
        image: Some(Image {
            id: "ami-0123456789abcdef0".into(),
            root_device: "/dev/sda1".into(),
            deprecated_at: None,
        }),
    }
}

/// The error of the valid spec and facts after this edit.
fn refusal(edit: impl FnOnce(&mut SpotPoolParameters, &mut Facts)) -> Invalid {
    let (mut pool, mut facts) = (pool(), facts());
    edit(&mut pool.spec.for_provider, &mut facts);
    validate(&pool, facts, MARKS).unwrap_err()
}

fn valid(edit: impl FnOnce(&mut SpotPoolParameters)) -> Valid {
    let mut pool = pool();
    edit(&mut pool.spec.for_provider);
    validate(&pool, facts(), MARKS).unwrap()
}

fn shown(valid: &Valid) -> Vec<String> {
    let offerings = valid.desired.offerings.iter();
    offerings.map(ToString::to_string).collect()
}

#[test]
fn user_data_that_ec2_would_refuse_is_refused_by_its_field() {
    let limit = valid(|spec| spec.user_data = Some("#".repeat(USER_DATA_LIMIT)));
    assert!(limit.template.user_data.is_some());
    let invalid = refusal(|spec, _| spec.user_data = Some("#".repeat(USER_DATA_LIMIT + 1)));
    assert_eq!(
        invalid.to_string(),
        "spec.forProvider.userData: 16385 bytes; EC2 takes at most 16384"
    );
}

#[test]
fn an_image_of_another_account_or_region_is_refused_by_its_field() {
    let invalid = refusal(|_, facts| facts.image = None);
    assert_eq!(invalid.field, "image.id");
    for part in [
        "ami-0123456789abcdef0",
        "us-east-1",
        "shared",
        "allowed AMIs",
    ] {
        assert!(invalid.problem.contains(part), "{invalid}");
    }
}

#[test]
fn a_subnet_that_does_not_exist_is_refused_by_its_position() {
    let ids = ["subnet-a", "subnet-gone"].map(str::to_owned);
    let invalid = refusal(|spec, _| spec.subnet_ids = Some(ids.into()));
    assert_eq!(
        invalid.to_string(),
        "spec.forProvider.subnetIds[1]: subnet-gone does not exist in us-east-1"
    );
}

#[test]
fn a_region_without_a_default_vpc_asks_for_subnets() {
    let invalid = refusal(|_, facts| facts.subnets.clear());
    assert_eq!(
        invalid.to_string(),
        "spec.forProvider.subnetIds: us-east-1 has no default VPC: name subnets"
    );
}

#[test]
fn subnets_of_two_vpcs_are_refused_and_both_are_named() {
    let invalid = refusal(|_, facts| facts.subnets[0].vpc_id = "vpc-2".into());
    assert_eq!(invalid.field, "subnetIds");
    for vpc in ["vpc-1", "vpc-2"] {
        assert!(invalid.problem.contains(vpc), "{invalid}");
    }
}

#[test]
fn a_zone_without_a_subnet_is_refused_by_its_position() {
    let zones = ["us-east-1a", "us-east-1z"].map(str::to_owned);
    let invalid = refusal(|spec, _| spec.zones = Some(zones.into()));
    assert_eq!(
        invalid.to_string(),
        "spec.forProvider.zones[1]: us-east-1z has no default subnet"
    );
}

#[test]
fn a_type_that_ec2_does_not_have_is_refused_by_its_position() {
    let types = ["g5.xlarge", "g99.huge"].map(str::to_owned);
    let invalid = refusal(|spec, facts| {
        spec.instance_types = types.into();
        facts.zones_by_type.clear();
        facts
            .zones_by_type
            .insert("g5.xlarge".into(), BTreeSet::new());
    });
    assert_eq!(
        invalid.to_string(),
        "spec.forProvider.instanceTypes[1]: EC2 has no type g99.huge in us-east-1"
    );
}

#[test]
fn a_type_that_is_sold_elsewhere_is_refused_with_the_zones_that_were_looked_at() {
    let invalid = refusal(|spec, _| {
        spec.instance_types = vec!["g5.xlarge".into()];
        spec.zones = Some(vec!["us-east-1b".into()]);
    });
    assert_eq!(invalid.field, "instanceTypes[0]");
    for part in ["g5.xlarge", "us-east-1b"] {
        assert!(invalid.problem.contains(part), "{invalid}");
    }
}

#[test]
fn one_type_that_is_not_sold_does_not_keep_the_others_from_being_launched() {
    let types = ["g99.huge", "g4dn.xlarge"].map(str::to_owned);
    let some = valid(|spec| spec.instance_types = types.into());
    assert_eq!(shown(&some).len(), 2);
}

#[test]
fn offerings_are_tried_by_market_then_type_then_zone() {
    let all = valid(|spec| spec.capacity_type = CapacityType::SpotWithFallback);
    assert_eq!(
        shown(&all),
        [
            "g5.xlarge spot in us-east-1a",
            "g4dn.xlarge spot in us-east-1a",
            "g4dn.xlarge spot in us-east-1b",
            "g5.xlarge on-demand in us-east-1a",
            "g4dn.xlarge on-demand in us-east-1a",
            "g4dn.xlarge on-demand in us-east-1b",
        ]
    );
}

#[test]
fn a_pool_without_ssh_is_open_to_its_members_alone() {
    let SecurityGroups::Owned { vpc_id, rules } = valid(|_| {}).desired.groups else {
        panic!("the provider owns the group");
    };
    assert_eq!(vpc_id, "vpc-1");
    assert!(rules.members && rules.ssh_cidrs.is_empty() && rules.ssh_groups.is_empty());
    let cidrs = vec!["203.0.113.0/24".to_owned()];
    let groups = vec!["sg-0123456789abcdef0".to_owned()];
    let open = valid(|spec| {
        spec.ssh = Some(PoolSsh {
            allowed_cidrs: cidrs.clone(),
            allowed_security_group_ids: groups.clone(),
        });
    });
    let SecurityGroups::Owned { rules, .. } = open.desired.groups else {
        panic!("the provider owns the group");
    };
    assert_eq!(rules.ssh_cidrs, cidrs.into_iter().collect());
    assert_eq!(rules.ssh_groups, groups.into_iter().collect());
}

#[test]
fn a_launch_asks_for_what_the_spec_says_in_its_own_subnet() {
    let valid = valid(|_| {});
    let launch = Launch {
        launch: 7,
        count: 2,
        generation: "0123".into(),
        offerings: vec![Offering {
            instance_type: "g4dn.xlarge".into(),
            zone: "us-east-1b".into(),
            market: Market::Spot,
        }],
        decided_at: Timestamp::UNIX_EPOCH,
        failures: 0,
        answer: None,
    };
    let request = valid.request(&launch);
    assert_eq!(request.places[0].subnet_id, "subnet-b");
    assert_eq!(request.token, client_token("pool-uid", &launch));
    let template = valid.template("0123", vec!["sg-1".into()]);
    assert_eq!(request.template, template.name);
    assert_eq!(template.root_volume_size_gib, Some(100));
    assert_eq!(template.iam_instance_profile.as_deref(), Some("gpu"));
    assert_eq!(template.tags[tags::POOL_UID], "first-uid");
    for (key, value) in [
        (tags::GENERATION, "0123"),
        (tags::LAUNCH, "7"),
        (tags::CLUSTER, "cluster"),
        (tags::POOL_UID, "first-uid"),
        (tags::POOL, "team-vision/alice"),
        (tags::NAME, "alice"),
        ("team", "vision"),
    ] {
        assert_eq!(
            request.tags.get(key).map(String::as_str),
            Some(value),
            "{key}"
        );
    }
}

#[test]
fn no_tag_of_a_spec_changes_the_owner_of_an_instance() {
    let mut pool = pool();
    let tags = &mut pool.spec.for_provider.tags;
    tags.insert(tags::POOL_UID.into(), "other".into());
    tags.insert(tags::CLUSTER.into(), "other".into());
    let tags = pool_tags(&pool, MARKS);
    assert_eq!(tags[tags::POOL_UID], "first-uid");
    assert_eq!(tags[tags::CLUSTER], "cluster");
}

#[test]
fn a_deleted_pool_wants_nothing_whatever_its_spec_says() {
    let mut pool = pool();
    pool.spec.for_provider.instance_types.clear();
    let desired = deleted(&pool, MARKS);
    assert!(desired.deleted && desired.offerings.is_empty());
}

#[test]
fn only_settings_that_an_instance_cannot_change_make_another_generation() {
    let generation = |change: fn(&mut SpotPoolParameters)| {
        valid(change).desired.generation(&["sg-1".to_owned()])
    };
    let first = generation(|_| {});
    for change in [
        (|spec| spec.user_data = Some("#cloud-config".into())) as fn(&mut SpotPoolParameters),
        |spec| spec.root_volume_size_gib = None,
        |spec| spec.kms_key_id = Some("alias/gpu".into()),
        |spec| spec.iam_instance_profile = None,
    ] {
        assert_ne!(generation(change), first);
    }
    for change in [
        (|spec| spec.size.maximum = 9) as fn(&mut SpotPoolParameters),
        |spec| spec.tags.clear(),
        |spec| spec.instance_types.truncate(1),
    ] {
        assert_eq!(generation(change), first);
    }
}

#[test]
fn tags_that_an_instance_cannot_read_are_named_before_a_launch_fails() {
    let mut leasing = pool();
    let spec = &mut leasing.spec.for_provider;
    spec.tags = [("team/cost".to_owned(), "1".to_owned())].into();
    assert!(validate(&leasing, facts(), MARKS).is_ok());
    leasing.spec.for_provider.leases = Some(PoolLeases::default());
    let invalid = validate(&leasing, facts(), MARKS).unwrap_err();
    assert_eq!(invalid.field, "tags[team/cost]");
    let many = (0..36).map(|n| (format!("tag-{n}"), String::new()));
    leasing.spec.for_provider.tags = many.collect();
    let invalid = validate(&leasing, facts(), MARKS).unwrap_err();
    assert!(invalid.problem.contains("at most 35"), "{invalid}");
    leasing.spec.for_provider.tags.pop_first();
    let valid = validate(&leasing, facts(), MARKS).unwrap();
    let template = valid.template("g", Vec::new());
    assert!(
        template.shows_tags,
        "instances learn who has them from their tags"
    );
}

#[test]
fn leased_instances_do_not_reach_each_other() {
    for (leases, are_connected) in [(None, true), (Some(PoolLeases::default()), false)] {
        let mut pool = pool();
        pool.spec.for_provider.leases = leases;
        let valid = validate(&pool, facts(), MARKS).unwrap();
        let SecurityGroups::Owned { rules, .. } = valid.desired.groups else {
            panic!("no group of its own");
        };
        assert_eq!(rules.members, are_connected);
    }
}
