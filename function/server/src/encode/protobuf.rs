//! Encodes responses. The same response always gives the same bytes.
//!
//! prost writes maps in the order of `HashMap`, which differs from call to call. This encoder sorts
//! their keys, as Go's deterministic serialization does. Otherwise its output equals that of prost.
//!
//! Each function destructures its message completely. If a later version of the protocol adds a
//! field, the code does not compile until it writes the field.

use std::collections::{BTreeMap, BTreeSet};

use function_runtime::desired::Composed;
use function_sdk_rust::proto::v1::resource_selector::Match;
use function_sdk_rust::proto::v1::{
    Condition, MatchLabels, Requirements, Resource, ResourceSelector, ResponseMeta, Result,
    RunFunctionResponse, SchemaSelector, State,
};
use pbjson_types::value::Kind;
use pbjson_types::{Duration, ListValue, Struct, Value};
use serde_json::Value as Json;

use crate::encode::json;
use crate::encode::response::{Answer, readiness};
use crate::encode::writer::Writer;

/// The bytes in which most responses fit.
pub const CAPACITY: usize = 16 * 1024;

/// Encodes a response.
pub fn encode(answer: &Answer) -> impl AsRef<[u8]> + use<> {
    let mut writer = Writer::with_capacity(CAPACITY);
    write_response(&mut writer, &answer.message, &answer.composed);
    writer
}

fn write_response(
    w: &mut Writer,
    response: &RunFunctionResponse,
    composed: &BTreeMap<String, Composed>,
) {
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
    w.optional(2, desired.as_ref(), |w, state| {
        write_state(w, state, composed);
    });
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

/// Writes the desired state. `composed` are the resources of the decision.
fn write_state(w: &mut Writer, state: &State, composed: &BTreeMap<String, Composed>) {
    let State {
        composite,
        resources,
    } = state;
    let none = Resource::default();
    let names: BTreeSet<&String> = resources.keys().chain(composed.keys()).collect();
    w.sorted(2, names.into_iter().map(|name| (name, name)), |w, name| {
        let earlier = resources.get(name).unwrap_or(&none);
        w.message(2, |w| match composed.get(name) {
            Some(own) => write_composed(w, own, earlier),
            None => write_resource(w, earlier),
        });
    });
    w.optional(1, composite.as_ref(), write_resource);
}

/// Writes a composed resource of the decision. `earlier` is the resource that an earlier step of the
/// pipeline desires by the same name. Its connection details stay.
fn write_composed(w: &mut Writer, composed: &Composed, earlier: &Resource) {
    let Composed { object, ready } = composed;
    w.number(3, i64::from(readiness(*ready) as i32));
    w.map(2, &earlier.connection_details, |w, value| w.bytes(2, value));
    if let Json::Object(object) = object {
        w.message(1, |w| json::object(w, object));
    }
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

#[cfg(test)]
#[path = "protobuf_tests.rs"]
mod tests;
