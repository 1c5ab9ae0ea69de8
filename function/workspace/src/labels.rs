//! Labels, names and API versions that several kinds of composites use.

use api::policy::BehaviourVersion;

/// Label on all objects of an owner. Its value is the owner.
pub const OWNER_LABEL: &str = "platform.acme.io/owner";
/// API version of this project's composites and records.
pub const API_VERSION: &str = "platform.acme.io/v1alpha1";
/// The prefix of the names of new objects from behaviour version v3 on. Without one, a developer
/// could choose the name of another person's object.
pub const NAME_PREFIX: &str = "gpuws-";
/// API version of Kueue.
pub const KUEUE: &str = "kueue.x-k8s.io/v1beta2";

/// The prefix of the names of new objects: [`NAME_PREFIX`], or none before behaviour version v3.
/// `version` is none while the policy cannot be read.
pub fn name_prefix(version: Option<BehaviourVersion>) -> &'static str {
    match version {
        Some(BehaviourVersion::V1 | BehaviourVersion::V2) => "",
        Some(BehaviourVersion::V3) | None => NAME_PREFIX,
    }
}

#[cfg(test)]
mod tests {
    use api::{VERSION, WORKSPACE_GROUP};

    use super::*;

    #[test]
    fn the_api_version_is_that_of_the_definitions() {
        assert_eq!(API_VERSION, format!("{WORKSPACE_GROUP}/{VERSION}"));
    }
}
