//! The observed resources of the cases are such as the API server may hold: with the fields
//! of the generated schemas, and no others. A field of an older version would let a case
//! pass that no cluster can show.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// Their point is a resource of a shape that the schema does not have.
const UNREADABLE: [&str; 3] = [
    "pool-unreadable",
    "modern-pool-unreadable",
    "refused-pool-unreadable",
];

#[test]
fn observed_pools_have_the_fields_of_their_schema() {
    let path = "../package/provider/crds/gpu.platform.acme.io_spotpools.yaml";
    let mut of_pool = schema(path);
    for field in ["apiVersion", "kind", "metadata"] {
        of_pool["properties"][field] = json!({});
    }
    let pool = validator(&of_pool);
    let mut seen = 0;
    let mut problems = Vec::new();
    for name in case::names() {
        let request = case::request_json(&name);
        let resources = request.pointer("/observed/resources");
        let resources = resources.and_then(Value::as_object).into_iter().flatten();
        for (resource, observed) in resources {
            let object = &observed["resource"];
            if object["kind"] != "SpotPool" || UNREADABLE.contains(&name.as_str()) {
                continue;
            }
            seen += 1;
            for problem in pool.iter_errors(object) {
                let path = problem.instance_path();
                problems.push(format!("{name}: {resource}: {path}: {problem}"));
            }
        }
    }
    assert!(seen > 10, "only {seen} pools are observed");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn observed_statuses_have_the_fields_of_their_schema() {
    let path = "../xrds/gpudevworkspaces.platform.acme.io.yaml";
    let mut of_xr = schema(path)["properties"]["status"].clone();
    // Crossplane's own.
    of_xr["properties"]["conditions"] = json!({"type": "array"});
    of_xr["properties"]["claimConditionTypes"] = json!({"type": "array"});
    of_xr["properties"]["connectionDetails"] = json!({"type": "object"});
    let status = validator(&of_xr);
    let mut seen = 0;
    let mut problems = Vec::new();
    for name in case::names() {
        let request = case::request_json(&name);
        let composite = request.pointer("/observed/composite/resource");
        let observed = composite.and_then(|composite| composite.get("status"));
        let Some(observed) = observed.filter(|_| case::is_workspace(&name)) else {
            continue;
        };
        seen += 1;
        for problem in status.iter_errors(observed) {
            let path = problem.instance_path();
            problems.push(format!("{name}: status{path}: {problem}"));
        }
    }
    assert!(seen > 10, "only {seen} statuses are observed");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The schema of the first version of a CRD or XRD.
fn schema(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let definition: Value = serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema");
    schema.unwrap().clone()
}

fn validator(schema: &Value) -> jsonschema::Validator {
    let mut closed = schema.clone();
    close(&mut closed);
    jsonschema::validator_for(&closed).unwrap()
}

/// The API server prunes fields that a schema does not name.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
