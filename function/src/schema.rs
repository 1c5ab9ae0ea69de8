//! The API types' own schemas, checked by the function itself.
//!
//! Crossplane never checks a function's input or an `EnvironmentConfig` against a
//! schema, and an XR may be older than the schema that is installed. Patterns
//! and bounds exist once, on the types of [`api`].

use std::fmt;
use std::sync::LazyLock;

use api::catalogue::Catalogue;
use api::dev_user::{DevUserPolicy, DevUserSpec};
use api::flavor::WorkspaceFlavorSpec;
use api::policy::WorkspacePolicy;
use api::workspace::WorkspaceParameters;
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A field and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// For example `spec.parameters.ssh.publicKeys[0]`.
    pub path: String,
    /// For example `must match ^[a-z]+$`.
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
    /// `Err` with the violations, unless there are none.
    pub fn none_of(mut violations: Vec<Violation>) -> Result<(), Self> {
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

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, violation) in self.0.iter().enumerate() {
            let separator = if n == 0 { "" } else { "; " };
            write!(f, "{separator}{violation}")?;
        }
        Ok(())
    }
}

type Compiled = Result<Validator, String>;

static PARAMETERS: LazyLock<Compiled> = LazyLock::new(compile::<WorkspaceParameters>);
static POLICY: LazyLock<Compiled> = LazyLock::new(compile::<WorkspacePolicy>);
static CATALOGUE: LazyLock<Compiled> = LazyLock::new(compile::<Catalogue>);
static FLAVOR: LazyLock<Compiled> = LazyLock::new(compile::<WorkspaceFlavorSpec>);
static DEV_USER: LazyLock<Compiled> = LazyLock::new(compile::<DevUserSpec>);
static DEV_USER_POLICY: LazyLock<Compiled> = LazyLock::new(compile::<DevUserPolicy>);

/// Reads `spec.parameters` of a workspace.
pub fn parameters(value: &Value) -> Result<WorkspaceParameters, Violations> {
    parse(&PARAMETERS, "spec.parameters", value)
}

/// Reads the function's input.
pub fn policy(value: &Value) -> Result<WorkspacePolicy, Violations> {
    parse(&POLICY, "input", value)
}

/// Reads `spec` of a `WorkspaceFlavor`.
pub fn flavor(value: &Value) -> Result<WorkspaceFlavorSpec, Violations> {
    parse(&FLAVOR, "spec", value)
}

/// Reads `spec` of a `DevUser`.
pub fn dev_user(value: &Value) -> Result<DevUserSpec, Violations> {
    parse(&DEV_USER, "spec", value)
}

/// Reads the function's input for `DevUsers`.
pub fn dev_user_policy(value: &Value) -> Result<DevUserPolicy, Violations> {
    parse(&DEV_USER_POLICY, "input", value)
}

/// Reads the data of an `EnvironmentConfig`.
pub fn catalogue(value: &Value) -> Result<Catalogue, Violations> {
    parse(&CATALOGUE, "data", value)
}

fn compile<T: JsonSchema>() -> Compiled {
    let schema = schemars::schema_for!(T);
    jsonschema::options()
        // Linear time, whatever the text.
        .with_pattern_options(PatternOptions::regex())
        .build(schema.as_value())
        .map_err(|error| error.to_string())
}

fn parse<T: DeserializeOwned>(
    compiled: &Compiled,
    root: &str,
    value: &Value,
) -> Result<T, Violations> {
    let validator = compiled
        .as_ref()
        .map_err(|error| Violation::new(root, format!("has no usable schema: {error}")))?;
    let violations = validator
        .iter_errors(value)
        .flat_map(|e| describe(root, &e));
    Violations::none_of(violations.collect())?;
    T::deserialize(value).map_err(|error| Violation::new(root, error.to_string()).into())
}

fn describe(root: &str, error: &ValidationError<'_>) -> Vec<Violation> {
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
        Kind::Pattern { pattern } => format!("must match {pattern}"),
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

/// The words that the field may hold. A documented enum is one alternative per
/// word, and an optional one is an alternative to null.
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

/// `/ssh/publicKeys/0` under `spec.parameters` is
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_schema_compiles() {
        for compiled in [
            &*PARAMETERS,
            &*POLICY,
            &*CATALOGUE,
            &*FLAVOR,
            &*DEV_USER,
            &*DEV_USER_POLICY,
        ] {
            assert_eq!(compiled.as_ref().err(), None);
        }
    }

    #[test]
    fn a_wrong_value_is_named_by_its_path() {
        let cases = [
            (json!({}), "spec.parameters.owner: is required"),
            (
                json!({"owner": "Alice"}),
                "spec.parameters.owner: must match ^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$",
            ),
            (
                json!({"owner": "a".repeat(64)}),
                "spec.parameters.owner: must have at most 63 characters",
            ),
            (
                json!({"owner": "a", "ssh": {"publicKeys": ["ssh-rsa AAAA", "nonsense"]}}),
                "spec.parameters.ssh.publicKeys[1]: must match ^(ssh-ed25519",
            ),
            (
                json!({"owner": "a", "placement": "Moon"}),
                "spec.parameters.placement: must be \"EC2\" or \"Cluster\"",
            ),
            (
                json!({"owner": "a", "capacityType": "Reserved"}),
                "spec.parameters.capacityType: must be \"Spot\" or \"SpotWithFallback\" or \"OnDemand\"",
            ),
            (
                json!({"owner": "a", "opencvVersion": 4.8}),
                "spec.parameters.opencvVersion: 4.8 is not of types \"null\", \"string\"",
            ),
        ];
        for (value, expected) in cases {
            let message = parameters(&value).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn several_wrong_values_are_all_named_in_a_fixed_order() {
        let value = json!({"region": "mars", "owner": "-"});
        let message = parameters(&value).unwrap_err().to_string();
        let owner = message.find("spec.parameters.owner").unwrap();
        assert!(owner < message.find("; spec.parameters.region").unwrap());
    }
}
