//! Values that no client should send.

use function_sdk_rust::proto::v1::{Resource, RunFunctionRequest, State};
use pbjson_types::value::Kind;
use pbjson_types::{Struct, Value as Pb};
use serde_json::{Value, json};

use crate::dice::Dice;

/// Texts that stand for extreme numbers. JSON cannot write the first three.
const NUMBERS: [(&str, f64); 4] = [
    ("\u{1}NaN", f64::NAN),
    ("\u{1}Infinity", f64::INFINITY),
    ("\u{1}-Infinity", f64::NEG_INFINITY),
    ("\u{1}1e308", 1e308),
];

/// Texts that have a special meaning in some format.
const TEXTS: [&str; 28] = [
    "",
    " ",
    "-",
    "true",
    "null",
    "0",
    "*",
    "..",
    "../../etc/passwd",
    "\0",
    "\u{feff}\u{202e}evil",
    "ünïcode-ключ-鍵",
    "a\nb: c\n- d",
    "'\"; DROP TABLE",
    "{{ .Values }}",
    "$(reboot)",
    "ssh-ed25519 AAAA== x\nssh-rsa AAAA",
    "0.0.0.0/0",
    "10.0.0.0/8",
    "300.1.1.1/24",
    "-1",
    "1e400",
    "9223372036854775808",
    "spec.forProvider.instanceTypes[99999999999999999999]",
    "spec.forProvider.image",
    "api error ",
    "RequestID: ",
    "spec.forProvider.",
];

/// Composition resource names: names that the function uses, similar names, and names of other
/// steps.
pub const KEYS: [&str; 34] = [
    "pool",
    "pool-01234567",
    "pool-deadbeef",
    "instance-01234567",
    "instance-89abcdef",
    "security-group",
    "egress",
    "home",
    "home-attachment-01234567",
    "home-attachment-89abcdef",
    "ssh-10-1-0-0-16",
    "ssh-203-0-113-0-24",
    "usage-home-by-home-attachment-01234567",
    "usage-security-group-by-instance-01234567",
    "usage-instance-01234567-by-home-attachment-01234567",
    "bucket",
    "instance",
    "instance-",
    "instance-bastion",
    "instance-0123456",
    "instance-0123456G",
    "pool-",
    "pools",
    "poolparty",
    "ssh-keys",
    "ssh-+1-2-3-4-5",
    "ssh-001-2-3-4-5",
    "ssh-256-0-0-0-0",
    "home-backup",
    "home-attachment-",
    "usage-bucket-by-pool",
    "usage-home-by-usage-home-by-pool",
    "Pool",
    "",
];

/// A random value of any type.
pub fn value(dice: &mut Dice) -> Value {
    match dice.below(14) {
        0 => Value::Null,
        1 => json!(dice.percent(50)),
        2 => json!(*dice.pick(&[0, 1, -1, 7, 80, 65536, i64::MAX, i64::MIN])),
        3 => json!(*dice.pick(&[0.5, -0.0, 1e18, 9_007_199_254_740_993.0, 1.5e-300])),
        4 => json!(dice.pick(&NUMBERS).0),
        5 => json!([]),
        6 => json!({}),
        7 => json!([null, 1, "a", {}, []]),
        8 => json!({"a": {"b": [1, null]}, "": "", "\0": 1}),
        9 => json!({"name": 1, "namespace": [], "labels": "x", "annotations": 3}),
        10 => nested(dice),
        11 => json!(long(dice)),
        _ => json!(*dice.pick(&TEXTS)),
    }
}

/// A value that nests deeper than any real manifest, but not deeper than the protocol allows.
fn nested(dice: &mut Dice) -> Value {
    let depth = *dice.pick(&[3, 10, 20]);
    let is_list = dice.percent(50);
    (0..depth).fold(json!("deep"), |inner, _| {
        if is_list {
            json!([inner])
        } else {
            json!({"a": inner})
        }
    })
}

/// A text of mostly a few hundred bytes, and sometimes as large as etcd accepts.
fn long(dice: &mut Dice) -> String {
    let length = match dice.below(400) {
        0 => 1_200_000,
        1..=5 => 60_000,
        6..=60 => 5_000,
        _ => 300,
    };
    let unit = *dice.pick(&[
        "x",
        "-",
        "ä",
        "a b ",
        "[0]",
        "RequestID: ",
        "spec.forProvider.",
    ]);
    unit.repeat(length / unit.len())
}

/// Replaces the texts of `NUMBERS` in a request by their numbers.
pub fn with_numbers(request: &mut RunFunctionRequest) {
    let in_struct = |fields: &mut Option<Struct>| {
        for value in fields.iter_mut().flat_map(|s| s.fields.values_mut()) {
            put_numbers(value);
        }
    };
    let in_resource = |resource: &mut Resource| in_struct(&mut resource.resource);
    let in_state = |state: &mut Option<State>| {
        if let Some(state) = state {
            state.composite.iter_mut().for_each(in_resource);
            state.resources.values_mut().for_each(in_resource);
        }
    };
    in_struct(&mut request.input);
    in_struct(&mut request.context);
    in_state(&mut request.observed);
    in_state(&mut request.desired);
    for found in request.required_resources.values_mut() {
        found.items.iter_mut().for_each(in_resource);
    }
}

fn put_numbers(value: &mut Pb) {
    match &mut value.kind {
        Some(Kind::StringValue(text)) => {
            if let Some((_, number)) = NUMBERS.iter().find(|(name, _)| name == text) {
                value.kind = Some(Kind::NumberValue(*number));
            }
        }
        Some(Kind::StructValue(fields)) => fields.fields.values_mut().for_each(put_numbers),
        Some(Kind::ListValue(list)) => list.values.iter_mut().for_each(put_numbers),
        _ => {}
    }
}
