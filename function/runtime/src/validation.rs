//! Validates values against the schemas of API types.

use std::fmt;
use std::marker::PhantomData;
use std::sync::LazyLock;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, PatternOptions, ValidationError, Validator};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::json::Json;

/// A field and its problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The path of the field, for example `spec.parameters.ssh.publicKeys[0]`.
    pub path: String,
    /// The problem, for example `must have at most 16 characters`.
    pub problem: String,
}

impl Violation {
    /// A violation of the field at `path`.
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            problem: problem.into(),
        }
    }

    /// A violation of the field at `path`, whose value the policy does not list.
    pub fn not_allowed(
        path: impl Into<String>,
        value: impl fmt::Display,
        allowed: &[impl AsRef<str>],
    ) -> Self {
        let allowed: Vec<&str> = allowed.iter().map(AsRef::as_ref).collect();
        let allowed = allowed.join(", ");
        Self::new(
            path,
            format!("{value} is not allowed; allowed are {allowed}"),
        )
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// One or more violations, in the order of their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// `Ok` if there are no violations, and the sorted violations as `Err` otherwise.
    pub fn into_result(mut violations: Vec<Violation>) -> Result<(), Self> {
        if violations.is_empty() {
            return Ok(());
        }
        violations.sort();
        violations.dedup();
        Err(Self(violations))
    }
}

impl From<Violation> for Violations {
    fn from(violation: Violation) -> Self {
        Self(vec![violation])
    }
}

impl From<Violations> for Vec<Violation> {
    fn from(violations: Violations) -> Self {
        violations.0
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, violation) in self.0.iter().enumerate() {
            let separator = if n == 0 { "" } else { "; " };
            write!(f, "{separator}{violation}")?;
        }
        Ok(())
    }
}

/// What to write instead of a value that does not match a pattern; none for an unknown pattern.
pub type Explain = fn(&str) -> Option<&'static str>;

/// The schema of an API type. It is compiled on first use.
///
/// Crossplane checks neither the input of a function nor an `EnvironmentConfig` against a schema. A
/// composite may be older than the installed schema.
pub struct Schema<T> {
    /// The path of the validated value, for example `spec.parameters`.
    root: &'static str,
    explain: Explain,
    compiled: LazyLock<Result<Validator, String>>,
    of: PhantomData<fn() -> T>,
}

impl<T: JsonSchema + DeserializeOwned> Schema<T> {
    /// The schema of the values at a path.
    pub const fn of(root: &'static str, explain: Explain) -> Self {
        Self {
            root,
            explain,
            compiled: LazyLock::new(compile::<T>),
            of: PhantomData,
        }
    }

    /// Validates and reads a value.
    ///
    /// # Errors
    ///
    /// All violations of the schema, each with its path.
    pub fn read(&self, value: &Value) -> Result<T, Violations> {
        let root = self.root;
        let validator = self
            .compiled
            .as_ref()
            .map_err(|error| Violation::new(root, format!("has no usable schema: {error}")))?;
        // Most values are valid. `is_valid` is faster than `iter_errors`.
        if !validator.is_valid(value) {
            let errors = validator.iter_errors(value);
            Violations::into_result(
                errors
                    .flat_map(|e| describe(root, self.explain, &e))
                    .collect(),
            )?;
        }
        T::deserialize(value).map_err(|error| Violation::new(root, error.to_string()).into())
    }
}

/// What was given for a schema to validate. Nothing counts as an empty object, so the schema names each
/// field that is required.
pub fn given(found: Option<&Json<'_>>) -> Value {
    found.map_or_else(|| Value::Object(Map::new()), Value::from)
}

fn compile<T: JsonSchema>() -> Result<Validator, String> {
    let schema = schemars::schema_for!(T);
    jsonschema::options()
        // This regex engine takes linear time for every text.
        .with_pattern_options(PatternOptions::regex())
        .build(schema.as_value())
        .map_err(|error| error.to_string())
}

fn describe(root: &str, explain: Explain, error: &ValidationError<'_>) -> Vec<Violation> {
    if let Some(errors) = beside_null(error) {
        let errors = errors.iter();
        return errors.flat_map(|e| describe(root, explain, e)).collect();
    }
    let path = dotted(root, error.instance_path().as_str());
    let problem = match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            return unexpected
                .iter()
                .map(|name| Violation::new(format!("{path}.{name}"), "is no known field"))
                .collect();
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            return vec![Violation::new(format!("{path}.{name}"), "is required")];
        }
        Kind::Pattern { pattern } => match explain(pattern) {
            Some(what_to_write) => what_to_write.to_owned(),
            None => format!("must match {pattern}"),
        },
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MaxItems { limit } => format!("must have at most {limit} entries"),
        Kind::MinItems { limit } => format!("must have at least {limit} entries"),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        _ => match options(error).as_slice() {
            [] => error.to_string(),
            options => format!("must be {}", options.join(" or ")),
        },
    };
    vec![Violation::new(path, problem)]
}

/// The errors of an optional value: in its schema, null is the other alternative. None for an error of
/// another schema.
fn beside_null<'e>(error: &'e ValidationError<'_>) -> Option<&'e [ValidationError<'static>]> {
    let Kind::AnyOf { context } = error.kind() else {
        return None;
    };
    let is_null = |errors: &[ValidationError<'_>]| {
        let mut kinds = errors.iter().map(ValidationError::kind);
        kinds.any(|kind| {
            matches!(
                kind,
                Kind::Type {
                    kind: TypeKind::Single(JsonType::Null)
                }
            )
        })
    };
    match context.as_slice() {
        [value, other] if is_null(other) => Some(value),
        _ => None,
    }
}

/// The values that a field may have. In the schema, a documented enum has one alternative for each
/// value, and an optional enum also has the alternative null.
fn options(error: &ValidationError<'_>) -> Vec<String> {
    match error.kind() {
        Kind::Constant { expected_value } => vec![expected_value.to_string()],
        Kind::Enum { options } => options
            .as_array()
            .map(|options| options.iter().map(Value::to_string).collect())
            .unwrap_or_default(),
        Kind::OneOfNotValid { context } | Kind::AnyOf { context } => {
            context.iter().flatten().flat_map(options).collect()
        }
        _ => Vec::new(),
    }
}

/// Converts a JSON pointer into a path: `/ssh/publicKeys/0` under `spec.parameters` becomes
/// `spec.parameters.ssh.publicKeys[0]`.
fn dotted(root: &str, pointer: &str) -> String {
    let steps = pointer.split('/').skip(1).map(|token| {
        let token = token.replace("~1", "/").replace("~0", "~");
        if token.bytes().all(|b| b.is_ascii_digit()) {
            format!("[{token}]")
        } else {
            format!(".{token}")
        }
    });
    std::iter::once(root.to_owned()).chain(steps).collect()
}
