//! Labels, names and API versions that several kinds of composites use.

use api::policy::BehaviourVersion;

/// Label on all objects of an owner. Its value is the owner.
pub const OWNER_LABEL: &str = "platform.acme.io/owner";
/// API version of Kueue.
pub const KUEUE: &str = "kueue.x-k8s.io/v1beta2";

/// The prefix of the names of new objects. Without one, a developer could choose the name of another
/// person's object. Before behaviour version v3 there is none. `version` is none while the policy
/// cannot be read.
pub fn name_prefix(version: Option<BehaviourVersion>) -> &'static str {
    match version {
        Some(BehaviourVersion::V1 | BehaviourVersion::V2) => "",
        Some(BehaviourVersion::V3) | None => "gpuws-",
    }
}
