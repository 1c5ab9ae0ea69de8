//! Reads `DevUserPolicy`, the function's input in the Composition of users.

use api::dev_user::DevUserPolicy;
use api::patterns;
use api::{POLICY_GROUP, VERSION};
use function_runtime::input;
use function_runtime::validation::{Schema, Violations};
use function_workspace::policy::{REFRESH, outside};
use serde_json::Value;

const KIND: &str = "DevUserPolicy";
static POLICY: Schema<DevUserPolicy> = Schema::of("input", patterns::message);

/// Reads and checks the policy. Violations name fields under `input`.
pub fn read(input: Option<&Value>) -> Result<DevUserPolicy, Violations> {
    let input = input::given(input, KIND)?;
    let policy = input::read(&POLICY, input, &format!("{POLICY_GROUP}/{VERSION}"), KIND)?;
    let interval = outside("input.refreshInterval", &policy.refresh_interval, REFRESH);
    Violations::into_result(interval.into_iter().collect())?;
    Ok(policy)
}
