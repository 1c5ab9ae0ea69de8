//! Deletion order, as `Usages` that are composed beforehand: functions do not
//! run when an XR is deleted.
//!
//! Each consumer has a `Usage` of its own, and keeps it while it is observed: a
//! `Usage` goes when its consumer is gone, never before.
//!
//! Refused deletions of instances and volumes are not replayed (`replayDeletion`).
//! Crossplane remembers them for ever: one that somebody tried on a volume would be
//! carried out months later, at the moment in which the volume moves to another
//! instance. When an XR is deleted, Kubernetes' garbage collector comes back by
//! itself, each time after twice as long. The group is the last in the row and would
//! wait for a quarter of an hour; EC2 itself keeps one that is in use.

use std::collections::BTreeMap;

use function_runtime::object::ObservedObject;
use serde_json::{Value, json};

use crate::on_demand::API_VERSION;
use crate::resource_names;

/// Everything that has to wait for something else, by key.
pub fn usages(namespace: &str, observed: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let mut usages = BTreeMap::new();
    let mut keep = |of: &str, by: &str, reason: &str| {
        let (Some(used), Some(consumer)) = (observed.get(of), observed.get(by)) else {
            return;
        };
        let mut usage = usage(namespace, used, consumer, reason);
        if of == resource_names::SECURITY_GROUP {
            usage["spec"]["replayDeletion"] = json!(true);
        }
        usages.insert(resource_names::usage(of, by), usage);
    };
    let with = |prefix: &'static str| observed.keys().filter(move |key| key.starts_with(prefix));
    for key in with(resource_names::INSTANCE_PREFIX) {
        keep(
            resource_names::SECURITY_GROUP,
            key,
            "EC2 refuses to delete a group that an instance is in",
        );
    }
    for key in with(resource_names::ATTACHMENT_PREFIX) {
        keep(
            resource_names::HOME,
            key,
            "EC2 refuses to delete a volume that is attached",
        );
        let attached = observed
            .get(key)
            .and_then(|attachment| ObservedObject::new(attachment).for_provider("instanceId"));
        let instance = with(resource_names::INSTANCE_PREFIX).find(|key| {
            let instance = observed.get(*key).map(ObservedObject::new);
            attached.is_some() && instance.and_then(|i| i.at_provider("id")) == attached
        });
        if let Some(instance) = instance {
            keep(
                instance,
                key,
                "the home volume is detached in order before its instance goes",
            );
        }
    }
    usages
}

/// Whether something observed may still keep the resource from being deleted.
pub fn is_used(key: &str, observed: &BTreeMap<String, Value>) -> bool {
    let usages = resource_names::usage(key, "");
    observed.keys().any(|key| key.starts_with(&usages))
}

fn usage(namespace: &str, used: &Value, consumer: &Value, reason: &str) -> Value {
    let end = |resource: &Value| {
        json!({
            "apiVersion": API_VERSION,
            "kind": resource["kind"],
            "resourceRef": {"name": ObservedObject::new(resource).name()},
        })
    };
    json!({
        "apiVersion": "protection.crossplane.io/v1beta1",
        "kind": "Usage",
        "metadata": {"namespace": namespace},
        "spec": {
            "of": end(used),
            "by": end(consumer),
            "reason": reason,
        },
    })
}
