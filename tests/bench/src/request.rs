//! The request that the benchmark sends: a golden case of the function, with the fields that an API
//! server and a provider add to every resource.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use function_sdk_rust::proto::v1::RunFunctionRequest;
use prost::Message as _;
use serde_json::Value;

use crate::{Outcome, managed_fields};

/// The function's golden cases.
const CASES: &str = "function/tests/cases";
/// The benchmark's changes to one of the golden cases.
const CHANGES: &str = "tests/bench/request.yaml";

/// A request, and the same request encoded. The benchmark encodes it only once, so that the figures
/// do not include this work of the client.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// The request.
    pub(crate) message: RunFunctionRequest,
    /// The encoded request.
    pub(crate) bytes: Bytes,
}

impl Measured {
    /// The encoded size in KiB.
    pub(crate) fn kib(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "far smaller than 2^52")]
        let bytes = self.bytes.len() as f64;
        bytes / 1024.0
    }
}

/// Reads the request.
pub(crate) fn load(root: &Path) -> Outcome<Measured> {
    let mut request = extended(root, &root.join(CHANGES))?;
    if let Some(observed) = request.get_mut("observed").and_then(Value::as_object_mut) {
        let composed = observed.get_mut("resources").and_then(Value::as_object_mut);
        let composed = composed.into_iter().flat_map(|map| map.values_mut());
        for resource in composed.filter_map(|resource| resource.get_mut("resource")) {
            managed_fields::add(resource);
        }
        if let Some(composite) = observed.get_mut("composite") {
            managed_fields::add(&mut composite["resource"]);
        }
    }
    let message: RunFunctionRequest = serde_json::from_value(request)?;
    let bytes = Bytes::from(message.encode_to_vec());
    Ok(Measured { message, bytes })
}

/// Reads a request file. If the file `extends` a golden case, the request is that case, with the
/// JSON merge patch `change` applied to it.
fn extended(root: &Path, file: &Path) -> Outcome<Value> {
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let written: Value =
        serde_yaml::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    let Some(base) = written.get("extends").and_then(Value::as_str) else {
        return Ok(written);
    };
    let base = root.join(CASES).join(base).join("request.yaml");
    let mut request = extended(root, &base)?;
    if let Some(change) = written.get("change") {
        json_patch::merge(&mut request, change);
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_request_is_of_the_size_that_the_figures_are_quoted_for() {
        let measured = load(&crate::root()).unwrap();
        let observed = measured.message.observed.unwrap();
        assert!(observed.resources.len() >= 8);
        let size = measured.bytes.len();
        assert!((36 * 1024..44 * 1024).contains(&size), "{size} bytes");
    }
}
