//! The input of the pipeline step in a Composition.

use serde_json::Value;

use crate::validation::{Violation, Violations};

/// Returns the input of a request. `kind` is the expected kind, for the message.
///
/// # Errors
///
/// The pipeline step has no input.
pub fn given<'a>(input: Option<&'a Value>, kind: &str) -> Result<&'a Value, Violations> {
    input.ok_or_else(|| {
        let problem = format!("is required: give the pipeline step a {kind} as its input");
        Violation::new("input", problem).into()
    })
}

/// Checks the API version and the kind of an input, because Crossplane checks neither.
pub fn check_kind(input: &Value, api_version: &str, kind: &str) -> Vec<Violation> {
    [("apiVersion", api_version), ("kind", kind)]
        .into_iter()
        .filter(|(field, must)| input.get(field).and_then(Value::as_str) != Some(must))
        .map(|(field, must)| Violation::new(format!("input.{field}"), format!("must be {must}")))
        .collect()
}
