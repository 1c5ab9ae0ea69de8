use function_sdk_rust::resource::json_to_struct;
use prost::Message;
use serde_json::json;

use super::*;

fn everything() -> RunFunctionResponse {
    let long = "x".repeat(20_000);
    serde_json::from_value(json!({
        "meta": {"tag": "c0ffee", "ttl": "61.5s"},
        "desired": {
            "composite": {
                "resource": {"status": {"a": null, "b": [1, -2.5, "c", true, false, {}, []], "": ""}},
                "connectionDetails": {"ssh": "c3No", "empty": ""},
                "ready": "READY_FALSE",
            },
            "resources": {
                "b": {"resource": {"long": long}, "ready": "READY_TRUE"},
                "a": {},
                "": {"resource": {}},
            },
        },
        "results": [
            {"severity": "SEVERITY_FATAL", "message": "m", "reason": "", "target": "TARGET_UNSPECIFIED"},
            {"message": "n"},
        ],
        "context": {"k": {"l": 1e300}},
        "requirements": {
            "extraResources": {"old": {"kind": "K", "matchName": ""}},
            "resources": {
                "labels": {"apiVersion": "v1", "kind": "K", "matchLabels": {"labels": {"b": "", "a": "1"}}},
                "name": {"apiVersion": "v1", "kind": "K", "matchName": "n", "namespace": ""},
            },
            "schemas": {"s": {"apiVersion": "v1", "kind": "K"}},
        },
        "conditions": [
            {"type": "T", "status": "STATUS_CONDITION_TRUE", "reason": "R", "message": "", "target": "TARGET_COMPOSITE"},
            {"type": "U", "reason": "R"},
        ],
        "output": {"o": true},
    }))
    .unwrap()
}

fn encoded(response: &RunFunctionResponse) -> Vec<u8> {
    encode(&response.clone().into()).as_ref().to_vec()
}

#[test]
fn a_response_arrives_as_it_was_answered() {
    let response = everything();
    let bytes = encoded(&response);
    assert_eq!(
        RunFunctionResponse::decode(bytes.as_slice()).unwrap(),
        response
    );
    let empty = RunFunctionResponse::default();
    assert!(encoded(&empty).is_empty());
}

#[test]
fn the_same_response_gives_the_same_bytes() {
    // Each call creates new maps, whose order differs.
    let first = encoded(&everything());
    for _ in 0..20 {
        assert_eq!(encoded(&everything()), first);
    }
}

#[test]
fn negative_and_extreme_numbers_arrive() {
    let mut response = everything();
    let ttl = Duration {
        seconds: -1,
        nanos: i32::MIN,
    };
    response.meta.as_mut().unwrap().ttl = Some(ttl);
    let values = [f64::MIN, -0.0, f64::INFINITY].map(|number| Value {
        kind: Some(Kind::NumberValue(number)),
    });
    let list = Kind::ListValue(ListValue {
        values: values.to_vec(),
    });
    let unset = Value { kind: None };
    response.output = Some(Struct {
        fields: [("l", Value { kind: Some(list) }), ("u", unset)]
            .map(|(key, value)| (key.to_owned(), value))
            .into(),
    });
    let bytes = encoded(&response);
    let read = RunFunctionResponse::decode(bytes.as_slice()).unwrap();
    assert_eq!(read, response);
}

#[test]
fn composed_resources_arrive_among_those_of_earlier_steps() {
    let mut message = everything();
    let earlier = &mut message.desired.as_mut().unwrap().resources;
    let details = &mut earlier.get_mut("b").unwrap().connection_details;
    details.insert("kept".to_owned(), b"by this step".to_vec());
    let object = json!({
        "": null, "z": [1, -2.5, 1e300, "c", true, false, {}, [], null], "a": {"c": {"d": 0}},
    });
    let composed = Composed {
        object: object.clone(),
        ready: true,
    };
    let names = ["b", "c"];
    let answer = Answer {
        message: message.clone(),
        composed: names.map(|name| (name.to_owned(), composed.clone())).into(),
    };
    let resources = &mut message.desired.as_mut().unwrap().resources;
    for name in names {
        let resource = resources.entry(name.to_owned()).or_default();
        resource.resource = object.as_object().map(json_to_struct);
        resource.ready = 1;
    }
    let bytes = encode(&answer);
    assert_eq!(
        RunFunctionResponse::decode(bytes.as_ref()).unwrap(),
        message
    );
    assert_eq!(bytes.as_ref(), encoded(&message));
}
