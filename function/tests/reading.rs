//! What is read of a request, beside what the SDK's types hold of it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;
mod dice;
mod foreign_fields;

use dice::Dice;
use function_gpu_workspace::kinds::KINDS;
use function_sdk_rust::proto::v1::{Resource, RunFunctionRequest, State};
use function_sdk_rust::resource::{json_to_struct, struct_to_json};
use function_server::decode::call::Call;
use prost::Message;
use serde_json::{Map, Value, json};

/// The SDK keeps what no decision depends on as well.
fn by_the_sdk(resource: &Resource) -> Option<Value> {
    let mut object = required_by_the_sdk(resource)?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("ownerReferences");
    }
    Some(object)
}

/// A required resource has its owner references.
fn required_by_the_sdk(resource: &Resource) -> Option<Value> {
    let mut object = resource.resource.as_ref().map(struct_to_json)?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for unread in [
            "managedFields",
            "finalizers",
            "generateName",
            "resourceVersion",
        ] {
            metadata.remove(unread);
        }
    }
    Some(object)
}

#[test]
fn what_is_decided_from_is_what_the_sdk_reads() {
    for name in case::names() {
        let sent = case::request(&name);
        let encoded = sent.encode_to_vec();
        let read = Call::read(&encoded, KINDS).unwrap();
        let observed = sent.observed.unwrap_or_default();
        let composite = observed.composite.as_ref().and_then(by_the_sdk);
        let read_composite = read.request.composite.as_ref().map(Value::from);
        assert_eq!(read_composite, composite, "{name}");
        let policy = sent.input.as_ref().map(struct_to_json);
        assert_eq!(read.request.policy, policy, "{name}");
        for (key, resource) in &read.request.observed {
            let by_the_sdk = by_the_sdk(&observed.resources[key]);
            assert_eq!(Some(resource.into()), by_the_sdk, "{name}: {key}");
        }
        for (requirement, found) in &sent.required_resources {
            let found: Vec<Value> = found.items.iter().filter_map(required_by_the_sdk).collect();
            let read = &read.request.required[requirement];
            let read: Vec<Value> = read.iter().map(Value::from).collect();
            assert_eq!(read, found, "{name}");
        }
        assert_eq!(read.meta, sent.meta, "{name}");
        assert_eq!(read.desired, sent.desired, "{name}");
        assert_eq!(read.context, sent.context, "{name}");
    }
}

#[test]
fn a_request_that_is_cut_off_is_read_only_where_prost_reads_it() {
    let whole = case::request("on-demand-ready").encode_to_vec();
    for length in (0..whole.len()).step_by(17) {
        let part = &whole[..length];
        let by_prost = RunFunctionRequest::decode(part).is_ok();
        assert_eq!(Call::read(part, KINDS).is_ok(), by_prost, "{length} bytes");
    }
}

/// A home volume with an object that nests: in objects, in lists, or in turns.
fn nested(levels: usize, is_list: impl Fn(usize) -> bool) -> RunFunctionRequest {
    let inner = (0..levels).fold(json!("leaf"), |inner, level| {
        if is_list(level) {
            json!([inner])
        } else {
            json!({"level": inner})
        }
    });
    let resource = Resource {
        resource: Some(json_to_struct(&Map::from_iter([(
            "spec".to_owned(),
            inner,
        )]))),
        ..Resource::default()
    };
    RunFunctionRequest {
        observed: Some(State {
            composite: case::request("new-workspace").observed.unwrap().composite,
            resources: [("home".to_owned(), resource)].into(),
        }),
        ..RunFunctionRequest::default()
    }
}

#[test]
fn objects_may_nest_as_deep_as_prost_reads_them() {
    let in_turns = |level: usize| level.is_multiple_of(2);
    for levels in 0..60 {
        let requests = [
            nested(levels, |_| false),
            nested(levels, |_| true),
            nested(levels, in_turns),
        ];
        for request in requests {
            let encoded = request.encode_to_vec();
            let by_prost = RunFunctionRequest::decode(encoded.as_slice()).is_ok();
            assert_eq!(
                Call::read(&encoded, KINDS).is_ok(),
                by_prost,
                "{levels} levels"
            );
        }
    }
}

/// Crossplane's next version may send fields that this function does not know.
#[test]
fn unknown_fields_of_any_type_at_any_level_change_nothing() {
    let mut added = 0;
    for (seed, name) in case::names().iter().enumerate() {
        let sent = case::request(name).encode_to_vec();
        let known = Call::read(&sent, KINDS).unwrap();
        let mut dice = Dice::new(seed as u64);
        let with_unknown = foreign_fields::add(&sent, &mut dice);
        added += with_unknown.len() - sent.len();
        let read = Call::read(&with_unknown, KINDS);
        assert!(
            read == Ok(known),
            "{name}, seed {seed}: something else is read"
        );
        RunFunctionRequest::decode(with_unknown.as_slice()).unwrap();
    }
    assert!(added > 100_000, "only {added} bytes were added");
}

/// Protobuf merges a field that comes twice: writers may send a message in parts.
#[test]
fn a_field_that_comes_twice_is_merged() {
    for name in ["on-demand-ready", "ready", "cluster-ready", "user-ready"] {
        let sent = case::request(name);
        let observed = sent.observed.clone().unwrap();
        let resources = State {
            resources: observed.resources,
            ..State::default()
        };
        let composite = State {
            composite: observed.composite,
            ..State::default()
        };
        let encoded = sent.encode_to_vec();
        let whole = Call::read(&encoded, KINDS).unwrap();
        let part = |observed| RunFunctionRequest {
            observed: Some(observed),
            ..RunFunctionRequest::default()
        };
        let rest = RunFunctionRequest {
            observed: None,
            ..sent
        };
        let parts = [part(resources), rest.clone(), part(composite)];
        let mut encoded: Vec<u8> = parts.iter().flat_map(Message::encode_to_vec).collect();
        assert!(Call::read(&encoded, KINDS) == Ok(whole.clone()), "{name}");
        encoded.extend(rest.encode_to_vec());
        assert!(Call::read(&encoded, KINDS) == Ok(whole), "{name}, twice");
    }
}
