//! Reads the platform's limits, which no Composition can loosen.
//!
//! They are the data of the `EnvironmentConfig` that the function's flag `--limits` names. Without
//! the flag there are none. With the flag and without readable limits, no policy is in force:
//! nothing starts, and what runs keeps the limits that the last call recorded.

pub mod admission;
pub mod tighten;

use api::duration::duration;
use api::limits::{LifecycleLimits, WorkspaceLimits};
use api::patterns;
use function_runtime::json::Json;
use function_runtime::object::ObservedObject;
use function_runtime::outcome::{Hold, Problem};
use function_runtime::request::{Request, Required};
use function_runtime::requirement::Requirement;
use function_runtime::validation::{Schema, Violation, Violations};
use jiff::SignedDuration;
use serde_json::{Value, json};
use thiserror::Error;

use crate::environment_config::{self, KIND};
use crate::ssh_networks;

/// Name of the requirement. A Composition may have a requirement with this name in its pipeline
/// step, which saves Crossplane one call.
pub const REQUIREMENT: &str = "limits";

static DATA: Schema<WorkspaceLimits> = Schema::of("data", patterns::message);

/// The platform's limits, and the `EnvironmentConfig` that has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits<'a> {
    /// The name of the `EnvironmentConfig`.
    pub name: &'a str,
    /// Its data.
    pub data: WorkspaceLimits,
}

/// The requirement for the platform's limits; none without the flag. `name` is the value of the
/// flag.
pub fn requirement(name: Option<&str>) -> Option<Requirement> {
    name.map(|name| environment_config::requirement(REQUIREMENT.to_owned(), name))
}

/// Reads the platform's limits; none without the flag. `name` is the value of the flag.
///
/// # Errors
///
/// Crossplane has not fetched the limits yet, or they are missing or invalid.
pub fn read<'a>(name: Option<&'a str>, request: &Request) -> Result<Option<Limits<'a>>, Hold> {
    let Some(name) = name else {
        return Ok(None);
    };
    let found = match request.required(REQUIREMENT) {
        Required::Present(found) if is_named(found, name) => found,
        // A Composition may fetch another object under the requirement's name. Crossplane replaces
        // it by the object that the function requires.
        Required::Present(_) | Required::Unresolved => {
            let name = name.to_owned();
            return Err(Unusable::Unresolved { name }.into());
        }
        Required::Absent => {
            let name = name.to_owned();
            return Err(Unusable::Absent { name }.into());
        }
    };
    let data = valid(environment_config::data(found)).map_err(|violations| Unusable::Invalid {
        name: name.to_owned(),
        violations,
    })?;
    Ok(Some(Limits { name, data }))
}

fn is_named(found: &Json<'_>, name: &str) -> bool {
    found.get("kind").and_then(Json::as_str) == Some(KIND)
        && ObservedObject::new(found).name() == name
}

fn valid(data: Option<Value>) -> Result<WorkspaceLimits, Violations> {
    let limits = DATA.read(&data.unwrap_or_else(|| json!({})))?;
    let mut violations = Vec::new();
    let without_a_limit = WorkspaceLimits {
        admission_binding: limits.admission_binding.clone(),
        ..WorkspaceLimits::default()
    };
    if limits == without_a_limit {
        // Limits that were emptied by mistake would open every Composition.
        let problem = "has no limit: restore its fields, or start the function without --limits";
        violations.push(Violation::new("data", problem));
    }
    let ceiling = limits.ssh_cidr_ceiling.as_deref().unwrap_or_default();
    violations.extend(ssh_networks::malformed(ceiling, "data.sshCidrCeiling"));
    violations.extend(limits.lifecycle.iter().flat_map(unusable_durations));
    Violations::into_result(violations)?;
    Ok(limits)
}

fn unusable_durations(limits: &LifecycleLimits) -> Vec<Violation> {
    let violation = |field: &str, problem| {
        let path = format!("data.lifecycle.{field}");
        Violation::new(path, problem)
    };
    let LifecycleLimits {
        max_lifetime,
        stop_after_idle,
        max_extension,
    } = limits;
    let mut violations = Vec::new();
    for (field, text) in [
        ("maxLifetime", max_lifetime),
        ("stopAfterIdle", stop_after_idle),
        ("maxExtension", max_extension),
    ] {
        let Some(text) = text else {
            continue;
        };
        match duration(text) {
            None => violations.push(violation(field, "is longer than a hundred years")),
            Some(length) if length <= SignedDuration::ZERO && field != "maxExtension" => {
                violations.push(violation(field, "must be longer than no time at all"));
            }
            Some(_) => {}
        }
    }
    if max_lifetime.is_some() && max_extension.is_none() {
        let problem = "is required beside maxLifetime, because a policy may allow any extension; \
                       0s allows none";
        violations.push(violation("maxExtension", problem));
    }
    violations
}

/// Why the platform's limits cannot be used.
#[derive(Clone, Debug, Error)]
enum Unusable {
    /// Crossplane has not fetched the `EnvironmentConfig` yet.
    #[error("waiting for Crossplane to fetch EnvironmentConfig {name}, the platform's limits")]
    Unresolved {
        /// The `EnvironmentConfig`.
        name: String,
    },
    /// The `EnvironmentConfig` does not exist.
    #[error(
        "EnvironmentConfig {name} does not exist, and no workspace starts without these limits of \
         the platform: create it, or name another one in the function's flag --limits"
    )]
    Absent {
        /// The `EnvironmentConfig`.
        name: String,
    },
    /// The `EnvironmentConfig` does not match the schema of the limits.
    #[error("EnvironmentConfig {name}, the platform's limits, is not usable: {violations}")]
    Invalid {
        /// The `EnvironmentConfig`.
        name: String,
        /// Violations of fields under `data`.
        violations: Violations,
    },
}

impl Problem for Unusable {
    fn reason(&self) -> &'static str {
        match self {
            Self::Unresolved { .. } => "LimitsUnresolved",
            Self::Absent { .. } => "LimitsMissing",
            Self::Invalid { .. } => "LimitsInvalid",
        }
    }

    fn is_pending(&self) -> bool {
        matches!(self, Self::Unresolved { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "gpu-workspace-limits";

    fn answer(found: Vec<Value>) -> Request<'static> {
        Request {
            required: [(
                REQUIREMENT.to_owned(),
                found.into_iter().map(Json::from).collect(),
            )]
            .into(),
            ..Request::default()
        }
    }

    fn config(name: &str, data: &Value) -> Value {
        json!({"kind": "EnvironmentConfig", "metadata": {"name": name}, "data": data})
    }

    fn read_data(data: &Value) -> Result<Option<Limits<'static>>, String> {
        let request = answer(vec![config(NAME, data)]);
        read(Some(NAME), &request).map_err(|hold| hold.to_string())
    }

    #[test]
    fn without_the_flag_there_are_no_limits() {
        let request = answer(vec![config(NAME, &json!({"allowedRegions": []}))]);
        assert_eq!(read(None, &request), Ok(None));
        assert_eq!(requirement(None), None);
    }

    #[test]
    fn the_limits_are_those_of_the_named_object() {
        let limits = read_data(&json!({"lifecycle": {"maxLifetime": "7d", "maxExtension": "0s"}}));
        let limits = limits.unwrap().unwrap();
        assert_eq!(limits.name, NAME);
        let lifecycle = limits.data.lifecycle.unwrap();
        assert_eq!(lifecycle.max_lifetime.as_deref(), Some("7d"));
    }

    #[test]
    fn an_object_that_a_composition_fetched_under_that_name_is_not_believed() {
        let laxer = config("mine", &json!({"allowedRegions": ["us-east-1"]}));
        let mut other_kind = config(NAME, &json!({"allowedRegions": ["us-east-1"]}));
        other_kind["kind"] = json!("ConfigMap");
        for found in [laxer, other_kind] {
            let hold = read(Some(NAME), &answer(vec![found])).unwrap_err();
            assert_eq!(hold.reason(), "LimitsUnresolved");
        }
    }

    #[test]
    fn limits_that_are_missing_or_empty_are_no_absence_of_limits() {
        let missing = read(Some(NAME), &answer(Vec::new())).unwrap_err();
        assert_eq!(missing.reason(), "LimitsMissing");
        for empty in [json!(null), json!({})] {
            let message = read_data(&empty).unwrap_err();
            assert_eq!(
                message,
                "EnvironmentConfig gpu-workspace-limits, the platform's limits, is not usable: \
                 data: has no limit: restore its fields, or start the function without --limits"
            );
        }
    }

    #[test]
    fn a_mistake_in_the_limits_is_named_by_its_path() {
        for (data, path) in [
            (json!({"maxLifetime": "7d"}), "data.maxLifetime: "),
            (
                json!({"sshCidrCeiling": ["vpn"]}),
                "data.sshCidrCeiling[0]: ",
            ),
            (
                json!({"lifecycle": {"maxLifetime": "0s", "maxExtension": "0s"}}),
                "data.lifecycle.maxLifetime: ",
            ),
            (
                json!({"lifecycle": {"maxLifetime": "7d"}}),
                "data.lifecycle.maxExtension: ",
            ),
            (
                json!({"lifecycle": {"stopAfterIdle": "99999d"}}),
                "data.lifecycle.stopAfterIdle: ",
            ),
        ] {
            let message = read_data(&data).unwrap_err();
            assert!(message.contains(path), "{message}");
        }
    }
}
