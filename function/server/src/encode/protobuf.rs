//! Encodes responses. The same response always gives the same bytes.
//!
//! prost writes maps in the order of `HashMap`, which differs from call to call. This encoder sorts
//! their keys, as Go's deterministic serialization does. Otherwise its output equals that of prost.
//!
//! A message is written from its end to its start. Its length is therefore known when its head is
//! written, and no pass is needed to measure it.
//!
//! Each function destructures its message completely. If a later version of the protocol adds a
//! field, the code does not compile until it writes the field.

use std::collections::HashMap;

use function_sdk_rust::proto::v1::resource_selector::Match;
use function_sdk_rust::proto::v1::{
    Condition, MatchLabels, Requirements, Resource, ResourceSelector, ResponseMeta, Result,
    RunFunctionResponse, SchemaSelector, State,
};
use pbjson_types::value::Kind;
use pbjson_types::{Duration, ListValue, Struct, Value};

/// Encodes a response.
pub fn encode(response: &RunFunctionResponse) -> impl AsRef<[u8]> + use<> {
    let mut writer = Writer::with_capacity(8 * 1024);
    write_response(&mut writer, response);
    writer
}

fn write_response(w: &mut Writer, response: &RunFunctionResponse) {
    let RunFunctionResponse {
        meta,
        desired,
        results,
        context,
        requirements,
        conditions,
        output,
    } = response;
    w.optional(7, output.as_ref(), write_struct);
    w.repeated(6, conditions, write_condition);
    w.optional(5, requirements.as_ref(), write_requirements);
    w.optional(4, context.as_ref(), write_struct);
    w.repeated(3, results, write_result);
    w.optional(2, desired.as_ref(), write_state);
    w.optional(1, meta.as_ref(), write_meta);
}

fn write_meta(w: &mut Writer, meta: &ResponseMeta) {
    let ResponseMeta { tag, ttl } = meta;
    w.optional(2, ttl.as_ref(), |w, ttl| {
        let Duration { seconds, nanos } = *ttl;
        w.number(2, i64::from(nanos));
        w.number(1, seconds);
    });
    w.text(1, tag);
}

fn write_state(w: &mut Writer, state: &State) {
    let State {
        composite,
        resources,
    } = state;
    w.map(2, resources, |w, resource| {
        w.message(2, |w| write_resource(w, resource));
    });
    w.optional(1, composite.as_ref(), write_resource);
}

fn write_resource(w: &mut Writer, resource: &Resource) {
    let Resource {
        resource,
        connection_details,
        ready,
    } = resource;
    w.number(3, i64::from(*ready));
    w.map(2, connection_details, |w, value| w.bytes(2, value));
    w.optional(1, resource.as_ref(), write_struct);
}

fn write_result(w: &mut Writer, result: &Result) {
    let Result {
        severity,
        message,
        reason,
        target,
    } = result;
    w.optional_number(4, *target);
    w.optional_text(3, reason.as_deref());
    w.text(2, message);
    w.number(1, i64::from(*severity));
}

fn write_condition(w: &mut Writer, condition: &Condition) {
    let Condition {
        r#type,
        status,
        reason,
        message,
        target,
    } = condition;
    w.optional_number(5, *target);
    w.optional_text(4, message.as_deref());
    w.text(3, reason);
    w.number(2, i64::from(*status));
    w.text(1, r#type);
}

#[allow(
    deprecated,
    reason = "a Crossplane that knows only the deprecated field must get it"
)]
fn write_requirements(w: &mut Writer, requirements: &Requirements) {
    let Requirements {
        extra_resources,
        resources,
        schemas,
    } = requirements;
    w.map(3, schemas, |w, schema| {
        let SchemaSelector { api_version, kind } = schema;
        w.message(2, |w| {
            w.text(2, kind);
            w.text(1, api_version);
        });
    });
    for (field, selectors) in [(2, resources), (1, extra_resources)] {
        w.map(field, selectors, |w, selector| {
            w.message(2, |w| write_selector(w, selector));
        });
    }
}

fn write_selector(w: &mut Writer, selector: &ResourceSelector) {
    let ResourceSelector {
        api_version,
        kind,
        namespace,
        r#match,
    } = selector;
    w.optional_text(5, namespace.as_deref());
    match r#match {
        Some(Match::MatchLabels(MatchLabels { labels })) => w.message(4, |w| {
            w.map(1, labels, |w, value| w.bytes(2, value.as_bytes()));
        }),
        Some(Match::MatchName(name)) => w.bytes(3, name.as_bytes()),
        None => {}
    }
    w.text(2, kind);
    w.text(1, api_version);
}

fn write_struct(w: &mut Writer, object: &Struct) {
    let Struct { fields } = object;
    w.map(1, fields, |w, value| {
        w.message(2, |w| write_value(w, value));
    });
}

fn write_value(w: &mut Writer, value: &Value) {
    let Value { kind } = value;
    match kind {
        Some(Kind::NullValue(null)) => w.optional_number(1, Some(*null)),
        Some(Kind::NumberValue(number)) => w.double(2, *number),
        Some(Kind::StringValue(text)) => w.bytes(3, text.as_bytes()),
        Some(Kind::BoolValue(truth)) => w.optional_number(4, Some(i32::from(*truth))),
        Some(Kind::StructValue(object)) => w.message(5, |w| write_struct(w, object)),
        Some(Kind::ListValue(ListValue { values })) => {
            w.message(6, |w| w.repeated(1, values, write_value));
        }
        None => {}
    }
}

/// The wire types of protobuf's encoding.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    SixtyFourBit = 1,
    LengthDelimited = 2,
}

/// A buffer that is written from its end: `bytes[start..]` is already written.
struct Writer {
    bytes: Vec<u8>,
    start: usize,
}

impl AsRef<[u8]> for Writer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl Writer {
    fn with_capacity(capacity: usize) -> Self {
        Self {
            bytes: vec![0; capacity],
            start: capacity,
        }
    }

    fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    fn prepend(&mut self, bytes: &[u8]) {
        if self.start < bytes.len() {
            let mut larger = vec![0; (self.bytes.len() * 2).max(self.len() + bytes.len())];
            let start = larger.len() - self.len();
            larger[start..].copy_from_slice(self.as_ref());
            self.bytes = larger;
            self.start = start;
        }
        let end = self.start;
        self.start -= bytes.len();
        self.bytes[self.start..end].copy_from_slice(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        let mut bytes = [0; 10];
        let mut length = 0;
        loop {
            let seven = value.to_le_bytes()[0] & 0x7f;
            value >>= 7;
            let more = if value == 0 { 0 } else { 0x80 };
            bytes[length] = seven | more;
            length += 1;
            if value == 0 {
                return self.prepend(&bytes[..length]);
            }
        }
    }

    fn key(&mut self, field: u32, wire: Wire) {
        self.varint(u64::from(field << 3 | wire as u32));
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.prepend(bytes);
        self.varint(bytes.len() as u64);
        self.key(field, Wire::LengthDelimited);
    }

    fn double(&mut self, field: u32, value: f64) {
        self.prepend(&value.to_le_bytes());
        self.key(field, Wire::SixtyFourBit);
    }

    /// A signed number. protobuf requires ten bytes for a negative one.
    fn signed(&mut self, field: u32, value: i64) {
        self.varint(value.cast_unsigned());
        self.key(field, Wire::Varint);
    }

    /// A number without field presence: zero is not written.
    fn number(&mut self, field: u32, value: i64) {
        if value != 0 {
            self.signed(field, value);
        }
    }

    fn optional_number(&mut self, field: u32, value: Option<i32>) {
        if let Some(value) = value {
            self.signed(field, i64::from(value));
        }
    }

    /// A string without field presence: an empty string is not written.
    fn text(&mut self, field: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    fn optional_text(&mut self, field: u32, text: Option<&str>) {
        if let Some(text) = text {
            self.bytes(field, text.as_bytes());
        }
    }

    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let behind = self.len();
        write(self);
        self.varint((self.len() - behind) as u64);
        self.key(field, Wire::LengthDelimited);
    }

    fn optional<T>(&mut self, field: u32, message: Option<&T>, write: impl Fn(&mut Self, &T)) {
        if let Some(message) = message {
            self.message(field, |w| write(w, message));
        }
    }

    fn repeated<T>(&mut self, field: u32, messages: &[T], write: impl Fn(&mut Self, &T)) {
        for message in messages.iter().rev() {
            self.message(field, |w| write(w, message));
        }
    }

    /// A map with its entries in the order of their keys. Each entry is a message with the key (1)
    /// and the value (2), which `write` writes. Both are written even if they are empty, as in
    /// every implementation except prost.
    fn map<T>(&mut self, field: u32, entries: &HashMap<String, T>, write: impl Fn(&mut Self, &T)) {
        let mut entries: Vec<_> = entries.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        for (key, value) in entries.into_iter().rev() {
            self.message(field, |w| {
                write(w, value);
                w.bytes(1, key.as_bytes());
            });
        }
    }
}

#[cfg(test)]
#[path = "protobuf_tests.rs"]
mod tests;
