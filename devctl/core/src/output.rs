//! Output formats.

use std::fmt::Write;
use std::io;

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::host::Terminal;
use crate::object;
use crate::table::Table;
use crate::text::is_unsafe;

/// How data is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people
    #[default]
    Table,
    /// A table with more columns
    Wide,
    /// JSON, for programs
    Json,
    /// YAML
    Yaml,
    /// Names only, one on each line
    Name,
}

impl Format {
    /// Whether programs read errors, too.
    pub fn is_json(self) -> bool {
        self == Self::Json
    }
}

/// The output format of a command.
#[derive(Args, Debug, Clone, Copy, Default)]
pub struct Output {
    /// Output format
    #[arg(
        long = "output",
        short = 'o',
        value_enum,
        default_value = "table",
        value_name = "FORMAT"
    )]
    pub format: Format,
}

/// Data in every format.
pub struct Data<'a> {
    /// The rows of the table, for `table` and `wide`.
    pub table: &'a dyn Fn(bool) -> Table,
    /// The value, for `json` and `yaml`.
    pub value: &'a Value,
    /// The names, for `name`.
    pub names: Vec<String>,
}

/// Writes data.
pub fn write(terminal: &dyn Terminal, format: Format, data: &Data<'_>) -> io::Result<()> {
    match format {
        Format::Table | Format::Wide => {
            let table = (data.table)(format == Format::Wide);
            for line in table.lines(terminal.width()) {
                terminal.data(&line)?;
            }
            Ok(())
        }
        Format::Name => data
            .names
            .iter()
            .try_for_each(|name| terminal.data(&name.into())),
        Format::Json | Format::Yaml => terminal.document(&document(data.value, format)),
    }
}

/// A value as text, with a line end. Characters that control a terminal are escaped, as both formats
/// allow.
pub fn document(value: &Value, format: Format) -> String {
    let text = if format == Format::Yaml {
        // A string with such a character needs quotes in YAML. JSON's are valid there.
        let has_unsafe = value.to_string().chars().any(is_unsafe);
        let yaml = (!has_unsafe)
            .then(|| serde_yaml::to_string(value).ok())
            .flatten();
        yaml.unwrap_or_else(|| format!("{value:#}"))
    } else {
        format!("{value:#}")
    };
    let mut safe = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if character != '\n' && is_unsafe(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                // Writing to a string cannot fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    if !safe.ends_with('\n') {
        safe.push('\n');
    }
    safe
}

/// A list of objects as Kubernetes writes lists.
pub fn list(items: &[Value]) -> Value {
    serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// The names of objects.
pub fn names(items: &[Value]) -> Vec<String> {
    let names = items
        .iter()
        .filter_map(|item| object::text(item, "/metadata/name"));
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_hold_the_same_text_and_control_no_terminal() {
        let value = json!({"message": "a\u{1b}[2J\u{9b}b\u{202e}", "list": ["x"]});
        for format in [Format::Json, Format::Yaml] {
            let text = document(&value, format);
            assert!(text.chars().all(|c| c == '\n' || !is_unsafe(c)), "{text}");
            let read: Value = serde_yaml::from_str(&text).unwrap();
            assert_eq!(read, value, "{text}");
        }
        assert_eq!(document(&json!({"a": [1]}), Format::Yaml), "a:\n- 1\n");
    }
}
