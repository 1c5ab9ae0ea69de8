//! A `DevUser`: a person, and a namespace that is theirs alone.
//!
//! Their workspaces are in that namespace, so it goes last: while there is a home or
//! a workspace, a `ClusterUsage` of the `DevUser` itself refuses its deletion, unless
//! the policy says that homes go with their owner.

mod budget;
mod objects;
mod policy;
mod protection;
mod render;
mod resource_names;

use api::WORKSPACE_GROUP;
use function_runtime::composite::Composite;
use function_runtime::kind::{GroupKind, Kind};
use function_runtime::request::Request;
use function_runtime::response::Response;

/// A person who may have workspaces.
pub struct DevUser;

impl Kind for DevUser {
    fn group_kinds(&self) -> &'static [GroupKind] {
        const {
            &[GroupKind {
                group: WORKSPACE_GROUP,
                kind: "DevUser",
            }]
        }
    }

    fn owns(&self, resource_name: &str) -> bool {
        resource_names::owns(resource_name)
    }

    fn render(&self, request: &Request, composite: Composite<'_>) -> Response {
        render::render(request, composite)
    }
}
