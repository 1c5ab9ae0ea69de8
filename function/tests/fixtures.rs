//! The observed resources of the cases must have the fields of the generated schemas, and no
//! others, because the API server holds no others. With a field of an older version, a case could
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

/// These cases test a resource whose shape does not match the schema.
const UNREADABLE: [&str; 2] = ["modern-pool-unreadable", "refused-pool-unreadable"];

#[test]
fn observed_pools_have_the_fields_of_their_schema() {
    let mut pool = schema("../package/provider/crds/gpu.platform.acme.io_spotpools.yaml");
    for field in ["apiVersion", "kind", "metadata"] {
        pool["properties"][field] = json!({});
    }
    let cases = case::names().into_iter();
    let pools = cases
        .filter(|name| !UNREADABLE.contains(&name.as_str()))
        .flat_map(|name| {
            let request = case::request_json(&name);
            let resources = request.pointer("/observed/resources");
            let resources = resources.and_then(Value::as_object).cloned();
            let objects = resources.into_iter().flatten();
            objects.map(move |(resource, observed)| {
                (format!("{name}: {resource}"), observed["resource"].clone())
            })
        })
        .filter(|(_, object)| object["kind"] == "SpotPool");
    assert_fit(pool, pools);
}

#[test]
fn observed_statuses_have_the_fields_of_their_schema() {
    let xr = schema("../xrds/gpudevworkspaces.platform.acme.io.yaml");
    let mut status = xr["properties"]["status"].clone();
    // Crossplane writes these fields itself, so the XRD does not name them.
    status["properties"]["conditions"] = json!({"type": "array"});
    status["properties"]["claimConditionTypes"] = json!({"type": "array"});
    status["properties"]["connectionDetails"] = json!({"type": "object"});
    let cases = case::names().into_iter();
    let statuses = cases
        .filter(|name| case::is_workspace(name))
        .filter_map(|name| {
            let request = case::request_json(&name);
            let status = request.pointer("/observed/composite/resource/status");
            Some((format!("{name}: status"), status?.clone()))
        });
    assert_fit(status, statuses);
}

/// Asserts that each object has the fields of the schema and no others.
fn assert_fit(mut schema: Value, objects: impl Iterator<Item = (String, Value)>) {
    close(&mut schema);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut seen = 0;
    let mut problems = Vec::new();
    for (name, object) in objects {
        seen += 1;
        for problem in validator.iter_errors(&object) {
            let path = problem.instance_path();
            problems.push(format!("{name}{path}: {problem}"));
        }
    }
    assert!(seen > 10, "only {seen} objects are observed");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The schema of the first version of a CRD or XRD.
fn schema(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let definition: Value = serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema");
    schema.unwrap().clone()
}

/// Forbids unknown fields in a schema, because the API server prunes them.
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
