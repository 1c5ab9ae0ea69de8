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
use crate::desired::Composed;
use crate::keep;

/// The composition resource name of the Secret, wherever the workspace is placed.
pub const NAME: &str = "workspace-connection";
/// The type of every connection Secret. It cannot change, so a Secret of somebody
/// else's under the same name is not taken over: the API server refuses.
const TYPE: &str = "connection.crossplane.io/v1alpha1";

/// The connection details of a composite.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Those that Crossplane publishes.
    pub details: BTreeMap<String, String>,
    /// The Secret of a namespaced composite.
    pub secret: Option<Composed>,
}

impl Connection {
    /// Publishes details. A namespaced composite gets a Secret, which is made when there is
    /// something to say, and stays: without contents while nobody knows an address, since EC2
    /// may have given the last one to somebody else. `observed` is that Secret. `is_kept`: it
    /// keeps what it says, because the machine of its address cannot be understood.
    pub fn of(
        composite: Composite<'_>,
        observed: Option<&Value>,
        details: BTreeMap<String, String>,
        is_kept: bool,
    ) -> Self {
        let Some(namespace) = composite.namespace() else {
            return Self {
                details,
                secret: None,
            };
        };
        let object = match observed {
            None if details.is_empty() => None,
            Some(made) if details.is_empty() && is_kept => Some(keep::kept(made)),
            _ => Some(secret(namespace, composite.name(), &details)),
        };
        let ready = observed.is_some();
        Self {
            details: BTreeMap::new(),
            secret: object.map(|object| Composed { object, ready }),
        }
    }
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
