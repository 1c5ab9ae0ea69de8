//! Reads protobuf's encoding of JSON directly into a JSON tree.
//!
//! Some fields of an object's metadata are skipped: they are the largest part of most objects, and
//! no decision depends on them.

use function_runtime::json::{Json, Object};
use serde_json::Number;

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
pub fn object<'a>(message: &'a [u8], skipped: &[&str]) -> Result<Json<'a>, Malformed> {
    fields(message, |key, bytes| match key {
        "metadata" => metadata(bytes, skipped).map(Some),
        _ => value(bytes, LEVELS).map(Some),
    })
}

fn metadata<'a>(message: &'a [u8], skipped: &[&str]) -> Result<Json<'a>, Malformed> {
    let Some((5, Content::Bytes(object))) = kind(message)? else {
        return value(message, LEVELS);
    };
    fields(object, |key, bytes| {
        let read = (!skipped.contains(&key)).then(|| value(bytes, LEVELS - OBJECT));
        read.transpose()
    })
}

/// Reads an object. `read` reads the value of a field; none if the field is skipped.
fn fields<'a>(
    message: &'a [u8],
    read: impl Fn(&str, &'a [u8]) -> Result<Option<Json<'a>>, Malformed>,
) -> Result<Json<'a>, Malformed> {
    let mut fields = Fields::of(message);
    let mut object = Object::with_capacity(fields.messages());
    while let Some(bytes) = fields.next_message()? {
        let (key, bytes) = protobuf::entry(bytes)?;
        if let Some(value) = read(key, bytes)? {
            object.push(key, value);
        }
    }
    Ok(Json::Object(object))
}

fn value(message: &[u8], levels: u32) -> Result<Json<'_>, Malformed> {
    // Most values are texts.
    if let Some((3, text)) = protobuf::only(message) {
        return Ok(Json::Text(protobuf::text(text)?.into()));
    }
    Ok(match kind(message)? {
        Some((2, Content::Double(double))) => number(double),
        Some((3, Content::Bytes(bytes))) => Json::Text(protobuf::text(bytes)?.into()),
        Some((4, Content::Varint(bit))) => Json::Bool(bit != 0),
        Some((5, Content::Bytes(object))) => {
            let inner = levels.checked_sub(OBJECT).ok_or(Malformed);
            fields(object, |_, bytes| value(bytes, inner?).map(Some))?
        }
        Some((6, Content::Bytes(list))) => {
            let inner = levels.checked_sub(LIST).ok_or(Malformed);
            let mut fields = Fields::of(list);
            let mut items = Vec::with_capacity(fields.messages());
            while let Some(bytes) = fields.next_message()? {
                items.push(value(bytes, inner?)?);
            }
            Json::List(items)
        }
        None | Some((1, Content::Varint(_))) => Json::Null,
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

/// Converts a double, the only number type in protobuf's JSON. A whole number becomes an integer.
/// NaN and infinity, which JSON does not have, become null.
fn number(double: f64) -> Json<'static> {
    if double.fract() == 0.0 && double.abs() <= EXACT {
        #[allow(clippy::cast_possible_truncation, reason = "the fraction is zero")]
        let whole = double as i64;
        return Json::Number(whole.into());
    }
    Number::from_f64(double).map_or(Json::Null, Json::Number)
}
