//! Desired state of what this function owns.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::outcome::Refusal;

/// Desired state of what this function owns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desired {
    /// The composed resources, by composition resource name.
    pub resources: BTreeMap<String, Composed>,
    /// The XR's status fields of this function.
    pub status: Map<String, Value>,
    /// The XR's connection details, which Crossplane publishes for legacy XRs.
    pub connection: BTreeMap<String, String>,
    /// The XR's readiness; `None` leaves it to Crossplane, which asks every
    /// desired resource.
    pub ready: Option<bool>,
}

/// A desired resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Composed {
    /// The manifest.
    pub object: Value,
    /// Whether it is ready.
    pub ready: bool,
}

impl Composed {
    /// An object that is to be written.
    ///
    /// # Errors
    ///
    /// It cannot be written as JSON.
    pub fn manifest<T: Serialize>(object: &T) -> Result<Value, Refusal> {
        serde_json::to_value(object).map_err(|problem| Refusal::unwritable("an object", &problem))
    }
}
