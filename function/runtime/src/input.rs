//! The input of the pipeline step in a Composition.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::validation::{Schema, Violation, Violations};

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

/// Validates and reads an input of this API version and kind. Violations name fields under `input`.
///
/// # Errors
///
/// The input is of another kind, or does not match the schema.
pub fn read<T: DeserializeOwned + JsonSchema>(
    schema: &Schema<T>,
    input: &Value,
    api_version: &str,
    kind: &str,
) -> Result<T, Violations> {
    let policy = schema.read(input)?;
    Violations::into_result(check_kind(input, api_version, kind))?;
    Ok(policy)
}

/// Checks the API version and the kind of an input, because Crossplane checks neither.
pub fn check_kind(input: &Value, api_version: &str, kind: &str) -> Vec<Violation> {
    [("apiVersion", api_version), ("kind", kind)]
        .into_iter()
        .filter(|(field, must)| input.get(field).and_then(Value::as_str) != Some(must))
        .map(|(field, must)| Violation::new(format!("input.{field}"), format!("must be {must}")))
        .collect()
}
