//! The values that a field accepts, its default, and how it is merged.

use serde_json::Value;

use super::change::Rule;
use super::schema::{Side, text};

/// The keywords that this module compares.
pub(super) const KEYWORDS: [&str; 23] = [
    "type",
    "format",
    "nullable",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "enum",
    "pattern",
    "minimum",
    "minLength",
    "minItems",
    "minProperties",
    "maximum",
    "maxLength",
    "maxItems",
    "maxProperties",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "uniqueItems",
    "multipleOf",
    "default",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
];

/// Compares one node of two schemas, without the nodes below it.
pub(super) fn compare(side: Side, old: &Value, new: &Value) -> Vec<(Rule, String)> {
    let mut findings = kind(old, new);
    if side == Side::Written {
        findings.extend(refusals(old, new));
        findings.extend(values(old, new));
        findings.extend(limits(old, new));
        findings.extend(strictness(old, new));
        findings.extend(changed("default", Rule::DefaultChanged, old, new));
        for keyword in ["x-kubernetes-list-type", "x-kubernetes-list-map-keys"] {
            findings.extend(changed(keyword, Rule::MergeChanged, old, new));
        }
    }
    findings
}

/// Compares the keywords that say what a field is. An int-or-string has no `type`, so the third
/// keyword describes it.
fn kind(old: &Value, new: &Value) -> Vec<(Rule, String)> {
    let mut findings = Vec::new();
    for keyword in ["type", "format", "x-kubernetes-int-or-string"] {
        findings.extend(changed(keyword, Rule::TypeChanged, old, new));
    }
    findings
}

/// The values that a field of the same type no longer accepts.
fn refusals(old: &Value, new: &Value) -> Vec<(Rule, String)> {
    let mut findings = Vec::new();
    for keyword in ["x-kubernetes-preserve-unknown-fields", "nullable"] {
        if is_true(&old[keyword]) && !is_true(&new[keyword]) {
            let what = format!("{keyword} was true, and is not");
            findings.push((Rule::TypeChanged, what));
        }
    }
    if !is_true(&old["x-kubernetes-embedded-resource"])
        && is_true(&new["x-kubernetes-embedded-resource"])
    {
        let what = "must be an object of Kubernetes, with apiVersion and kind".into();
        findings.push((Rule::TypeChanged, what));
    }
    findings
}

fn values(old: &Value, new: &Value) -> Vec<(Rule, String)> {
    let mut findings = Vec::new();
    if let Some(after) = new["enum"].as_array() {
        match old["enum"].as_array() {
            None => {
                let what = format!("took any value, and takes {} only", new["enum"]);
                findings.push((Rule::EnumNarrowed, what));
            }
            Some(before) => {
                for gone in before.iter().filter(|value| !after.contains(value)) {
                    findings.push((Rule::EnumNarrowed, format!("does not take {gone} any more")));
                }
            }
        }
    }
    if !new["pattern"].is_null() {
        // The program cannot decide whether the new pattern accepts everything that the old one
        // accepts, so people must.
        findings.extend(changed("pattern", Rule::PatternChanged, old, new));
    }
    findings
}

fn limits(old: &Value, new: &Value) -> Vec<(Rule, String)> {
    let mut findings = Vec::new();
    let mut look = |keyword: &str, is_tighter: fn(f64, f64) -> bool| {
        let Some(after) = new[keyword].as_f64() else {
            return;
        };
        let before = old[keyword].as_f64();
        if before.is_none_or(|before| is_tighter(after, before)) {
            let what = format!(
                "{keyword} was {}, and is {}",
                text(&old[keyword]),
                new[keyword]
            );
            findings.push((Rule::BoundTightened, what));
        }
    };
    for keyword in ["minimum", "minLength", "minItems", "minProperties"] {
        look(keyword, |after, before| after > before);
    }
    for keyword in ["maximum", "maxLength", "maxItems", "maxProperties"] {
        look(keyword, |after, before| after < before);
    }
    findings
}

fn strictness(old: &Value, new: &Value) -> Vec<(Rule, String)> {
    let mut findings = Vec::new();
    for keyword in ["exclusiveMinimum", "exclusiveMaximum", "uniqueItems"] {
        if is_true(&new[keyword]) && !is_true(&old[keyword]) {
            findings.push((Rule::BoundTightened, format!("{keyword} was added")));
        }
    }
    if !new["multipleOf"].is_null() {
        findings.extend(changed("multipleOf", Rule::BoundTightened, old, new));
    }
    findings
}

fn changed(keyword: &str, rule: Rule, old: &Value, new: &Value) -> Option<(Rule, String)> {
    (old[keyword] != new[keyword]).then(|| {
        let (old, new) = (text(&old[keyword]), text(&new[keyword]));
        (rule, format!("{keyword} was {old}, and is {new}"))
    })
}

fn is_true(value: &Value) -> bool {
    value.as_bool() == Some(true)
}
