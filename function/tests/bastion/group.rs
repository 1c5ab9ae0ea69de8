//! The security group of the bastion, which may connect to machines on EC2.

use serde_json::{Value, json};

use crate::VERSIONS;
use crate::case::{self, answer};
use crate::{GROUP, OWN, allowed, allowed_groups, answered, group, networks, only, request};

#[test]
fn the_security_group_of_the_bastion_reaches_machines_and_nothing_else_changes() {
    for version in VERSIONS {
        let before = case::resources(&answered("ready", version, &Value::Null));
        let response = answered("ready", version, &group());
        assert_eq!(allowed(&response), json!([OWN]), "{version}");
        assert_eq!(allowed_groups(&response), json!([GROUP]), "{version}");
        let mut after = case::resources(&response);
        let pool = after.get_mut("pool").unwrap();
        let ssh = pool.pointer_mut("/spec/forProvider/ssh").unwrap();
        *ssh = json!({"allowedCidrs": [OWN]});
        assert_eq!(after, before, "{version}");
    }
    let before = case::resources(&answered("on-demand-ready", "v2", &Value::Null));
    let mut after = case::resources(&answered("on-demand-ready", "v2", &group()));
    let rule = after.remove(&format!("ssh-{GROUP}")).unwrap();
    assert_eq!(after, before);
    assert_eq!(rule["kind"], "SecurityGroupRule");
    assert_eq!(
        rule["spec"]["forProvider"],
        json!({
            "region": "us-east-1",
            "securityGroupIdSelector": {"matchControllerRef": true},
            "type": "ingress",
            "protocol": "tcp",
            "fromPort": 22,
            "toPort": 22,
            "sourceSecurityGroupId": GROUP,
        })
    );
    // The bastion of pods is another one.
    let pods = case::resources(&answered("cluster-ready", "v3", &group()));
    let before = case::resources(&answered("cluster-ready", "v3", &Value::Null));
    assert_eq!(pods, before);
}

/// A change of a claim for which it is refused.
fn refused() -> Value {
    json!({"observed": {"composite": {"resource": {"spec": {"parameters": {
        "ssh": {"publicKeys": ["no key"]}
    }}}}}})
}

/// Without the policy's group, the rule of its members goes. A claim that is refused keeps what is
/// observed, but for what the policy closes.
#[test]
fn a_machine_is_closed_to_a_group_that_the_policy_no_longer_names() {
    let pool = json!({"ssh": {"allowedCidrs": [OWN], "allowedSecurityGroupIds": [GROUP]}});
    let observed = json!({"observed": {"resources": {
        "pool": {"resource": {"spec": {"forProvider": pool}}},
    }}});
    for (bastion, change) in [
        (Value::Null, json!({})),
        (networks(), json!({})),
        (only(networks()), json!({})),
        (only(networks()), refused()),
    ] {
        for version in VERSIONS {
            let mut machine = request("ready", version, &bastion);
            case::merge(&mut machine, &observed);
            case::merge(&mut machine, &change);
            let response = answer(&case::parse(machine));
            let groups = allowed_groups(&response);
            assert_eq!(groups, Value::Null, "{version} {bastion} {change}");
        }
        let name = format!("ssh-{GROUP}");
        let mut rules = request("on-demand-ready", "v2", &bastion);
        let rule = rules["observed"]["resources"]["egress"].clone();
        rules["observed"]["resources"][&name] = rule;
        case::merge(&mut rules, &change);
        let rules = case::resources(&answer(&case::parse(rules)));
        assert!(!rules.contains_key(&name), "{bastion} {change}");
    }
}

/// A claim that is refused for another reason keeps no network either.
#[test]
fn the_group_of_the_bastion_stays_open_where_nobody_else_connects() {
    let pool = json!({"ssh": {
        "allowedCidrs": [OWN], "allowedSecurityGroupIds": ["sg-aaaaaaaa"],
    }});
    let observed = json!({"observed": {"resources": {
        "pool": {"resource": {"spec": {"forProvider": pool}}},
    }}});
    for change in [json!({}), refused()] {
        for version in VERSIONS {
            let mut machine = request("ready", version, &only(group()));
            case::merge(&mut machine, &observed);
            case::merge(&mut machine, &change);
            let response = answer(&case::parse(machine));
            assert_eq!(allowed(&response), json!([]), "{version} {change}");
            let groups = allowed_groups(&response);
            assert_eq!(groups, json!([GROUP]), "{version} {change}");
        }
        let mut rules = request("on-demand-ready", "v2", &only(group()));
        let name = format!("ssh-{GROUP}");
        let rule = rules["observed"]["resources"]["egress"].clone();
        rules["observed"]["resources"][&name] = rule;
        case::merge(&mut rules, &change);
        let rules = case::resources(&answer(&case::parse(rules)));
        let open: Vec<_> = rules.keys().filter(|key| key.starts_with("ssh-")).collect();
        assert_eq!(open, [&name], "{change}");
    }
}

/// EC2 refuses a rule about a group of another region, and the rules of the same call with it.
#[test]
fn a_machine_in_another_region_gets_no_rule_about_the_group() {
    let mut request = request("ready", "v3", &only(group()));
    let elsewhere = json!({
        "input": {"allowedRegions": ["eu-west-1"]},
        "observed": {"resources": {"pool": {"resource": {"spec": {"forProvider": {
            "region": "us-east-1", "ssh": {"allowedCidrs": [OWN]}
        }}}}}},
    });
    case::merge(&mut request, &elsewhere);
    let response = answer(&case::parse(request));
    let config = case::condition(&response, "ConfigResolved");
    assert!(!config.message().is_empty(), "the region is not allowed");
    assert_eq!(allowed(&response), json!([]));
    assert_eq!(allowed_groups(&response), Value::Null);
}
