//! Publishes the connection details of a composite.
//!
//! Crossplane publishes connection details of legacy composites only, which have claims. (In
//! crossplane-runtime, `composite.Unstructured` has `writeConnectionSecretToRef` for legacy
//! composites only.) For a namespaced composite the function composes a Secret with the same
//! content.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::composite::Composite;
use crate::desired::Composed;
use crate::json::Json;
use crate::keep;
use crate::object::given_name;

/// The composition resource name of the connection Secret, in every placement.
pub const NAME: &str = "workspace-connection";
/// The type of connection Secrets. The API server refuses to change a Secret's type, so the
/// function cannot take over a Secret of another owner with the same name.
const TYPE: &str = "connection.crossplane.io/v1alpha1";

/// The connection details of a composite.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// The details that Crossplane publishes for a legacy composite.
    pub details: BTreeMap<String, String>,
    /// The Secret of a namespaced composite.
    pub secret: Option<Composed>,
}

impl Connection {
    /// Publishes connection details. For a namespaced composite the Secret is created once there
    /// are details. It is never deleted afterwards. While there is no address it is empty, because
    /// EC2 may already have given the old address to another customer.
    ///
    /// `observed` is the observed Secret, and `prefix` is that of a new Secret's name. `is_kept`
    /// keeps the content: it is set if the machine with the address exists but cannot be read.
    pub fn of(
        composite: Composite<'_>,
        observed: Option<&Json<'_>>,
        prefix: &str,
        details: BTreeMap<String, String>,
        is_kept: bool,
    ) -> Self {
        let Some(namespace) = composite.namespace() else {
            return Self {
                details,
                secret: None,
            };
        };
        let new = || format!("{prefix}{}-connection", composite.name());
        let name = given_name(observed).map_or_else(new, str::to_owned);
        let object = match observed {
            None if details.is_empty() => None,
            Some(made) if details.is_empty() && is_kept => Some(keep::kept(made)),
            _ => Some(secret(namespace, &name, &details)),
        };
        let ready = observed.is_some();
        Self {
            details: BTreeMap::new(),
            secret: object.map(|object| Composed { object, ready }),
        }
    }
}

fn secret(namespace: &str, name: &str, details: &BTreeMap<String, String>) -> Value {
    let mut secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": TYPE,
    });
    // The API server drops an empty `data`, so each apply of an empty map would count as a change.
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
