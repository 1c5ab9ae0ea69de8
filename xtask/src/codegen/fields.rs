//! The fields of a schema, as a flat list.

use serde_json::{Map, Value};

use super::reference::code;

/// A field of a schema.
pub(super) struct Field {
    /// Its path below the described object, such as `parameters.ssh.allowedCidrs`.
    pub(super) path: String,
    /// Whether its object requires it.
    pub(super) is_required: bool,
    /// Its type and bounds, in words.
    pub(super) type_: String,
    /// Its default, as JSON.
    pub(super) default: Option<String>,
    /// Its description, on one line.
    pub(super) description: String,
}

/// A validation rule in Kubernetes' expression language (CEL).
pub(super) struct Rule {
    path: String,
    expression: String,
    message: String,
}

impl Rule {
    /// The rule as an entry of a Markdown list.
    pub(super) fn line(&self) -> String {
        let Self {
            path,
            expression,
            message,
        } = self;
        let about = match path.as_str() {
            "" => String::new(),
            path => format!("`{path}`: "),
        };
        format!("- {about}{message} (`{expression}`)")
    }
}

/// All fields of an object, each before those below it.
pub(super) fn of(schema: &Value) -> Vec<Field> {
    let mut fields = Vec::new();
    walk(schema, "", &mut fields);
    fields
}

/// All rules of an object and of the fields below it.
pub(super) fn rules(schema: &Value, path: &str) -> Vec<Rule> {
    let own = schema["x-kubernetes-validations"].as_array();
    let word = |rule: &Value, field: &str| rule[field].as_str().unwrap_or_default().to_owned();
    let mut rules: Vec<Rule> = own
        .into_iter()
        .flatten()
        .map(|rule| Rule {
            path: path.to_owned(),
            expression: word(rule, "rule"),
            message: word(rule, "message"),
        })
        .collect();
    for (path, schema) in below(schema, path) {
        rules.extend(self::rules(schema, &path));
    }
    rules
}

/// A schema's description, on one line.
pub(super) fn description(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn walk(schema: &Value, path: &str, fields: &mut Vec<Field>) {
    let required = schema["required"].as_array();
    for (path, schema) in below(schema, path) {
        let name = path.rsplit('.').next().unwrap_or_default();
        // Entries of lists and values of maps have no row of their own: the type of the list or map
        // names their type.
        let is_field = !path.ends_with("[]") && name != "*";
        if is_field {
            fields.push(Field {
                is_required: required.is_some_and(|names| names.iter().any(|n| n == name)),
                type_: type_of(schema),
                default: schema.get("default").map(|v| number(v).to_string()),
                description: description(schema),
                path: path.clone(),
            });
        }
        // The fields of conditions are the same in every kind, and another page describes them.
        if name != "conditions" {
            walk(schema, &path, fields);
        }
    }
}

/// The direct children: fields, the entries of a list, the values of a map.
pub(super) fn below<'a>(schema: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    let under = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut found: Vec<(String, &Value)> = properties.map(|(n, s)| (under(n), s)).collect();
    if schema["items"].is_object() {
        found.push((format!("{path}[]"), &schema["items"]));
    }
    if schema["additionalProperties"].is_object() {
        found.push((under("*"), &schema["additionalProperties"]));
    }
    found
}

fn type_of(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        let values = values.iter().filter_map(Value::as_str).map(code);
        return values.collect::<Vec<_>>().join(", ");
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    let bounds = |least: &str, most: &str, unit: &str| bounds(schema, least, most, unit);
    match schema["type"].as_str() {
        Some("array") => {
            let entries = bounds("minItems", "maxItems", " entries");
            format!("list of {}{entries}", type_of(&schema["items"]))
        }
        Some("object") if schema["additionalProperties"].is_object() => {
            let entries = bounds("minProperties", "maxProperties", " entries");
            format!(
                "map of {}{entries}",
                type_of(&schema["additionalProperties"])
            )
        }
        Some("string") if schema["format"] == "date-time" => "time".to_owned(),
        Some("string") => {
            let length = bounds("minLength", "maxLength", " characters");
            let pattern = schema["pattern"].as_str();
            let pattern = pattern.map(|pattern| format!(" {}", code(pattern)));
            format!("string{}{length}", pattern.unwrap_or_default())
        }
        Some(number @ ("integer" | "number")) => {
            format!("{number}{}", bounds("minimum", "maximum", ""))
        }
        Some(other) => other.to_owned(),
        None => "anything".to_owned(),
    }
}

fn bounds(schema: &Value, least: &str, most: &str, unit: &str) -> String {
    match (schema.get(least), schema.get(most)) {
        (Some(least), Some(most)) => format!(", {} to {}{unit}", number(least), number(most)),
        (Some(least), None) => format!(", at least {}{unit}", number(least)),
        (None, Some(most)) => format!(", at most {}{unit}", number(most)),
        (None, None) => String::new(),
    }
}

/// The value, with each whole number written without a fraction, at any depth.
fn number(value: &Value) -> Value {
    match value {
        #[allow(clippy::cast_possible_truncation, reason = "the fraction is zero")]
        Value::Number(n)
            if n.as_f64()
                .is_some_and(|n| n.fract() == 0.0 && n.abs() < 9e15) =>
        {
            Value::from(n.as_f64().unwrap_or_default() as i64)
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), number(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(number).collect()),
        other => other.clone(),
    }
}
