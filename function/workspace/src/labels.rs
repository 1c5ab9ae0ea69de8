//! Labels and API versions that several kinds of composites use.

/// Label on all objects of an owner. Its value is the owner.
pub const OWNER_LABEL: &str = "platform.acme.io/owner";
/// API version of Kueue.
pub const KUEUE: &str = "kueue.x-k8s.io/v1beta2";
