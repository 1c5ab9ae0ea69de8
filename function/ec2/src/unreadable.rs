//! Observed resources with fields of an unknown shape.

use std::fmt;

use function_runtime::json::Json;
use function_runtime::object::ObservedObject;
use function_runtime::outcome::Problem;
use serde::de::DeserializeOwned;

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

/// The problems with the observed resources of one call. The function changes nothing while there
/// is one, but it still ends a run that is over.
#[derive(Clone, Debug, Default)]
pub struct Problems(Vec<Unreadable>);

impl Problems {
    /// A resource that can be read; none otherwise, and the problem is recorded.
    pub fn readable<T>(&mut self, read: Result<T, Unreadable>) -> Option<T> {
        read.map_err(|problem| self.0.push(problem)).ok()
    }

    /// The first problem.
    pub fn first(&self) -> Option<&Unreadable> {
        self.0.first()
    }
}

/// Reads the field at a path of an observed resource. `kind` and `provider` are for the message. A
/// missing field reads as null.
///
/// # Errors
///
/// The field has another type than in the known versions of the provider.
pub fn read<T: DeserializeOwned>(
    resource: &Json<'_>,
    path: &[&str],
    kind: &'static str,
    provider: &'static str,
) -> Result<T, Unreadable> {
    let found = resource.at(path).unwrap_or(&Json::Null);
    found.read().map_err(|problem| Unreadable {
        kind,
        name: ObservedObject::new(resource).name().to_owned(),
        field: path.join("."),
        problem: problem.to_string(),
        provider,
    })
}
