//! The kind of workspaces. It chooses the placement, EC2 or the cluster.

use api::WORKSPACE_GROUP;
use api::workspace::Placement;
use function_runtime::composite::Composite;
use function_runtime::kind::{GroupKind, Kind};
use function_runtime::request::Request;
use function_runtime::response::Response;
use function_workspace::placement;

/// The kind of workspaces.
pub(crate) struct Workspace {
    /// The name of the `EnvironmentConfig` with the platform's limits; none for no limits.
    pub limits: Option<&'static str>,
}

impl Kind for Workspace {
    fn group_kinds(&self) -> &'static [GroupKind] {
        // A namespaced composite has the same kind as the claim of a cluster-scoped composite.
        const {
            &[
                GroupKind {
                    group: WORKSPACE_GROUP,
                    kind: "GpuDevWorkspace",
                },
                GroupKind {
                    group: WORKSPACE_GROUP,
                    kind: "GpuDevWorkspaceClaim",
                },
            ]
        }
    }

    fn owns(&self, resource_name: &str) -> bool {
        function_ec2::owns(resource_name)
            || function_cluster::owns(resource_name)
            || placement::is_everywhere(resource_name)
    }

    fn render(&self, request: &Request, composite: Composite<'_>) -> Response {
        let of_ec2 = function_ec2::owns;
        match placement::of(request, composite, of_ec2, function_cluster::owns) {
            Placement::Ec2 => function_ec2::render(request, composite, self.limits),
            Placement::Cluster => function_cluster::render(request, composite, self.limits),
        }
    }
}
