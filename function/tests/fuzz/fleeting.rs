//! Fleeting values, which are different at every observation: times, and the ids of AWS requests.

use serde_json::Value;

use crate::states::TIME;

const REQUEST_ID: &str = "RequestID: ";

/// Whether a text contains a fleeting value.
pub fn is_in(text: &str) -> bool {
    text.contains(TIME) || text.split(REQUEST_ID).skip(1).any(begins_with_id)
}

fn begins_with_id(rest: &str) -> bool {
    let is_part = |c: &char| c.is_ascii_hexdigit() || *c == '-';
    rest.chars().take_while(is_part).count() > 30
}

/// Whether a request has a fleeting value in a field that never holds one. The function reports a
/// time in the place of an instance's state like any other state.
pub fn is_out_of_place(request: &Value) -> bool {
    match request {
        Value::Object(fields) => fields.iter().any(|(name, value)| match value {
            Value::String(text) => !holds(name, text) && is_in(text),
            value => is_out_of_place(value),
        }),
        Value::Array(items) => items.iter().any(|item| match item {
            Value::String(text) => is_in(text),
            item => is_out_of_place(item),
        }),
        _ => false,
    }
}

/// Whether a field of this name may hold this fleeting text. A field for a time may hold a time. A
/// condition's message may hold the id of an AWS request.
fn holds(name: &str, text: &str) -> bool {
    match name {
        "message" => !text.contains(TIME),
        name => text == TIME && name.to_lowercase().contains("time"),
    }
}
