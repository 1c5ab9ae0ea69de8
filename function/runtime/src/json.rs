//! A JSON tree that borrows its texts from the encoded request.
//!
//! A request has thousands of values, and a decision reads a few hundred of them. In the tree of
//! `serde_json` each key and each text is a string of its own, and each object a search tree. To
//! build and free these took half of a call's time.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

mod read;

/// A JSON value.
#[derive(Clone, Debug, Default)]
pub enum Json<'a> {
    /// Null.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Json<'a>>),
    /// An object.
    Object(Object<'a>),
}

/// The fields of an object, in the order in which they arrived. If a key occurs twice, the last one
/// counts, as in a map of protobuf.
#[derive(Clone, Debug, Default)]
pub struct Object<'a>(Vec<(Cow<'a, str>, Json<'a>)>);

impl<'a> Object<'a> {
    /// An object with room for some fields.
    pub fn with_capacity(fields: usize) -> Self {
        Self(Vec::with_capacity(fields))
    }

    /// Adds a field.
    pub fn push(&mut self, key: &'a str, value: Json<'a>) {
        self.0.push((Cow::Borrowed(key), value));
    }

    /// The value of a field.
    pub fn get(&self, key: &str) -> Option<&Json<'a>> {
        // Most objects have few fields.
        let mut fields = self.0.iter().rev();
        fields.find(|(of, _)| of == key).map(|(_, value)| value)
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields, in no particular order. A key may occur twice; the last one counts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json<'a>)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }
}

impl<'a> Json<'a> {
    /// The value of an object's field; none if there is none, or if this is no object.
    pub fn get(&self, key: &str) -> Option<&Json<'a>> {
        self.as_object()?.get(key)
    }

    /// The value at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Json<'a>> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The value at a JSON pointer without escapes, for example `/spec/subjects/0`.
    pub fn pointer(&self, pointer: &str) -> Option<&Json<'a>> {
        let mut steps = pointer.split('/').skip(1);
        steps.try_fold(self, |value, step| match value {
            Self::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => value.get(step),
        })
    }

    /// The text; none for another value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean; none for another value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The whole number; none for another value.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Number(number) => number.as_i64(),
            _ => None,
        }
    }

    /// The number; none for another value.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    /// The items of the list; none for another value.
    pub fn as_list(&self) -> Option<&[Json<'a>]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The fields of the object; none for another value.
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The fields of the object, in no particular order; none for another value. A key may occur twice;
    /// the last one counts.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Json<'a>)> {
        self.as_object().into_iter().flat_map(Object::iter)
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Reads a typed value.
    ///
    /// # Errors
    ///
    /// The value has another shape. The first problem in the order of the keys is named, so the
    /// message is the same in every call, although the fields arrive in another order each time.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(self).or_else(|_| serde_json::from_value(self.into()))
    }

    /// The same tree with texts of its own.
    pub fn into_owned(self) -> Json<'static> {
        match self {
            Self::Null => Json::Null,
            Self::Bool(truth) => Json::Bool(truth),
            Self::Number(number) => Json::Number(number),
            Self::Text(text) => Json::Text(text.into_owned().into()),
            Self::List(items) => Json::List(items.into_iter().map(Json::into_owned).collect()),
            Self::Object(Object(fields)) => {
                let fields = fields.into_iter();
                let owned =
                    fields.map(|(key, value)| (key.into_owned().into(), value.into_owned()));
                Json::Object(Object(owned.collect()))
            }
        }
    }
}

impl PartialEq for Json<'_> {
    fn eq(&self, other: &Self) -> bool {
        Value::from(self) == Value::from(other)
    }
}

impl From<&Json<'_>> for Value {
    fn from(json: &Json<'_>) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(truth) => Self::Bool(*truth),
            Json::Number(number) => Self::Number(number.clone()),
            Json::Text(text) => Self::String(text.to_string()),
            Json::List(items) => Self::Array(items.iter().map(Self::from).collect()),
            Json::Object(object) => Self::Object(object.into()),
        }
    }
}

impl From<&Object<'_>> for Map<String, Value> {
    fn from(object: &Object<'_>) -> Self {
        let fields = object.iter();
        fields
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect()
    }
}

impl From<Value> for Json<'static> {
    fn from(value: Value) -> Self {
        Json::from(&value).into_owned()
    }
}

impl<'a> From<&'a Value> for Json<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text(text.into()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(fields) => {
                let fields = fields.iter();
                let fields = fields.map(|(key, value)| (key.into(), Self::from(value)));
                Self::Object(Object(fields.collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests;
