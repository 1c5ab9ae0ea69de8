//! Keys by which the provider recognises what it owns in EC2.
//!
//! Nothing without [`POOL_UID`] and [`CLUSTER`] is ever changed or terminated.

/// Identifies the control plane: the UID of the provider's identity `ConfigMap`.
pub const CLUSTER: &str = "gpu.platform.acme.io/cluster";
/// UID of the `SpotPool` that owns the EC2 resource.
pub const POOL_UID: &str = "gpu.platform.acme.io/pool-uid";
/// `namespace/name` of that pool, for people.
pub const POOL: &str = "gpu.platform.acme.io/pool";
/// The pool's slot that the instance fills, from 0.
pub const SLOT: &str = "gpu.platform.acme.io/slot";
/// The launch, counted per pool, that created the instance.
pub const LAUNCH: &str = "gpu.platform.acme.io/launch";
/// Whose workspace it is.
pub const OWNER: &str = "gpu.platform.acme.io/owner";
/// `namespace/name` of the claim, for people and cost reports.
pub const CLAIM: &str = "gpu.platform.acme.io/claim";
/// EC2's own display name.
pub const NAME: &str = "Name";

/// Tags under this prefix are the provider's; a spec may not set them.
pub const RESERVED_PREFIX: &str = "gpu.platform.acme.io/";
