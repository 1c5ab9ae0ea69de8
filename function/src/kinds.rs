//! The table of kinds: a kind more is a line more.

use api::WORKSPACE_GROUP;
use api::workspace::Placement;

use function_sdk_rust::proto::v1::RunFunctionResponse;
use jiff::Timestamp;

use crate::call::Call;
use crate::composite::Composite;
use crate::kind::{GroupKind, Kind, Kinds};
use crate::request::Request;
use crate::response::Response;
use crate::{cluster, compose, connection, dev_user, flavor, placement, render, service};

/// Every kind that this function serves.
pub static KINDS: Kinds = Kinds(&[&Workspace, &WorkspaceFlavor, &DevUser]);

/// A workspace, on EC2 or in the cluster. Neither placement knows the other one.
struct Workspace;
struct WorkspaceFlavor;
struct DevUser;

/// Answers a call, as of a time.
pub fn answer(call: Call, now: Timestamp) -> RunFunctionResponse {
    service::answer(KINDS, call, now, |_, _| {})
}

/// Decides what is desired.
pub fn render(request: &Request) -> Response {
    KINDS.render(request)
}

impl Kind for Workspace {
    fn group_kinds(&self) -> &'static [GroupKind] {
        // A namespaced composite has the kind of the other one's claim.
        const { &[of("GpuDevWorkspace"), of("GpuDevWorkspaceClaim")] }
    }

    fn owns(&self, resource_name: &str) -> bool {
        compose::resource_names::owns(resource_name)
            || cluster::owns(resource_name)
            || resource_name == connection::NAME
    }

    fn render(&self, request: &Request, composite: Composite<'_>) -> Response {
        let of_ec2 = compose::resource_names::owns;
        let mut response = match placement::of(request, composite, of_ec2, cluster::owns) {
            Placement::Ec2 => render::render(request, composite),
            Placement::Cluster => cluster::render(request, composite),
        };
        if let Some(desired) = &mut response.desired {
            connection::publish(composite, &request.observed, desired);
        }
        response
    }
}

impl Kind for WorkspaceFlavor {
    fn group_kinds(&self) -> &'static [GroupKind] {
        const { &[of("WorkspaceFlavor")] }
    }

    fn owns(&self, _: &str) -> bool {
        false
    }

    fn render(&self, _: &Request, composite: Composite<'_>) -> Response {
        flavor::render(composite)
    }
}

impl Kind for DevUser {
    fn group_kinds(&self) -> &'static [GroupKind] {
        const { &[of("DevUser")] }
    }

    fn owns(&self, resource_name: &str) -> bool {
        dev_user::owns(resource_name)
    }

    fn render(&self, request: &Request, composite: Composite<'_>) -> Response {
        dev_user::render(request, composite)
    }
}

const fn of(kind: &'static str) -> GroupKind {
    GroupKind {
        group: WORKSPACE_GROUP,
        kind,
    }
}
