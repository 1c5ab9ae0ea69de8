//! Workspaces on demand: managed resources of upbound's provider-aws-ec2.
//!
//! Facts of that provider (v2.5) that the rendering follows:
//! - A field that EC2 cannot change makes every further update fail, so such a
//!   field is part of the resource's name ([`crate::resource_names`]) and otherwise kept.
//! - A change of user data or type stops and starts the instance in place. Here
//!   it makes another instance, or none at all.
//! - Terraform removes EC2's rule for everything that goes out from a new group.
//! - A reference is resolved once. An attachment names ids, since the instance
//!   of one object may become another one.

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
