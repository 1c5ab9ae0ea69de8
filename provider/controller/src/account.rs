//! Whether the provider looks where a pool's resources are: in their account, and by the tags of
//! their control plane. Pure.
//!
//! Credentials of another account find nothing, and so does another identity of the control plane.
//! Without this check the provider would take that for the loss of every instance. The provider would
//! launch all of them again, and the first ones would run on without a pool.

use api::pool::SpotPoolObservation;
use provider_core::InstanceState;

use crate::access::Origin;
use crate::identity;

/// How many resources a message names.
const NAMED: usize = 3;

/// The account and the identity that the provider works with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The account that the credentials belong to.
    pub(crate) account: &'a str,
    /// The control plane's identity.
    pub(crate) identity: &'a str,
}

/// Why the provider must not touch what a pool has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// The condition's reason.
    pub(crate) reason: &'static str,
    /// Both places, some of the resources, and the next step.
    pub(crate) message: String,
}

impl Place<'_> {
    /// Checks that a pool's resources are in this place. A pool without resources may be anywhere.
    pub(crate) fn check(
        self,
        shown: &SpotPoolObservation,
        origin: &Origin,
    ) -> Result<(), Elsewhere> {
        let resources = resources(shown);
        if resources.is_empty() {
            return Ok(());
        }
        let resources = listed(&resources);
        let differs = |then: &Option<String>, now: &str| {
            let then = then.clone()?;
            (then != now).then_some(then)
        };
        if let Some(then) = differs(&shown.account, self.account) {
            let (now, config) = (self.account, origin.config());
            return Err(Elsewhere {
                reason: "AccountChanged",
                message: format!(
                    "{config} signs for the AWS account {now}, but this pool has {resources} in \
                     the account {then}: nothing is launched, ended or released. Give {config} \
                     credentials of the account {then} again, or name a configuration of that \
                     account in spec.providerConfigRef; for instances in the account {now} make \
                     another pool"
                ),
            });
        }
        if let Some(then) = differs(&shown.identity, self.identity) {
            let (now, map) = (self.identity, identity::NAME);
            return Err(Elsewhere {
                reason: "IdentityChanged",
                message: format!(
                    "the control plane's identity is {now}, but this pool has {resources} with \
                     the identity {then}: nothing is launched, ended or released. Set \
                     data.identity of ConfigMap {map} in the provider's namespace to {then}, and \
                     restart the provider"
                ),
            });
        }
        Ok(())
    }
}

/// Whether a status shows no resources.
pub(crate) fn is_empty(shown: &SpotPoolObservation) -> bool {
    resources(shown).is_empty()
}

/// The names of the resources in a status, for a message. The most expensive ones come first.
fn resources(shown: &SpotPoolObservation) -> Vec<String> {
    let is_gone = |state: &str| state == InstanceState::Terminated.as_str();
    let instances = shown.instances.iter().filter(|i| !is_gone(&i.state));
    let instances = instances.map(|i| i.id.clone());
    let launches = shown.launches.iter();
    let launches = launches.map(|launch| format!("launch {}", launch.launch));
    let home = shown.home.iter().map(|_| "a home volume".to_owned());
    let group = shown.security_group_id.iter();
    let group = group.map(|id| format!("security group {id}"));
    let templates = shown.launch_templates.iter();
    let templates = templates.map(|generation| format!("launch template {generation}"));
    let named = instances.chain(launches).chain(home).chain(group);
    named.chain(templates).collect()
}

fn listed(resources: &[String]) -> String {
    let (named, others) = resources.split_at(resources.len().min(NAMED));
    let named = named.join(", ");
    match others.len() {
        0 => named,
        others => format!("{named} and {others} more"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HERE: Place<'_> = Place {
        account: "111111111111",
        identity: "uid-1",
    };

    /// The reason for which the provider would not touch a pool with this status.
    fn refused(status: Value) -> Option<Elsewhere> {
        let shown: SpotPoolObservation = serde_json::from_value(status).unwrap();
        HERE.check(&shown, &Origin::for_tests()).err()
    }

    fn instance(id: &str, state: &str) -> Value {
        json!({
            "id": id, "launch": 1, "instanceType": "g5.xlarge", "zone": "us-east-1a",
            "capacityType": "Spot", "imageId": "ami-1", "state": state,
        })
    }

    #[test]
    fn everything_that_a_pool_can_have_binds_it_to_its_account() {
        let home = json!({"number": 1, "zone": "us-east-1a", "sizeGiB": 10, "state": "Attached"});
        let launch = json!({
            "launch": 7, "count": 1, "generation": "abc", "capacityType": "Spot",
            "offerings": [], "decidedAt": "2026-11-01T10:00:00Z", "failures": 0,
        });
        for (resource, named) in [
            (json!({"instances": [instance("i-1", "running")]}), "i-1"),
            (json!({"instances": [instance("i-1", "stopped")]}), "i-1"),
            (json!({"launches": [launch]}), "launch 7"),
            (json!({"home": home}), "a home volume"),
            (json!({"securityGroupId": "sg-1"}), "security group sg-1"),
            (json!({"launchTemplates": ["abc"]}), "launch template abc"),
        ] {
            let mut there = resource.clone();
            there["account"] = json!("222222222222");
            let refusal = refused(there).unwrap();
            assert_eq!(refusal.reason, "AccountChanged", "{resource}");
            for part in [named, "111111111111", "222222222222"] {
                assert!(refusal.message.contains(part), "{part}: {refusal:?}");
            }
            let mut here = resource.clone();
            here["account"] = json!("111111111111");
            here["identity"] = json!("uid-1");
            assert_eq!(refused(here), None, "{resource}");
            assert_eq!(refused(resource), None, "a status of an older provider");
        }
    }

    #[test]
    fn another_identity_is_told_with_both_and_the_way_back() {
        let refusal = refused(json!({
            "account": "111111111111", "identity": "uid-0", "securityGroupId": "sg-1",
        }));
        let Elsewhere { reason, message } = refusal.unwrap();
        assert_eq!(reason, "IdentityChanged");
        for part in ["uid-0", "uid-1", "provider-gpu-spot-identity", "sg-1"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_pool_that_has_nothing_may_change_its_account() {
        let ended = json!({
            "account": "222222222222", "identity": "uid-0",
            "instances": [instance("i-1", "terminated")], "launchGeneration": 3,
        });
        assert_eq!(refused(ended), None);
    }

    #[test]
    fn a_message_names_a_few_of_many_instances() {
        let ids = ["i-1", "i-2", "i-3", "i-4", "i-5"];
        let instances = ids.map(|id| instance(id, "running"));
        let there = json!({"account": "222222222222", "instances": instances});
        let message = refused(there).unwrap().message;
        assert!(message.contains("i-1, i-2, i-3 and 2 more"), "{message}");
    }
}
