//! Observed resources with fields of an unknown shape.

use std::fmt;

use function_runtime::object::ObservedObject;
use function_runtime::outcome::Problem;
use serde::Deserialize;
use serde_json::Value;

/// An observed resource with a field of an unknown shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    kind: &'static str,
    name: String,
    field: String,
    problem: String,
    provider: &'static str,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            name,
            field,
            problem,
            provider,
        } = self;
        write!(
            f,
            "{kind} {name}: {field} has an unknown shape ({problem}); check that the versions of \
             {provider} and function-gpu-workspace fit"
        )
    }
}

impl Problem for Unreadable {
    fn reason(&self) -> &'static str {
        "ResourceUnreadable"
    }
}

/// Reads the field at a path of an observed resource. `kind` and `provider` are for the message. A
/// missing field reads as null.
///
/// # Errors
///
/// The field has another type than in the known versions of the provider.
pub fn read<T: for<'de> Deserialize<'de>>(
    resource: &Value,
    path: &[&str],
    kind: &'static str,
    provider: &'static str,
) -> Result<T, Unreadable> {
    let found = path.iter().try_fold(resource, |at, key| at.get(key));
    T::deserialize(found.unwrap_or(&Value::Null)).map_err(|problem| Unreadable {
        kind,
        name: ObservedObject::new(resource).name().to_owned(),
        field: path.join("."),
        problem: problem.to_string(),
        provider,
    })
}
