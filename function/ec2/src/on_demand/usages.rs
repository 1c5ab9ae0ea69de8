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

use function_runtime::desired::Composed;
use function_runtime::object::ObservedObject;
use function_runtime::outcome::Refusal;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

use crate::on_demand::OnDemandInstance;
use crate::on_demand::api;
use crate::on_demand::home::Home;
use crate::resource_names;

/// A deletion order: Crossplane does not delete `of` before `by` is gone.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Usage<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: ObjectMeta,
    spec: UsageSpec<'a>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UsageSpec<'a> {
    of: End<'a>,
    by: End<'a>,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay_deletion: Option<bool>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct End<'a> {
    api_version: &'static str,
    kind: &'a str,
    resource_ref: ResourceReference<'a>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct ResourceReference<'a> {
    name: &'a str,
}

/// Everything that has to wait for something else, by name.
///
/// # Errors
///
/// A `Usage` cannot be written.
pub fn usages(
    namespace: &str,
    observed: &BTreeMap<String, Value>,
    instances: &BTreeMap<&str, OnDemandInstance<'_>>,
    home: &Home<'_>,
) -> Result<BTreeMap<String, Value>, Refusal> {
    let mut usages = BTreeMap::new();
    let mut keep = |of: &str, by: &str, reason: &'static str| -> Result<(), Refusal> {
        let (Some(used), Some(consumer)) = (observed.get(of), observed.get(by)) else {
            return Ok(());
        };
        let usage = Usage {
            api_version: "protection.crossplane.io/v1beta1",
            kind: "Usage",
            metadata: ObjectMeta {
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            spec: UsageSpec {
                of: End::of(used),
                by: End::of(consumer),
                reason,
                replay_deletion: (of == resource_names::SECURITY_GROUP).then_some(true),
            },
        };
        usages.insert(resource_names::usage(of, by), Composed::manifest(&usage)?);
        Ok(())
    };
    for instance in instances.keys() {
        keep(
            resource_names::SECURITY_GROUP,
            instance,
            "EC2 refuses to delete a group that an instance is in",
        )?;
    }
    for (name, attachment) in home.composed_attachments() {
        keep(
            resource_names::HOME,
            name,
            "EC2 refuses to delete a volume that is attached",
        )?;
        let attached = attachment.for_provider.instance_id.as_deref();
        let instance = instances
            .iter()
            .find(|(_, instance)| attached.is_some() && instance.last_known_id() == attached);
        if let Some((instance, _)) = instance {
            keep(
                instance,
                name,
                "the home volume is detached in order before its instance goes",
            )?;
        }
    }
    Ok(usages)
}

/// Whether something observed may still keep the resource from being deleted.
pub fn is_used(name: &str, observed: &BTreeMap<String, Value>) -> bool {
    let usages = resource_names::usage(name, "");
    observed.keys().any(|name| name.starts_with(&usages))
}

impl<'a> End<'a> {
    fn of(resource: &'a Value) -> Self {
        Self {
            api_version: api::API_VERSION,
            kind: resource
                .get("kind")
                .and_then(Value::as_str)
                .unwrap_or_default(),
            resource_ref: ResourceReference {
                name: ObservedObject::new(resource).name(),
            },
        }
    }
}
