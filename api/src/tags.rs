//! Tag keys by which the provider recognises its own resources in EC2.
//!
//! The keys hold no slash: EC2 refuses tags with a slash in their keys in instance metadata. The
//! provider never changes or terminates a resource without [`POOL_UID`] and [`CLUSTER`].

/// Identifies the control plane: the UID of the provider's identity `ConfigMap`.
pub const CLUSTER: &str = "gpu.platform.acme.io:cluster";
/// UID of the `SpotPool` that owns the EC2 resource.
pub const POOL_UID: &str = "gpu.platform.acme.io:pool-uid";
/// `namespace/name` of the owning pool, for people.
pub const POOL: &str = "gpu.platform.acme.io:pool";
/// Number of the launch that created the instance. The pool counts its launches.
pub const LAUNCH: &str = "gpu.platform.acme.io:launch";
/// Generation of the launch template. Set on the template and on its instances.
pub const GENERATION: &str = "gpu.platform.acme.io:generation";
/// UID of the lease that has the instance.
pub const LEASE: &str = "gpu.platform.acme.io:lease";
/// Digest of the tags that the lease asks for on the instance.
pub const LEASE_DIGEST: &str = "gpu.platform.acme.io:lease-digest";
/// Prefix of the tags with the lease's keys: `…:authorized-key-1` and so on. Unused tags are empty.
pub const AUTHORIZED_KEY: &str = "gpu.platform.acme.io:authorized-key";
/// `namespace/name` of the lease, for people and cost reports.
pub const LEASE_NAME: &str = "gpu.platform.acme.io:lease-name";
/// Number of the pool's home volume. Set on home volumes and on snapshots for their copies. A
/// volume with this tag outlives instances.
pub const HOME: &str = "gpu.platform.acme.io:home";
/// Id of the volume from which a home volume is copied.
pub const HOME_COPY_OF: &str = "gpu.platform.acme.io:home-copy-of";
/// When the pool of a home volume was deleted while the volume was kept.
pub const HOME_KEPT: &str = "gpu.platform.acme.io:home-kept";
/// Owner of the workspace or lease.
pub const OWNER: &str = "gpu.platform.acme.io:owner";
/// EC2's own tag for the display name.
pub const NAME: &str = "Name";

/// Tags under this prefix are the provider's; a spec may not set them.
pub const RESERVED_PREFIX: &str = "gpu.platform.acme.io:";
