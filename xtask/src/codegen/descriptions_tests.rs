//! `kubectl explain` describes every kind and every field in a whole sentence.

use api::catalogue::Catalogue;
use api::dev_user::{DevUser, DevUserPolicy};
use api::flavor::{FlavorPolicy, WorkspaceFlavor};
use api::lease::SpotLease;
use api::limits::WorkspaceLimits;
use api::policy::WorkspacePolicy;
use api::pool::SpotPool;
use api::provider_config::{ClusterProviderConfig, ProviderConfig, ProviderConfigUsage};
use api::record::WorkspaceRecord;
use api::workspace::GpuDevWorkspace;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::{fields, kinds, patterns};

/// The problem with a description, if there is one.
fn problem(description: &str) -> Option<&'static str> {
    let begins = |c: char| c.is_ascii_uppercase() || c == '`';
    if description.is_empty() {
        Some("has no description")
    } else if description.split(' ').count() < 4 {
        Some("has fewer than four words")
    } else if !description.starts_with(begins) {
        Some("does not begin with an upper-case letter or with code")
    } else if !description.ends_with('.') {
        Some("does not end with a period")
    } else {
        None
    }
}

/// Collects the problems of a schema and of all fields below it. `path` begins with the kind. The
/// fields `apiVersion`, `kind` and `metadata` of a kind are Kubernetes' own, and no schema of a CRD or XRD
/// has them.
fn examine(path: &str, schema: &Value, problems: &mut Vec<String>) {
    // `kubectl explain` shows the description of a list or a map, and none of its entries.
    let is_entry = path.ends_with("[]") || path.ends_with(".*");
    let description = fields::description(schema);
    if let Some(problem) = problem(&description).filter(|_| !is_entry) {
        problems.push(format!("{path}: {problem}: {description}"));
    }
    for (path, schema) in fields::below(schema, path) {
        examine(&path, schema, problems);
    }
}

#[test]
fn whoever_asks_for_a_field_reads_a_sentence_about_it() {
    let mut problems = Vec::new();
    for section in kinds::sections().unwrap() {
        examine(section.kind, &section.schema, &mut problems);
    }
    // The reference leaves this kind out, because only the provider writes it.
    let usage = patterns::crd::<ProviderConfigUsage>().unwrap();
    let schema = &usage["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    examine("ProviderConfigUsage", schema, &mut problems);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_description_that_explains_nothing_is_found() {
    let schema = json!({"description": "Shows what a thing is.", "properties": {
        "id": {"description": "AMI id."},
        "list": {"description": "Its list of all things.", "items": {"properties": {"none": {}}}},
        "map": {"description": "all of its other things", "additionalProperties": {"properties": {
            "code": {"description": "`code` begins this one."},
            "open": {"description": "This has no end"},
        }}},
    }});
    let mut problems = Vec::new();
    examine("Thing", &schema, &mut problems);
    let expected = [
        "Thing.id: has fewer than four words: AMI id.",
        "Thing.list[].none: has no description: ",
        "Thing.map: does not begin with an upper-case letter or with code: all of its other things",
        "Thing.map.*.open: does not end with a period: This has no end",
    ];
    assert_eq!(problems, expected);
}

/// The schema of a type before kube changes it.
fn raw<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    Value::from(settings.into_generator().into_root_schema_for::<T>())
}

/// Collects the optional fields whose type has a description of its own.
fn overridden(path: &str, schema: &Value, found: &mut Vec<String>) {
    let alternatives = schema["anyOf"].as_array();
    if alternatives.is_some_and(|any| any.iter().any(|one| one["description"].is_string())) {
        found.push(path.to_owned());
    }
    for (path, schema) in fields::below(schema, path) {
        overridden(&path, schema, found);
    }
}

/// kube's `OptionalEnum` replaces the description of an optional field with that of its type, which
/// does not say what the field is for.
#[test]
fn an_optional_field_keeps_its_own_description() {
    let mut found = Vec::new();
    for (kind, schema) in [
        ("GpuDevWorkspace", raw::<GpuDevWorkspace>()),
        ("WorkspaceFlavor", raw::<WorkspaceFlavor>()),
        ("DevUser", raw::<DevUser>()),
        ("WorkspaceRecord", raw::<WorkspaceRecord>()),
        ("SpotPool", raw::<SpotPool>()),
        ("SpotLease", raw::<SpotLease>()),
        ("ProviderConfig", raw::<ProviderConfig>()),
        ("ClusterProviderConfig", raw::<ClusterProviderConfig>()),
        ("ProviderConfigUsage", raw::<ProviderConfigUsage>()),
        ("WorkspacePolicy", raw::<WorkspacePolicy>()),
        ("DevUserPolicy", raw::<DevUserPolicy>()),
        ("FlavorPolicy", raw::<FlavorPolicy>()),
        ("Catalogue", raw::<Catalogue>()),
        ("WorkspaceLimits", raw::<WorkspaceLimits>()),
    ] {
        overridden(kind, &schema, &mut found);
    }
    assert!(
        found.is_empty(),
        "give these enums `#[schemars(description = \"\")]`: {found:?}"
    );
}
