//! Reads `DevUserPolicy`, the function's input in the Composition of users.

use api::dev_user::DevUserPolicy;
use api::patterns;
use api::{POLICY_GROUP, VERSION};
use function_runtime::input;
use function_runtime::validation::{Schema, Violations};
use serde_json::Value;

const KIND: &str = "DevUserPolicy";
static POLICY: Schema<DevUserPolicy> = Schema::of("input", patterns::message);

/// Reads and checks the policy. Violations name fields under `input`.
pub fn read(input: Option<&Value>) -> Result<DevUserPolicy, Violations> {
    let input = input::given(input, KIND)?;
    input::read(&POLICY, input, &format!("{POLICY_GROUP}/{VERSION}"), KIND)
}
