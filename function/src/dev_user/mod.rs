//! A `DevUser`: a person, and a namespace that is theirs alone.
//!
//! Their workspaces are in that namespace, so it goes last: while there is a home or
//! a workspace, a `ClusterUsage` of the `DevUser` itself refuses its deletion, unless
//! the policy says that homes go with their owner.

pub mod budget;
mod objects;
mod policy;
mod protection;
mod render;
mod resource_names;

pub use objects::KIND;
pub use render::render;
pub use resource_names::owns;
