//! The desired state of one call.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::outcome::Refusal;

/// The desired state of the resources and fields that this function owns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desired {
    /// The composed resources, by composition resource name.
    pub resources: BTreeMap<String, Composed>,
    /// The fields of the composite's status that this function writes.
    pub status: Map<String, Value>,
    /// The composite's connection details. Crossplane publishes them for legacy composites only.
    pub connection: BTreeMap<String, String>,
    /// Whether the composite is ready. `None` leaves the decision to Crossplane, which checks that
    /// every desired resource is ready.
    pub ready: Option<bool>,
}

/// A desired composed resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Composed {
    /// The manifest of the resource.
    pub object: Value,
    /// Whether the resource is ready.
    pub ready: bool,
}

impl Composed {
    /// The manifest of a typed object.
    ///
    /// # Errors
    ///
    /// The object cannot be written as JSON.
    pub fn manifest<T: Serialize>(object: &T) -> Result<Value, Refusal> {
        serde_json::to_value(object).map_err(|problem| Refusal::unwritable("an object", &problem))
    }
}
