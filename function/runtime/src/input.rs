//! The input of the pipeline step, which a Composition holds.

use serde_json::Value;

use crate::validation::{Violation, Violations};

/// The input of a request.
///
/// # Errors
///
/// There is none; `kind` is what it must be.
pub fn given<'a>(input: Option<&'a Value>, kind: &str) -> Result<&'a Value, Violations> {
    input.ok_or_else(|| {
        let problem = format!("is required: give the pipeline step a {kind} as its input");
        Violation::new("input", problem).into()
    })
}

/// What is wrong with an input's API version and kind. Crossplane checks neither.
pub fn check_kind(input: &Value, api_version: &str, kind: &str) -> Vec<Violation> {
    [("apiVersion", api_version), ("kind", kind)]
        .into_iter()
        .filter(|(field, must)| input.get(field).and_then(Value::as_str) != Some(must))
        .map(|(field, must)| Violation::new(format!("input.{field}"), format!("must be {must}")))
        .collect()
}
