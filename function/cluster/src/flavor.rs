//! The kind `WorkspaceFlavor`. The function composes nothing for a flavor and reports whether
//! workspaces can use it.

use std::time::Duration;

use api::WORKSPACE_GROUP;
use function_runtime::composite::Composite;
use function_runtime::desired::Desired;
use function_runtime::kind::{GroupKind, Kind};
use function_runtime::request::Request;
use function_runtime::response::{CONFIG_RESOLVED, Condition, Response};
use function_workspace::flavor::read;
use serde_json::json;

/// The name of the kind.
pub const KIND: &str = "WorkspaceFlavor";
/// The result depends on the flavor only, so it needs no early call.
const TTL: Duration = Duration::from_hours(1);

/// The kind `WorkspaceFlavor`.
pub struct WorkspaceFlavor;

impl Kind for WorkspaceFlavor {
    fn group_kinds(&self) -> &'static [GroupKind] {
        const {
            &[GroupKind {
                group: WORKSPACE_GROUP,
                kind: "WorkspaceFlavor",
            }]
        }
    }

    fn owns(&self, _: &str) -> bool {
        false
    }

    fn render(&self, _: &Request, composite: Composite<'_>) -> Response {
        render(composite)
    }
}

/// Reports whether the flavor is usable.
fn render(composite: Composite<'_>) -> Response {
    let none = json!({});
    let verdict = read(composite.at(&["spec"]).unwrap_or(&none));
    let condition = match &verdict {
        Ok(_) => Condition::is_true(CONFIG_RESOLVED, "Usable"),
        Err(violations) => {
            Condition::is_false(CONFIG_RESOLVED, "FlavorInvalid", violations.to_string())
        }
    };
    let desired = Desired {
        ready: Some(verdict.is_ok()),
        ..Desired::default()
    };
    Response {
        conditions: vec![condition],
        ..Response::desiring(TTL, desired)
    }
}
