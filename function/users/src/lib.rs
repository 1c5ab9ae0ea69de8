//! `DevUser`: a person with a namespace of their own.
//!
//! The homes of the person are in that namespace, so the namespace must not be deleted with the
//! `DevUser` by mistake. While the namespace holds a home, a `ClusterUsage` refuses the deletion of
//! the `DevUser`, unless the policy sets `home.onDelete: Delete`.

mod access;
mod budget;
mod counted;
mod existing;
mod objects;
mod policy;
mod protection;
mod refused;
mod render;
mod resource_names;

pub use budget::{SETTLES, WORKSPACES};

use api::WORKSPACE_GROUP;
use function_runtime::composite::Composite;
use function_runtime::kind::{GroupKind, Kind};
use function_runtime::request::Request;
use function_runtime::response::Response;

/// The kind `DevUser`.
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
