//! Compares the fields of two versions of a schema, for users who write objects and for users who
//! read them.

use serde_json::{Map, Value};

use super::bounds;
use super::change::Rule;
use crate::codegen::patterns;

/// The path of a field, the rule that its change breaks, and the change in words.
pub(super) type Finding = (String, Rule, String);

/// Whether users write a field or read it. Users write `spec` and read `status`. The values that a
/// controller writes may become fewer without breaking a reader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Written,
    Read,
}

/// Keywords that do not affect which objects are valid.
const HARMLESS: [&str; 4] = ["description", "title", "example", "externalDocs"];

/// Keywords that this module compares; [`bounds`] compares others.
const STRUCTURE: [&str; 5] = [
    "properties",
    "required",
    "items",
    "additionalProperties",
    "x-kubernetes-validations",
];

/// Compares two schemas of whole objects.
pub(super) fn compare(old: &Value, new: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    node("", Side::Written, old, new, &mut findings);
    findings
}

fn node(path: &str, side: Side, old: &Value, new: &Value, to: &mut Vec<Finding>) {
    to.extend(
        bounds::compare(side, old, new)
            .into_iter()
            .map(|(rule, what)| (shown(path), rule, what)),
    );
    if side == Side::Written {
        rules(path, old, new, to);
        required(path, old, new, to);
        others(path, old, new, to);
    }
    properties(path, side, old, new, to);
    nested("items", &format!("{path}[]"), side, old, new, to);
    nested(
        "additionalProperties",
        &format!("{path}.*"),
        side,
        old,
        new,
        to,
    );
}

fn properties(path: &str, side: Side, old: &Value, new: &Value, to: &mut Vec<Finding>) {
    let Some(before) = old["properties"].as_object() else {
        return;
    };
    // An object that now accepts any field still accepts every field that it had.
    let is_free = new["x-kubernetes-preserve-unknown-fields"] == Value::Bool(true)
        || new["additionalProperties"].is_object();
    for (name, old) in before {
        let path = joined(path, name);
        let side = if path == "status" { Side::Read } else { side };
        match new["properties"].get(name) {
            Some(new) => node(&path, side, old, new, to),
            None if is_free && side == Side::Written => {}
            None => {
                let kind = old["type"].as_str().unwrap_or("any");
                let what = format!("the field is gone; it was of type {kind}");
                to.push((path, Rule::FieldRemoved, what));
            }
        }
    }
}

/// Compares the subschema below one keyword. A subschema is lost if only the old schema has it.
fn nested(keyword: &str, path: &str, side: Side, old: &Value, new: &Value, to: &mut Vec<Finding>) {
    match (&old[keyword], &new[keyword]) {
        (before @ Value::Object(_), after @ Value::Object(_)) => {
            node(path, side, before, after, to);
        }
        (Value::Object(_) | Value::Bool(true), Value::Null | Value::Bool(false))
            if keyword == "additionalProperties"
                && new["x-kubernetes-preserve-unknown-fields"] != Value::Bool(true) =>
        {
            let what = "any key was taken, and only named fields are".to_owned();
            to.push((shown(path), Rule::FieldRemoved, what));
        }
        _ => {}
    }
}

/// Finds fields that became required. A required field with a default breaks nobody, because the
/// API server fills in defaults before it checks required fields.
fn required(path: &str, old: &Value, new: &Value, to: &mut Vec<Finding>) {
    let before = names(&old["required"]);
    for name in names(&new["required"]) {
        let has_default = !new["properties"][&name]["default"].is_null();
        if !before.contains(&name) && !has_default {
            let existed = !old["properties"][&name].is_null();
            let what = if existed {
                "was optional, and is required"
            } else {
                "did not exist, and is required"
            };
            to.push((joined(path, &name), Rule::NewlyRequired, what.into()));
        }
    }
}

fn rules(path: &str, old: &Value, new: &Value, to: &mut Vec<Finding>) {
    // A rule in place of a pattern accepts the same values.
    let pattern = old["pattern"].as_str().and_then(patterns::rule);
    let known: Vec<&str> = expressions(old).chain(pattern.as_deref()).collect();
    for rule in expressions(new).filter(|rule| !known.contains(rule)) {
        let what = format!("a rule was added: {rule}");
        to.push((shown(path), Rule::CelRuleAdded, what));
    }
}

fn expressions(schema: &Value) -> impl Iterator<Item = &str> {
    let rules = list(&schema["x-kubernetes-validations"]).iter();
    rules.filter_map(|rule| rule["rule"].as_str())
}

/// Refuses any difference in keywords that no other rule compares. An acceptance without need is
/// better than a breaking change that nobody notices.
fn others(path: &str, old: &Value, new: &Value, to: &mut Vec<Finding>) {
    let nothing = Map::new();
    let (before, after) = (
        old.as_object().unwrap_or(&nothing),
        new.as_object().unwrap_or(&nothing),
    );
    let mut keywords: Vec<&String> = before.keys().chain(after.keys()).collect();
    keywords.sort();
    keywords.dedup();
    for keyword in keywords {
        let word = keyword.as_str();
        let has_rule = HARMLESS.contains(&word)
            || STRUCTURE.contains(&word)
            || bounds::KEYWORDS.contains(&word);
        if !has_rule && old[word] != new[word] {
            let what = format!(
                "{word} was {}, and is {}",
                text(&old[word]),
                text(&new[word])
            );
            to.push((shown(path), Rule::OtherKeyword, what));
        }
    }
}

/// The value as text for people; `unset` if there is none.
pub(super) fn text(value: &Value) -> String {
    if value.is_null() {
        "unset".into()
    } else {
        value.to_string()
    }
}

fn shown(path: &str) -> String {
    if path.is_empty() {
        "the object".into()
    } else {
        path.into()
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.into()
    } else {
        format!("{path}.{name}")
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn names(value: &Value) -> Vec<String> {
    let names = list(value).iter().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}
