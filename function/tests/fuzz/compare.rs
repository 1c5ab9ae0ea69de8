//! Equality of answers that treats NaN as null, because NaN differs from itself.

use std::collections::BTreeMap;

use function_sdk_rust::proto::v1::{Resource, RunFunctionResponse, State};
use function_sdk_rust::resource::struct_to_json;
use pbjson_types::value::Kind;
use pbjson_types::{Struct, Value as Pb};
use serde_json::{Value, json};

/// Whether two answers are the same.
pub fn is_same(one: &RunFunctionResponse, other: &RunFunctionResponse) -> bool {
    let context = |of: &RunFunctionResponse| of.context.as_ref().map(struct_to_json);
    one == other
        || (one.meta == other.meta
            && one.requirements == other.requirements
            && one.conditions == other.conditions
            && one.results == other.results
            && context(one) == context(other)
            && state(one.desired.as_ref()) == state(other.desired.as_ref()))
}

/// A state in JSON. An empty state and a missing state are both null.
pub fn state(state: Option<&State>) -> Value {
    let Some(state) = state.filter(|state| **state != State::default()) else {
        return Value::Null;
    };
    let whole = |resource: &Resource| {
        let details: BTreeMap<_, _> = resource.connection_details.iter().collect();
        json!([json(resource), resource.ready, details])
    };
    let resources: BTreeMap<&String, Value> = state
        .resources
        .iter()
        .map(|(key, resource)| (key, whole(resource)))
        .collect();
    json!([state.composite.as_ref().map(whole), resources])
}

/// A resource's manifest in JSON.
pub fn json(resource: &Resource) -> Value {
    let manifest = resource.resource.as_ref();
    manifest.map(struct_to_json).unwrap_or_default()
}

/// The approximate size of a state. The time of prost's own count grows with the square of the
/// depth.
pub fn weight_of(state: Option<&State>) -> usize {
    let of = |resource: &Resource| resource.resource.as_ref().map_or(0, weight);
    let composed = |state: &State| state.resources.values().map(of).sum::<usize>();
    state.map_or(0, |state| {
        composed(state) + state.composite.as_ref().map_or(0, of)
    })
}

/// The approximate size of a manifest.
pub fn weight(fields: &Struct) -> usize {
    let fields = fields.fields.iter();
    fields
        .map(|(name, value)| name.len() + weight_in(value))
        .sum()
}

fn weight_in(value: &Pb) -> usize {
    4 + match &value.kind {
        Some(Kind::StringValue(text)) => text.len(),
        Some(Kind::StructValue(fields)) => weight(fields),
        Some(Kind::ListValue(list)) => list.values.iter().map(weight_in).sum(),
        _ => 8,
    }
}
