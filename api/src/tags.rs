//! Keys by which the provider recognises what it owns in EC2.
//!
//! The keys hold no slash, or EC2 would refuse to show tags in instance metadata.
//! Nothing without [`POOL_UID`] and [`CLUSTER`] is ever changed or terminated.

/// Identifies the control plane: the UID of the provider's identity `ConfigMap`.
pub const CLUSTER: &str = "gpu.platform.acme.io:cluster";
/// UID of the `SpotPool` that owns the EC2 resource.
pub const POOL_UID: &str = "gpu.platform.acme.io:pool-uid";
/// `namespace/name` of that pool, for people.
pub const POOL: &str = "gpu.platform.acme.io:pool";
/// The launch, counted per pool, that created the instance.
pub const LAUNCH: &str = "gpu.platform.acme.io:launch";
/// The launch template's generation that the instance, or the template, is of.
pub const GENERATION: &str = "gpu.platform.acme.io:generation";
/// UID of the lease that has the instance.
pub const LEASE: &str = "gpu.platform.acme.io:lease";
/// A digest of what the lease has the instance tagged with.
pub const LEASE_DIGEST: &str = "gpu.platform.acme.io:lease-digest";
/// The lease's keys are in tags `…:authorized-key-1` and so on; unused ones are empty.
pub const AUTHORIZED_KEY: &str = "gpu.platform.acme.io:authorized-key";
/// `namespace/name` of the lease, for people and cost reports.
pub const LEASE_NAME: &str = "gpu.platform.acme.io:lease-name";
/// The number of the pool's home volume, or of the copy that a snapshot is for: volumes
/// with it outlive instances.
pub const HOME: &str = "gpu.platform.acme.io:home";
/// The volume that a home volume is a copy of.
pub const HOME_COPY_OF: &str = "gpu.platform.acme.io:home-copy-of";
/// When a home volume's pool was deleted, and left it.
pub const HOME_KEPT: &str = "gpu.platform.acme.io:home-kept";
/// Whose workspace it is.
pub const OWNER: &str = "gpu.platform.acme.io:owner";
/// EC2's own display name.
pub const NAME: &str = "Name";

/// Tags under this prefix are the provider's; a spec may not set them.
pub const RESERVED_PREFIX: &str = "gpu.platform.acme.io:";
