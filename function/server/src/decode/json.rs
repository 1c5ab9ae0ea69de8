//! Reads protobuf's encoding of JSON directly into a JSON tree.
//!
//! Some fields of an object's metadata are skipped: they are the largest part of most objects, and
//! no decision depends on them.

use serde_json::{Map, Number, Value};

use crate::decode::protobuf::{self, Content, Fields, Malformed, once};

/// The deepest nesting of objects and lists, in prost's levels. prost counts every message and
/// every entry of a map, and reads 100 levels. Six levels are around an object and its innermost
/// value.
const LEVELS: u32 = 94;
/// The levels of an object: the value, the object, and an entry of the object.
const OBJECT: u32 = 3;
/// The levels of a list: the value and the list.
const LIST: u32 = 2;
/// Up to this number, a double represents every integer exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// The metadata fields of a composed resource that are skipped. Only Kubernetes and Crossplane need
/// them.
pub const COMPOSED: &[&str] = &[
    "managedFields",
    "ownerReferences",
    "finalizers",
    "generateName",
    "resourceVersion",
];
/// The metadata fields of a required resource that are skipped. Its owner references are read: they
/// say which object made a pod.
pub const REQUIRED: &[&str] = &[
    "managedFields",
    "finalizers",
    "generateName",
    "resourceVersion",
];

/// Reads a `google.protobuf.Struct` without the `skipped` metadata fields.
///
/// # Errors
///
/// The bytes are not such a message, or it nests too deep.
pub fn object(message: &[u8], skipped: &[&str]) -> Result<Value, Malformed> {
    fields(message, |key, bytes| match key {
        "metadata" => metadata(bytes, skipped),
        _ => value(bytes, LEVELS),
    })
}

fn metadata(message: &[u8], skipped: &[&str]) -> Result<Value, Malformed> {
    let Some((5, Content::Bytes(object))) = kind(message)? else {
        return value(message, LEVELS);
    };
    let mut entries = Map::new();
    let mut fields = Fields::of(object);
    while let Some(bytes) = message_in(&mut fields)? {
        let (key, bytes) = protobuf::entry(bytes)?;
        if !skipped.contains(&key) {
            entries.insert(key.to_owned(), value(bytes, LEVELS - OBJECT)?);
        }
    }
    Ok(entries.into())
}

fn fields<'a>(
    message: &'a [u8],
    read: impl Fn(&str, &'a [u8]) -> Result<Value, Malformed>,
) -> Result<Value, Malformed> {
    let mut entries = Map::new();
    let mut fields = Fields::of(message);
    while let Some(bytes) = message_in(&mut fields)? {
        let (key, bytes) = protobuf::entry(bytes)?;
        entries.insert(key.to_owned(), read(key, bytes)?);
    }
    Ok(entries.into())
}

fn value(message: &[u8], levels: u32) -> Result<Value, Malformed> {
    Ok(match kind(message)? {
        Some((2, Content::Double(double))) => number(double),
        Some((3, Content::Bytes(bytes))) => protobuf::text(bytes)?.into(),
        Some((4, Content::Varint(bit))) => (bit != 0).into(),
        Some((5, Content::Bytes(object))) => {
            let inner = levels.checked_sub(OBJECT).ok_or(Malformed);
            fields(object, |_, bytes| value(bytes, inner?))?
        }
        Some((6, Content::Bytes(list))) => {
            let inner = levels.checked_sub(LIST).ok_or(Malformed);
            let mut items = Vec::new();
            let mut fields = Fields::of(list);
            while let Some(bytes) = message_in(&mut fields)? {
                items.push(value(bytes, inner?)?);
            }
            items.into()
        }
        None | Some((1, Content::Varint(_))) => Value::Null,
        Some(_) => return Err(Malformed),
    })
}

/// Reads the kind of a `Value` and its content.
#[inline]
fn kind(message: &[u8]) -> Result<Option<(u64, Content<'_>)>, Malformed> {
    match protobuf::only(message) {
        Some((number @ 1..=6, content)) => Ok(Some((number, Content::Bytes(content)))),
        _ => any_kind(message),
    }
}

fn any_kind(message: &[u8]) -> Result<Option<(u64, Content<'_>)>, Malformed> {
    let mut kind = None;
    let mut fields = Fields::of(message);
    while let Some((number, content)) = fields.next_field()? {
        if (1..=6).contains(&number) {
            once(&mut kind, (number, content))?;
        }
    }
    Ok(kind)
}

/// Reads the next message in field 1: an entry of a map or an item of a list.
fn message_in<'a>(fields: &mut Fields<'a>) -> Result<Option<&'a [u8]>, Malformed> {
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Content::Bytes(bytes)) => return Ok(Some(bytes)),
            (1, _) => return Err(Malformed),
            _ => {}
        }
    }
    Ok(None)
}

/// Converts a double, the only number type in protobuf's JSON. A whole number becomes an integer.
/// NaN and infinity, which JSON does not have, become null.
fn number(double: f64) -> Value {
    if double.fract() == 0.0 && double.abs() <= EXACT {
        #[allow(clippy::cast_possible_truncation, reason = "the fraction is zero")]
        let whole = double as i64;
        return whole.into();
    }
    Number::from_f64(double).map_or(Value::Null, Value::Number)
}
