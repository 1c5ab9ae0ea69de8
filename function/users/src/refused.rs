//! The response for a `DevUser` that the function cannot resolve.

use std::collections::BTreeMap;
use std::time::Duration;

use api::dev_user::DevUserStatus;
use function_runtime::composite::Composite;
use function_runtime::desired::{Composed, Desired};
use function_runtime::json::Json;
use function_runtime::keep;
use function_runtime::object::ObservedObject;
use function_runtime::outcome::Refusal;
use function_runtime::request::Request;
use function_runtime::response::{CONFIG_RESOLVED, Condition, Event, Response, fields};
use serde_json::{Map, Value};

use crate::{access, budget, objects, protection, resource_names};

/// When to look again after a refusal.
const TTL: Duration = Duration::from_mins(1);

/// Keeps everything observed as it is, and protects homes. Only the permissions of a suspended user
/// go. The budget keeps the state of the last call: grants stay valid until they end, and no run gets
/// a new one.
pub fn render(request: &Request, composite: Composite<'_>, why: &Refusal) -> Response {
    let observed = &request.observed;
    let namespace = observed.get(resource_names::NAMESPACE);
    let namespace = namespace.map(|namespace| ObservedObject::new(namespace).name());
    let is_suspended = access::is_suspended(request);
    let mut objects: BTreeMap<String, Value> = observed
        .iter()
        .filter(|(name, _)| !(is_suspended && access::is_binding(name)))
        .map(|(name, object)| (name.clone(), kept(name, object)))
        .collect();
    let contents = protection::contents(request);
    let protection = namespace.and_then(|name| protection::reason(None, name, &contents));
    if let Some(reason) = &protection {
        let usage = objects::protection(composite.name(), reason);
        objects.insert(resource_names::PROTECTION.to_owned(), usage);
    }
    let status = DevUserStatus {
        namespace: namespace.map(str::to_owned),
        protected: objects.contains_key(resource_names::PROTECTION),
        homes: contents.into_homes(),
        message: Some(why.to_string()),
        budget: budget::previous(request),
        suspended: is_suspended,
    };
    let status = match fields(&status) {
        Ok(status) => status,
        // This is a bug of the function, so nothing may change.
        Err(why) => return Response::refused(why.reason(), why.to_string()),
    };
    let resources = objects.into_iter().map(|(name, object)| {
        let ready = observed.contains_key(&name);
        (name, Composed { object, ready })
    });
    let requirements = namespace.map(protection::requirements);
    Response {
        ttl: TTL,
        requirements: requirements.unwrap_or_default(),
        desired: Some(Desired {
            resources: resources.collect(),
            status,
            connection: BTreeMap::new(),
            ready: request.readiness(false),
        }),
        conditions: vec![Condition::is_false(
            CONFIG_RESOLVED,
            why.reason(),
            why.to_string(),
        )],
        events: Event::refusal(composite, why).into_iter().collect(),
        violations: why.violations().to_vec(),
    }
}

/// An observed resource as it must be desired to stay as it is. A Namespace also keeps the labels
/// of the policy, for example those of Pod Security.
fn kept(name: &str, observed: &Json<'_>) -> Value {
    let mut kept = keep::kept(observed);
    if name == resource_names::NAMESPACE {
        let labels = observed.pointer("/metadata/labels");
        let labels = labels.into_iter().flat_map(Json::fields);
        let ours = labels.filter(|(key, _)| !is_of_the_cluster(key));
        let ours: Map<String, Value> = ours.map(|(k, v)| (k.to_owned(), v.into())).collect();
        if !ours.is_empty() {
            kept["metadata"]["labels"] = Value::Object(ours);
        }
    }
    kept
}

/// Whether the API server or Crossplane sets a label.
fn is_of_the_cluster(label: &str) -> bool {
    label == "kubernetes.io/metadata.name" || label.starts_with("crossplane.io/")
}
