//! Workspaces on EC2: each is a `SpotPool` of this project's provider, or an `Instance` of
//! upbound's provider-aws.
//!
//! [`fn@render`] decides what is desired for such a workspace.

mod access;
mod capacity;
mod choice;
mod claim_paths;
mod compose;
mod finding;
mod gpu;
mod image;
pub mod image_build;
mod instance_types;
mod keys;
mod on_demand;
mod prices;
mod region;
mod render;
mod replacement;
mod requirements;
mod resolve;
mod resolved;
mod resource_names;
mod setup;
pub mod software;
mod spot;
mod status;
mod unreadable;
pub mod user_data;
mod wheels;

pub use on_demand::home::attachment_name;
pub use render::render;
pub use resource_names::owns;
