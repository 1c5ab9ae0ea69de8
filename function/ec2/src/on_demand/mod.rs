//! On-demand workspaces: managed resources of upbound's provider-aws-ec2.
//!
//! Facts about that provider (v2.5) that this code relies on:
//! - If a field changes that EC2 cannot change, every further update fails. Such a field is part
//!   of the composition resource name ([`crate::resource_names`]) or keeps its first value.
//! - If user data or the type changes, the provider stops and starts the instance. This function
//!   replaces the instance, or changes nothing.
//! - Terraform removes EC2's default egress rule from a new security group.
//! - A reference is resolved once. An attachment therefore names ids, since an object may get
//!   another instance.

pub mod api;
pub mod failure;
pub mod finding;
pub mod home;
pub mod instance;
pub mod instance_state;
pub mod network;
pub mod observed;
pub mod usages;

pub use observed::OnDemandInstance;
