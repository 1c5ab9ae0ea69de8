//! `docs/api.md`: every field of every kind, for readers, from the generated schemas.

use std::fmt::Write as _;

use serde_json::Value;

use super::fields::{self, Field};

const INTRODUCTION: &str = "\
<!-- Generated from api/ by `cargo xtask codegen`. Do not edit. -->
# API reference

Every kind and field. What cannot be left out of its object is **bold**; `[]` is each entry of a
list, `*` each value of a map. `kubectl explain` tells the same of a cluster. What conditions say is in
[conditions.md](conditions.md).
";

/// The section of a kind.
pub(super) struct Section {
    /// The kind, or the name of data that has no kind.
    pub(super) kind: &'static str,
    /// Its group and version.
    pub(super) api_version: String,
    /// What its objects are, and who writes them.
    pub(super) about: &'static str,
    /// Its schema. It contains `spec` and `status`, or other fields without these two.
    pub(super) schema: Value,
}

/// The text of the document.
pub(super) fn document(sections: &[Section]) -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n| kind | API version | |\n|---|---|---|\n");
    for section in sections {
        let Section {
            kind,
            api_version,
            about,
            ..
        } = section;
        let anchor = kind.to_lowercase().replace(' ', "-");
        let _ = writeln!(text, "| [{kind}](#{anchor}) | `{api_version}` | {about} |");
    }
    for (number, section) in sections.iter().enumerate() {
        let _ = write!(text, "\n## {}\n", section.kind);
        let earlier = &sections[..number];
        match earlier.iter().find(|other| other.schema == section.schema) {
            Some(same) => {
                let anchor = same.kind.to_lowercase();
                let _ = write!(
                    text,
                    "\nIts fields are those of [{}](#{anchor}).\n",
                    same.kind
                );
            }
            None => text.push_str(&parts(&section.schema)),
        }
    }
    text
}

/// The tables of a schema: one each for `spec` and `status` if it has them, else a single one.
fn parts(schema: &Value) -> String {
    let mut text = String::new();
    let mut has_parts = false;
    for part in ["spec", "status"] {
        if let Some(schema) = schema["properties"].get(part) {
            has_parts = true;
            let _ = write!(text, "\n### {part}\n{}", table(schema, part == "status"));
        }
    }
    if has_parts {
        text
    } else {
        table(schema, false)
    }
}

/// A description, a table of fields, and the validation rules. Fields that users only read have
/// neither defaults nor marks for required fields.
fn table(schema: &Value, is_read: bool) -> String {
    let mut text = String::new();
    let description = fields::description(schema);
    if !description.is_empty() {
        let _ = write!(text, "\n{description}\n");
    }
    let fields = fields::of(schema);
    if fields.is_empty() {
        text.push_str("\nIt has no fields.\n");
    } else {
        let head = if is_read {
            "| field | type | |\n|---|---|---|"
        } else {
            "| field | type | default | |\n|---|---|---|---|"
        };
        let _ = write!(text, "\n{head}\n");
    }
    for field in &fields {
        let _ = writeln!(text, "{}", row(field, is_read));
    }
    let rules: Vec<String> = fields::rules(schema, "")
        .into_iter()
        .map(|rule| rule.line())
        .collect();
    if !rules.is_empty() {
        let _ = write!(text, "\nRefused otherwise:\n\n{}\n", rules.join("\n"));
    }
    text
}

fn row(field: &Field, is_read: bool) -> String {
    let path = if field.is_required && !is_read {
        format!("**`{}`**", field.path)
    } else {
        format!("`{}`", field.path)
    };
    let default = field.default.as_deref().map(code).unwrap_or_default();
    let default = (!is_read).then_some(default);
    let cells = [path, field.type_.clone()].into_iter().chain(default);
    let cells = cells.chain([field.description.clone()]);
    // A vertical bar ends a cell, also inside code.
    let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |", cells.join(" | "))
}

/// The text as Markdown code.
pub(super) fn code(text: &str) -> String {
    format!("`{text}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn section(kind: &'static str, schema: Value) -> Section {
        Section {
            kind,
            api_version: "example.org/v1".into(),
            about: "somebody's",
            schema,
        }
    }

    fn schema() -> Value {
        json!({"properties": {"spec": {
            "description": "What is\nwanted.",
            "required": ["owner"],
            "properties": {
                "owner": {"type": "string", "pattern": "^(a|b)$", "description": "Whose it is."},
                "nodes": {"type": "integer", "minimum": 1.0, "maximum": 64.0, "default": 2.0},
            },
            "x-kubernetes-validations": [{"rule": "self.nodes != 3", "message": "not 3"}],
        }, "status": {
            "required": ["phase"],
            "properties": {"phase": {"type": "string", "enum": ["Ready", "Failed"]}},
        }}})
    }

    #[test]
    fn whoever_writes_a_manifest_finds_what_is_needed_and_what_is_refused() {
        let text = document(&[section("Thing", schema())]);
        for line in [
            "### spec",
            "What is wanted.",
            "| **`owner`** | string `^(a\\|b)$` |  | Whose it is. |",
            "| `nodes` | integer, 1 to 64 | `2` |  |",
            "- not 3 (`self.nodes != 3`)",
            "| `phase` | `Ready`, `Failed` |  |",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn a_kind_with_the_fields_of_another_is_told_once() {
        let text = document(&[
            section("Thing", schema()),
            section("ClusterThing", schema()),
        ]);
        assert!(text.contains("Its fields are those of [Thing](#thing)."));
        assert_eq!(text.matches("Whose it is.").count(), 1);
    }
}
