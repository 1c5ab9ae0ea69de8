//! Workspaces on EC2, as a `SpotPool` of this project's provider or as an `Instance` of
//! upbound's.
//!
//! [`fn@render`] decides.

mod capacity;
mod claim_paths;
mod compose;
mod finding;
mod image;
mod instance_types;
mod on_demand;
mod prices;
mod render;
mod replacement;
mod requirements;
mod resolve;
mod resolved;
mod resource_names;
pub mod software;
mod spot;
mod status;
mod unreadable;
pub mod user_data;

pub use on_demand::home::attachment_name;
pub use render::render;
pub use resource_names::owns;
