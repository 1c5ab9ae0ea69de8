use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::*;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed {
    size: i32,
    price: Option<f64>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    state: State,
}

#[derive(Debug, PartialEq, Deserialize)]
enum State {
    On,
    Off { since: String },
}

fn value() -> Value {
    json!({
        "size": 8, "price": 0.5, "tags": {"a": "b", "": ""}, "state": "On",
        "unknown": [null, true, {"list": []}],
    })
}

#[test]
fn every_value_is_the_same_as_in_serde_json() {
    for value in [
        value(),
        json!(null),
        json!([]),
        json!({}),
        json!(-1),
        json!("é"),
    ] {
        let owned = Json::from(value.clone());
        assert_eq!(Value::from(&owned), value);
        let borrowed = Json::from(&value);
        assert_eq!(borrowed, owned);
        assert_eq!(Value::from(&borrowed.into_owned()), value);
    }
    assert_ne!(Json::from(json!({"a": 1})), Json::from(json!({"a": 2})));
}

#[test]
fn a_pointer_finds_what_it_finds_in_serde_json() {
    let value = value();
    let json = Json::from(&value);
    for pointer in [
        "",
        "/size",
        "/tags/a",
        "/tags/",
        "/unknown/2/list",
        "/unknown/x",
        "/no/a",
    ] {
        let found = json.pointer(pointer).map(Value::from);
        assert_eq!(found.as_ref(), value.pointer(pointer), "{pointer}");
    }
}

#[test]
fn typed_values_are_read_as_from_serde_json() {
    let states = [
        json!("On"),
        json!({"Off": {"since": "now"}}),
        json!("Other"),
        json!(3),
    ];
    let sizes = [json!(8), json!("8"), json!(1e18), json!(null)];
    for state in &states {
        for size in &sizes {
            let mut changed = value();
            changed["state"] = state.clone();
            changed["size"] = size.clone();
            let read = Json::from(&changed).read::<Typed>();
            let expected: Result<Typed, _> = serde_json::from_value(changed);
            assert_eq!(
                read.map_err(|problem| problem.to_string()),
                expected.map_err(|problem| problem.to_string())
            );
        }
    }
}

#[test]
fn the_order_of_the_fields_changes_no_message() {
    let fields = [
        ("price", "no price"),
        ("size", "no size"),
        ("state", "none"),
    ];
    let problem = |order: [usize; 3]| {
        let mut object = Object::with_capacity(3);
        for (key, text) in order.map(|n| fields[n]) {
            object.push(key, Json::Text(text.into()));
        }
        Json::Object(object)
            .read::<Typed>()
            .unwrap_err()
            .to_string()
    };
    assert_eq!(problem([0, 1, 2]), problem([2, 1, 0]));
    assert_eq!(problem([0, 1, 2]), problem([1, 2, 0]));
}

#[test]
fn the_last_of_two_equal_keys_counts() {
    let mut object = Object::default();
    object.push("key", Json::Bool(false));
    object.push("key", Json::Bool(true));
    assert_eq!(object.get("key").and_then(Json::as_bool), Some(true));
    assert_eq!(Value::from(&Json::Object(object)), json!({"key": true}));
}
