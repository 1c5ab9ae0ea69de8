//! Each test breaks one small definition in one way.

use serde_json::{Value, json};

use super::change::Rule;
use super::definition::{Definition, compare};

/// A composite with claims and one version. `spec` is the schema of its spec.
fn definition(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "as.test"},
        "spec": {
            "group": "test",
            "scope": "LegacyCluster",
            "names": {"kind": "A", "plural": "as"},
            "claimNames": {"kind": "AClaim", "plural": "aclaims", "shortNames": ["ac"]},
            "connectionSecretKeys": ["host", "port"],
            "defaultCompositionRef": {"name": "as"},
            "versions": [{
                "name": "v1",
                "served": true,
                "referenceable": true,
                "additionalPrinterColumns": [{"name": "SIZE", "jsonPath": ".spec.size"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": spec,
                    "status": {"type": "object", "properties": {
                        "phase": {"type": "string", "enum": ["Ready", "Lost"]},
                    }},
                }}},
            }],
        },
    })
}

fn fields() -> Value {
    json!({
        "type": "object",
        "required": ["owner"],
        "properties": {
            "owner": {"type": "string", "minLength": 1, "maxLength": 63},
            "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
            "market": {"type": "string", "enum": ["Spot", "OnDemand"]},
            "note": {"type": "string"},
            "zone": {"type": "string", "pattern": "^[a-z]+$"},
            "keys": {"type": "array", "maxItems": 5, "items": {"type": "string"}},
            "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "x-kubernetes-validations": [{"rule": "self.size > 0"}],
    })
}

/// The findings after editing the definition. An edit sets the value at a JSON pointer; null
/// removes the value.
fn found(edits: &[(&str, Value)]) -> Vec<(String, Rule)> {
    let old = definition(&fields());
    let mut new = old.clone();
    for (pointer, value) in edits {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = new.pointer_mut(parent).unwrap();
        match (parent, value) {
            (Value::Object(parent), Value::Null) => {
                parent.remove(key);
            }
            (Value::Object(parent), value) => {
                parent.insert(key.to_owned(), value.clone());
            }
            (parent, value) => parent[key.parse::<usize>().unwrap()] = value.clone(),
        }
    }
    let packaged = |body: Value| Definition {
        package: "configuration-a".into(),
        body,
    };
    let changes = compare(&[packaged(old)], &[packaged(new)]);
    let shown = changes.into_iter().map(|change| {
        assert!(!change.what.is_empty());
        (change.field, change.rule)
    });
    shown.collect()
}

const SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

/// The same, with pointers below the schema of `spec`.
fn in_spec(edits: &[(&str, Value)]) -> Vec<(String, Rule)> {
    let paths: Vec<String> = edits.iter().map(|(at, _)| format!("{SPEC}{at}")).collect();
    let edits: Vec<(&str, Value)> = paths
        .iter()
        .map(String::as_str)
        .zip(edits.iter().map(|(_, value)| value.clone()))
        .collect();
    found(&edits)
}

fn one(field: &str, rule: Rule) -> Vec<(String, Rule)> {
    vec![(field.to_owned(), rule)]
}

#[test]
fn what_is_only_added_or_loosened_breaks_nobody() {
    let nothing: Vec<(String, Rule)> = Vec::new();
    assert_eq!(found(&[]), nothing);
    let loosened = in_spec(&[
        (
            "/properties/more",
            json!({"type": "string", "maxLength": 1}),
        ),
        ("/properties/size/maximum", json!(99)),
        ("/properties/size/minimum", Value::Null),
        ("/properties/owner/minLength", Value::Null),
        (
            "/properties/market/enum",
            json!(["Spot", "OnDemand", "Any"]),
        ),
        ("/properties/note/nullable", json!(true)),
        ("/properties/note/description", json!("other words")),
        ("/x-kubernetes-validations", json!([])),
        ("/required", json!([])),
    ]);
    assert_eq!(loosened, nothing);
    let columns = found(&[("/spec/versions/0/additionalPrinterColumns", json!([]))]);
    assert_eq!(columns, nothing);
    let claims = found(&[(
        "/spec/versions",
        json!([
            {"name": "v2", "served": true},
            definition(&fields())["spec"]["versions"][0],
        ]),
    )]);
    assert_eq!(claims, nothing);
}

#[test]
fn a_removed_definition_is_found() {
    let old = Definition {
        package: "configuration-a".into(),
        body: definition(&fields()),
    };
    let moved = Definition {
        package: "configuration-b".into(),
        ..old.clone()
    };
    let changes = compare(&[old], &[moved]);
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].rule, Rule::DefinitionRemoved);
}

#[test]
fn a_changed_name_is_found() {
    for (pointer, field) in [
        ("/spec/group", "spec.group"),
        ("/spec/names/plural", "spec.names.plural"),
        ("/spec/names/kind", "spec.names.kind"),
        ("/spec/claimNames/plural", "spec.claimNames.plural"),
        ("/spec/claimNames/kind", "spec.claimNames.kind"),
        ("/apiVersion", "apiVersion"),
    ] {
        let found = found(&[(pointer, json!("other"))]);
        assert_eq!(found, one(field, Rule::NamesChanged));
    }
    let short = found(&[("/spec/claimNames/shortNames", Value::Null)]);
    assert_eq!(short, one("spec.claimNames.shortNames", Rule::NamesChanged));
}

#[test]
fn a_changed_scope_is_found() {
    let found = found(&[("/spec/scope", json!("Namespaced"))]);
    assert_eq!(found, one("spec.scope", Rule::ScopeChanged));
}

#[test]
fn a_version_that_is_gone_or_not_served_is_found() {
    let gone = found(&[("/spec/versions/0/name", json!("v2"))]);
    assert_eq!(gone, one("v1", Rule::VersionRemoved));
    let unserved = found(&[("/spec/versions/0/served", json!(false))]);
    assert_eq!(unserved, one("v1", Rule::VersionRemoved));
    let unnamed = found(&[("/spec/versions/0/referenceable", json!(false))]);
    assert_eq!(unnamed, one("v1", Rule::VersionRemoved));
}

#[test]
fn a_removed_field_is_found() {
    let written = in_spec(&[("/properties/note", Value::Null)]);
    assert_eq!(written, one("v1 spec.note", Rule::FieldRemoved));
    let keys = in_spec(&[("/properties/tags/additionalProperties", Value::Null)]);
    assert_eq!(keys, one("v1 spec.tags.*", Rule::FieldRemoved));
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
    let read = found(&[(&format!("{status}/properties/phase"), Value::Null)]);
    assert_eq!(read, one("v1 status.phase", Rule::FieldRemoved));
}

#[test]
fn a_field_that_becomes_required_is_found() {
    let optional = in_spec(&[("/required", json!(["owner", "note"]))]);
    assert_eq!(optional, one("v1 spec.note", Rule::NewlyRequired));
    let added = in_spec(&[
        ("/required", json!(["owner", "more"])),
        ("/properties/more", json!({"type": "string"})),
    ]);
    assert_eq!(added, one("v1 spec.more", Rule::NewlyRequired));
    let with_a_default = in_spec(&[("/required", json!(["owner", "size"]))]);
    assert_eq!(with_a_default, []);
}

#[test]
fn a_changed_type_is_found() {
    let other = in_spec(&[("/properties/note/type", json!("integer"))]);
    assert_eq!(other, one("v1 spec.note", Rule::TypeChanged));
    let inside = in_spec(&[("/properties/keys/items/type", json!("integer"))]);
    assert_eq!(inside, one("v1 spec.keys[]", Rule::TypeChanged));
    let format = in_spec(&[("/properties/size/format", json!("int32"))]);
    assert_eq!(format, one("v1 spec.size", Rule::TypeChanged));
}

#[test]
fn a_removed_enum_value_is_found() {
    let fewer = in_spec(&[("/properties/market/enum", json!(["Spot"]))]);
    assert_eq!(fewer, one("v1 spec.market", Rule::EnumNarrowed));
    let first = in_spec(&[("/properties/note/enum", json!(["a"]))]);
    assert_eq!(first, one("v1 spec.note", Rule::EnumNarrowed));
}

#[test]
fn a_status_may_become_narrower() {
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
    let found = found(&[
        (&format!("{status}/properties/phase/enum"), json!(["Ready"])),
        (&format!("{status}/required"), json!(["phase"])),
    ]);
    assert_eq!(found, []);
}

#[test]
fn a_new_pattern_is_found() {
    let found = in_spec(&[("/properties/note/pattern", json!("^a$"))]);
    assert_eq!(found, one("v1 spec.note", Rule::PatternChanged));
}

#[test]
fn a_tighter_bound_is_found() {
    for (at, value, field) in [
        ("/properties/size/minimum", json!(2), "v1 spec.size"),
        ("/properties/size/maximum", json!(8), "v1 spec.size"),
        ("/properties/owner/minLength", json!(2), "v1 spec.owner"),
        ("/properties/owner/maxLength", json!(62), "v1 spec.owner"),
        ("/properties/note/maxLength", json!(1000), "v1 spec.note"),
        ("/properties/keys/maxItems", json!(4), "v1 spec.keys"),
        ("/properties/keys/minItems", json!(1), "v1 spec.keys"),
        ("/properties/keys/uniqueItems", json!(true), "v1 spec.keys"),
        ("/properties/tags/maxProperties", json!(9), "v1 spec.tags"),
        ("/properties/size/multipleOf", json!(2), "v1 spec.size"),
    ] {
        assert_eq!(in_spec(&[(at, value)]), one(field, Rule::BoundTightened));
    }
}

#[test]
fn a_new_cel_rule_is_found() {
    let rules = json!([{"rule": "self.size > 0"}, {"rule": "self.size < 5"}]);
    let found = in_spec(&[("/x-kubernetes-validations", rules)]);
    assert_eq!(found, one("v1 spec", Rule::CelRuleAdded));
}

#[test]
fn a_rule_in_place_of_a_pattern_breaks_nobody_unless_it_accepts_less() {
    let found = |regex: &str| {
        let rule = crate::codegen::patterns::rule(regex).unwrap();
        let rules = json!([{"rule": rule, "message": "write a zone"}]);
        in_spec(&[
            ("/properties/zone/pattern", Value::Null),
            ("/properties/zone/x-kubernetes-validations", rules),
        ])
    };
    assert_eq!(found("^[a-z]+$"), []);
    assert_eq!(found("^[a-y]+$"), one("v1 spec.zone", Rule::CelRuleAdded));
}

#[test]
fn a_changed_default_is_found() {
    for value in [json!(2), Value::Null] {
        let found = in_spec(&[("/properties/size/default", value)]);
        assert_eq!(found, one("v1 spec.size", Rule::DefaultChanged));
    }
    let added = in_spec(&[("/properties/note/default", json!("a"))]);
    assert_eq!(added, one("v1 spec.note", Rule::DefaultChanged));
    let composition = found(&[("/spec/defaultCompositionRef/name", json!("other"))]);
    assert_eq!(
        composition,
        one("spec.defaultCompositionRef", Rule::DefaultChanged)
    );
}

#[test]
fn a_list_that_is_merged_otherwise_is_found() {
    let found = in_spec(&[("/properties/keys/x-kubernetes-list-type", json!("set"))]);
    assert_eq!(found, one("v1 spec.keys", Rule::MergeChanged));
}

#[test]
fn a_lost_connection_key_is_found() {
    let found = found(&[("/spec/connectionSecretKeys", json!(["host"]))]);
    assert_eq!(
        found,
        one("spec.connectionSecretKeys", Rule::ConnectionKeyRemoved)
    );
}

#[test]
fn a_keyword_without_a_rule_is_found_as_well() {
    let found = in_spec(&[("/oneOf", json!([{"required": ["note"]}]))]);
    assert_eq!(found, one("v1 spec", Rule::OtherKeyword));
}
