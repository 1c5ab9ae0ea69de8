//! Writes a JSON tree directly in protobuf's encoding of JSON.
//!
//! With the types of pbjson, each object would first become a hash map of copied strings. This took
//! an eighth of the time of a call.

use serde_json::{Map, Value};

use crate::encode::writer::Writer;

/// Writes a `google.protobuf.Struct`.
pub fn object(w: &mut Writer, object: &Map<String, Value>) {
    w.sorted(1, object.iter(), |w, item| w.message(2, |w| value(w, item)));
}

fn value(w: &mut Writer, json: &Value) {
    match json {
        Value::Null => w.optional_number(1, Some(0)),
        // `Struct` has no integers. JSON numbers of serde_json always convert.
        Value::Number(number) => w.double(2, number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => w.bytes(3, text.as_bytes()),
        Value::Bool(truth) => w.optional_number(4, Some(i32::from(*truth))),
        Value::Object(fields) => w.message(5, |w| object(w, fields)),
        Value::Array(items) => w.message(6, |w| w.repeated(1, items, value)),
    }
}
