//! Reads `FlavorPolicy`, the function's input in the Composition of flavors.

use api::flavor::FlavorPolicy;
use api::patterns;
use api::{POLICY_GROUP, VERSION};
use function_runtime::input;
use function_runtime::validation::{Schema, Violations};
use serde_json::Value;

/// The region of the prices, if the policy names none.
pub const REGION: &str = "us-east-1";

const KIND: &str = "FlavorPolicy";
static POLICY: Schema<FlavorPolicy> = Schema::of("input", patterns::message);

/// Reads and checks the policy; none for a Composition without input. Violations name fields under
/// `input`.
pub fn read(input: Option<&Value>) -> Result<Option<FlavorPolicy>, Violations> {
    let version = format!("{POLICY_GROUP}/{VERSION}");
    let read = |input| input::read(&POLICY, input, &version, KIND);
    input.map(read).transpose()
}
