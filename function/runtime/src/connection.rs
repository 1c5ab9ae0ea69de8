//! Where a namespaced workspace is reached: a Secret, as a claim's would be.
//!
//! Crossplane publishes connection details of legacy composites only, the ones with
//! claims. (`composite.Unstructured` of crossplane-runtime knows no
//! `writeConnectionSecretToRef` of another.) So the function composes the Secret.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::composite::Composite;
use crate::desired::{Composed, Desired};
use crate::keep;

/// The composition resource name of the Secret, wherever the workspace is placed.
pub const NAME: &str = "workspace-connection";
/// The type of every connection Secret. It cannot change, so a Secret of somebody
/// else's under the same name is not taken over: the API server refuses.
const TYPE: &str = "connection.crossplane.io/v1alpha1";

/// Turns the connection details of a namespaced composite into its Secret. It is made
/// when there is something to say, and stays: without contents while nobody knows an
/// address, since EC2 may have given the last one to somebody else.
pub fn publish(
    composite: Composite<'_>,
    observed: &BTreeMap<String, Value>,
    desired: &mut Desired,
) {
    // Under a legacy composite the key is another step's.
    desired.resources.remove(NAME);
    let Some(namespace) = composite.namespace() else {
        return;
    };
    let details = std::mem::take(&mut desired.connection);
    let made = observed.get(NAME);
    let object = match made {
        None if details.is_empty() => return,
        // An address that is kept although its machine cannot be understood.
        Some(made) if details.is_empty() && desired.status.contains_key("ssh") => keep::kept(made),
        _ => secret(namespace, composite.name(), &details),
    };
    let ready = made.is_some();
    let composed = Composed { object, ready };
    desired.resources.insert(NAME.to_owned(), composed);
}

fn secret(namespace: &str, workspace: &str, details: &BTreeMap<String, String>) -> Value {
    let mut secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": format!("{workspace}-connection"), "namespace": namespace},
        "type": TYPE,
    });
    // The API server drops an empty map, and would take each apply for a change.
    if !details.is_empty() {
        let encoded = |(key, value): (&String, &String)| (key.clone(), STANDARD.encode(value));
        let data: Map<String, Value> = details
            .iter()
            .map(encoded)
            .map(|(key, value)| (key, Value::String(value)))
            .collect();
        secret["data"] = Value::Object(data);
    }
    secret
}
