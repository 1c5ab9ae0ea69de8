//! Every value that a kind's schema admits can be read.
//!
//! The API server stores what the schema admits. If the provider cannot read it, the provider does
//! nothing for that object. `ADMITTED_SEED` repeats a run.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use gpu_workspaces_api::dev_user::DevUser;
use gpu_workspaces_api::flavor::WorkspaceFlavor;
use gpu_workspaces_api::lease::SpotLease;
use gpu_workspaces_api::pool::SpotPool;
use gpu_workspaces_api::provider_config::{ClusterProviderConfig, ProviderConfig};
use gpu_workspaces_api::workspace::GpuDevWorkspace;
use kube::CustomResourceExt;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The values of each kind.
const VALUES: u64 = 4000;
/// The pattern of times in `api/src/patterns.rs`.
const DATE_TIME: &str = r"^2[0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$";
/// The pattern of durations in `api/src/patterns.rs`.
const DURATION: &str = r"^([0-9]{1,5}[smhd]){1,4}$";

#[test]
fn the_provider_reads_whatever_the_api_server_admits() {
    reads::<SpotPool>();
    reads::<SpotLease>();
    reads::<ProviderConfig>();
    reads::<ClusterProviderConfig>();
}

#[test]
fn the_function_reads_whatever_the_api_server_admits() {
    reads::<GpuDevWorkspace>();
    reads::<WorkspaceFlavor>();
    reads::<DevUser>();
}

fn reads<K: CustomResourceExt + DeserializeOwned>() {
    let crd = serde_json::to_value(K::crd()).unwrap();
    let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let seed = std::env::var("ADMITTED_SEED").ok();
    let seed: u64 = seed.map_or_else(|| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("{kind}: ADMITTED_SEED={seed}");
    let mut dice = fastrand::Rng::with_seed(seed);
    for _ in 0..VALUES {
        let object = json!({
            "apiVersion": "any/v1",
            "kind": kind,
            "metadata": {"name": "any"},
            "spec": value(schema, &mut dice),
        });
        if let Err(error) = serde_json::from_value::<K>(object.clone()) {
            panic!("{kind}: {error}: {object:#}");
        }
    }
}

/// A random value that the schema admits. A string may be too long, or break a pattern or a rule,
/// because Rust reads every string. Only times and durations are parsed, so they follow their patterns.
fn value(schema: &Value, dice: &mut fastrand::Rng) -> Value {
    if schema["nullable"] == true && dice.u8(..4) == 0 {
        return Value::Null;
    }
    if let Some(words) = schema["enum"].as_array() {
        return words[dice.usize(..words.len())].clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return if dice.bool() { json!(7) } else { json!("7") };
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, dice),
        Some("array") => array(schema, dice),
        Some("string") => string(schema, dice),
        Some("integer") => integer(schema, dice),
        Some("number") => number(schema, dice),
        Some("boolean") => dice.bool().into(),
        _ if schema["x-kubernetes-preserve-unknown-fields"] == true => json!({"any": [1, "x"]}),
        other => panic!("the type {other:?} is unknown here: {schema}"),
    }
}

fn object(schema: &Value, dice: &mut fastrand::Rng) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut object = Map::new();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if required.contains(&json!(name)) || dice.bool() {
            object.insert(name.clone(), value(schema, dice));
        }
    }
    if schema["additionalProperties"].is_object() {
        for number in 0..dice.u8(..3) {
            let any = value(&schema["additionalProperties"], dice);
            object.insert(format!("key-{number}"), any);
        }
    }
    object.into()
}

fn array(schema: &Value, dice: &mut fastrand::Rng) -> Value {
    let least = schema["minItems"].as_u64().unwrap_or(0);
    let most = schema["maxItems"].as_u64().unwrap_or(least + 3);
    let count = dice.u64(least..=most.min(least + 3));
    (0..count).map(|_| value(&schema["items"], dice)).collect()
}

fn string(schema: &Value, dice: &mut fastrand::Rng) -> Value {
    if schema["pattern"] == DATE_TIME {
        return time(dice).into();
    }
    if schema["pattern"] == DURATION {
        return duration(dice).into();
    }
    match schema["format"].as_str() {
        None => {}
        // The API server admits times that no process of ours can read.
        Some(other) => panic!("give the format {other} a pattern: {schema}"),
    }
    ["", "a", "ä", "9999-12-31T23:59:59Z", "-1"][dice.usize(..5)].into()
}

fn duration(dice: &mut fastrand::Rng) -> String {
    let parts = (0..dice.usize(1..=4)).map(|_| {
        let number = [0, 1, 99_999, dice.u32(..100_000)][dice.usize(..4)];
        let unit = ["s", "m", "h", "d"][dice.usize(..4)];
        format!("{number}{unit}")
    });
    parts.collect()
}

/// A time that matches the pattern, on a day that every month has: a rule refuses the others.
fn time(dice: &mut fastrand::Rng) -> String {
    let mut of = |least: u32, most: u32| {
        let edge = [least, most, dice.u32(least..=most)];
        edge[dice.usize(..3)]
    };
    let date = format!("{:04}-{:02}-{:02}", of(2000, 2999), of(1, 12), of(1, 28));
    let hour = format!("{:02}:{:02}:{:02}", of(0, 23), of(0, 59), of(0, 59));
    let digits = of(0, 9) as usize;
    let fraction = if digits > 0 {
        format!(".{}", "9".repeat(digits))
    } else {
        String::new()
    };
    let zone = match of(0, 2) {
        0 => "Z".to_owned(),
        1 => format!("+{:02}:{:02}", of(0, 23), of(0, 59)),
        _ => format!("-{:02}:{:02}", of(0, 23), of(0, 59)),
    };
    format!("{date}T{hour}{fraction}{zone}")
}

fn integer(schema: &Value, dice: &mut fastrand::Rng) -> Value {
    let (least, most) = match schema["format"].as_str() {
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    // A schema writes its bounds as floating-point numbers.
    let bound = |name: &str| {
        let text = schema[name].as_f64().map(|bound| format!("{bound:.0}"));
        text.map(|text| text.parse::<i64>().unwrap())
    };
    let least = bound("minimum").unwrap_or(least).max(least);
    let most = bound("maximum").unwrap_or(most).min(most);
    [least, most, dice.i64(least..=most)][dice.usize(..3)].into()
}

fn number(schema: &Value, dice: &mut fastrand::Rng) -> Value {
    let least = schema["minimum"].as_f64().unwrap_or(-1e300);
    let most = schema["maximum"].as_f64().unwrap_or(1e300);
    json!([least, most, f64::midpoint(least, most)][dice.usize(..3)])
}
