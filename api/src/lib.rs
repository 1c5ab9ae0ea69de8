//! All API types of GPU workspaces.
//!
//! | group | kinds | who writes them |
//! |---|---|---|
//! | [`WORKSPACE_GROUP`] | `GpuDevWorkspace`, by claim `GpuDevWorkspaceClaim` | developers |
//! | | `WorkspaceFlavor`, `DevUser` | platform teams |
//! | | `WorkspaceRecord` | the function |
//! | [`POOL_GROUP`] | `SpotPool`, `SpotLease`, `ProviderConfig`, `ClusterProviderConfig`, `ProviderConfigUsage` | the function, platform teams |
//! | [`POLICY_GROUP`] | `WorkspacePolicy`, `DevUserPolicy`, `FlavorPolicy`, the function's inputs in Compositions | platform teams |
//!
//! `catalogue` and `limits` type the data of the EnvironmentConfigs that the function reads.
//! XRDs, CRDs and the input's schema under `xrds/` and `package/` are generated
//! from these types by `cargo xtask codegen`.

pub mod capacity;
pub mod catalogue;
pub mod cluster;
pub mod condition;
pub mod cost;
pub mod dev_user;
pub mod duration;
mod fields;
pub mod flavor;
pub mod home;
pub mod internal;
pub mod lease;
pub mod lifecycle;
pub mod limits;
pub mod managed;
pub mod patterns;
pub mod policy;
pub mod pool;
pub mod provider_config;
pub mod record;
pub mod tags;
pub mod workspace;

/// API group of the composites and the claim.
pub const WORKSPACE_GROUP: &str = "platform.acme.io";
/// API group of the managed resources and their configuration.
pub const POOL_GROUP: &str = "gpu.platform.acme.io";
/// API group of the function's inputs. No API server serves it.
pub const POLICY_GROUP: &str = "workspace.fn.platform.acme.io";
/// The version of all API groups.
pub const VERSION: &str = "v1alpha1";
