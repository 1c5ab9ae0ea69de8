//! Names of labels and of APIs that more than one kind of composite uses.

/// The label of everything that belongs to an owner; its value is the owner.
pub const OWNER_LABEL: &str = "platform.acme.io/owner";
/// Kueue's API.
pub const KUEUE: &str = "kueue.x-k8s.io/v1beta2";
