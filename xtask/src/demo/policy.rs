//! The policies of the demo's cluster.

use std::error::Error;

use serde_json::{Value, json};

use crate::process::output;
use crate::target::Resolved;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Changes the policy in a Composition of this cluster.
pub(super) fn change(
    target: &Resolved,
    composition: &str,
    change: impl FnOnce(&mut Value),
) -> Outcome<()> {
    let name = format!("composition/{composition}");
    let mut get = target.kubectl();
    get.args(["get", &name, "-o", "jsonpath={.spec.pipeline[0].input}"]);
    let mut input = serde_json::from_str(&output(&mut get)?)?;
    change(&mut input);
    let patch = json!([{"op": "replace", "path": "/spec/pipeline/0/input", "value": input}]);
    let mut put = target.kubectl();
    output(put.args(["patch", &name, "--type=json", "--patch", &patch.to_string()]))?;
    Ok(())
}
