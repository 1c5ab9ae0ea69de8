//! `EnvironmentConfig`s, which hold the catalogue and the platform's limits.

use function_runtime::json::{Json, Object};
use function_runtime::requirement::{Requirement, Selector};
use serde_json::Value;

/// The kind of the objects.
pub(crate) const KIND: &str = "EnvironmentConfig";

/// The requirement `requirement` for the `EnvironmentConfig` `config`.
pub(crate) fn requirement(requirement: String, config: &str) -> Requirement {
    Requirement {
        name: requirement,
        api_version: "apiextensions.crossplane.io/v1beta1",
        kind: KIND,
        selector: Selector::Named(config.to_owned()),
    }
}

/// The data of an `EnvironmentConfig`; none if it has no entry, for example because the platform team
/// emptied it by mistake.
pub(crate) fn data(config: &Json<'_>) -> Option<Value> {
    let is_empty =
        |data: &Json<'_>| data.is_null() || data.as_object().is_some_and(Object::is_empty);
    let data = config.get("data").filter(|data| !is_empty(data));
    data.map(Value::from)
}
