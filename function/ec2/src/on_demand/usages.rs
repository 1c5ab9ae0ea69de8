//! `Usages` that order the deletion of resources. They are composed in advance, because Crossplane
//! does not call functions when a composite is deleted.
//!
//! Each user of a resource has its own `Usage`. The `Usage` is desired while its user is observed,
//! so it is deleted only after its user is gone.
//!
//! Refused deletions of instances and volumes are not replayed (`replayDeletion`). Crossplane never
//! forgets a refused deletion: if a person tried to delete a volume, Crossplane would delete it
//! months later, when the volume moves to another instance. When a composite is deleted,
//! Kubernetes' garbage collector retries by itself, and doubles its waiting time each time. The
//! security group is the last resource to be deleted and would wait for a quarter of an hour, so
//! its deletion is replayed. EC2 itself refuses to delete a group that is in use.

use std::collections::BTreeMap;

use function_runtime::desired::Composed;
use function_runtime::json::Json;
use function_runtime::object::ObservedObject;
use function_runtime::outcome::Refusal;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

use crate::on_demand::OnDemandInstance;
use crate::on_demand::api;
use crate::on_demand::home::Home;
use crate::resource_names;

/// A deletion order: Crossplane refuses to delete `of` until `by` is gone.
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

/// The desired `Usages`, by composition resource name.
///
/// # Errors
///
/// A `Usage` cannot be written as JSON.
pub fn usages(
    namespace: &str,
    observed: &BTreeMap<String, Json<'_>>,
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

/// Whether a `Usage` may still protect the resource from deletion.
pub fn is_used(name: &str, observed: &BTreeMap<String, Json<'_>>) -> bool {
    let usages = resource_names::usage(name, "");
    observed.keys().any(|name| name.starts_with(&usages))
}

impl<'a> End<'a> {
    fn of(resource: &'a Json<'a>) -> Self {
        Self {
            api_version: api::API_VERSION,
            kind: resource
                .get("kind")
                .and_then(Json::as_str)
                .unwrap_or_default(),
            resource_ref: ResourceReference {
                name: ObservedObject::new(resource).name(),
            },
        }
    }
}
