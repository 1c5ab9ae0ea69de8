//! The decisions about a workspace that do not depend on its placement: policy, catalogue, owner,
//! lifecycle and cost.

pub mod access;
mod authorities;
pub mod bastion;
pub mod catalogue;
pub mod cause;
pub mod claim;
pub mod composition;
pub mod conditions;
pub mod cost;
pub mod dev_user;
pub mod effective;
mod environment_config;
pub mod flavor;
pub mod homes;
pub mod image_digest;
pub mod instance_types;
pub mod labels;
pub mod lifecycle;
pub mod limits;
pub mod login;
pub mod memory;
pub mod owner;
mod parts;
pub mod placed;
pub mod placement;
pub mod policy;
pub mod provider_error;
pub mod public_keys;
pub mod quantity;
pub mod reach;
pub mod render;
pub mod report;
pub mod setup;
pub mod spending;
pub mod ssh_networks;
pub mod suspension;
pub mod tenant_text;

pub use activity_report::host_key;
