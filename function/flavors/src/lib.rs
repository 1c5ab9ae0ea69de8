//! `WorkspaceFlavor`: the menu of machines that a platform offers.
//!
//! The function composes nothing for a flavor. It reports whether workspaces can use the flavor, and
//! what the machine has and costs, so that `kubectl get flavors` is the menu.

mod menu;
mod policy;

use std::time::Duration;

use api::WORKSPACE_GROUP;
use api::flavor::{FlavorPolicy, WorkspaceFlavorSpec};
use function_runtime::composite::Composite;
use function_runtime::desired::Desired;
use function_runtime::kind::{GroupKind, Kind};
use function_runtime::outcome::{Refusal, Unresolved};
use function_runtime::request::Request;
use function_runtime::response::{CONFIG_RESOLVED, Condition, Response, fields};
use function_runtime::validation::given;
use function_workspace::catalogue::{self, Known};
use function_workspace::flavor;

/// When to look again: prices change without an event.
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

    fn render(&self, request: &Request, composite: Composite<'_>) -> Response {
        match flavor::read(&given(composite.at(&["spec"]))) {
            Ok(flavor) => usable(request, composite.name(), &flavor),
            Err(violations) => {
                let said = violations.to_string();
                let condition = Condition::is_false(CONFIG_RESOLVED, "FlavorInvalid", said);
                answer(condition, Desired::default(), false)
            }
        }
    }
}

/// The answer for a flavor that workspaces can use. A catalogue that cannot be read takes nothing away
/// but prices and descriptions.
fn usable(request: &Request, name: &str, flavor: &WorkspaceFlavorSpec) -> Response {
    let policy = policy::read(request.policy.as_ref());
    let policy = policy.map_err(|violations| Unresolved::from(Refusal::policy(&violations)));
    let known = policy.as_ref().map_err(Clone::clone).and_then(|policy| {
        let reference = policy.as_ref().map(|policy| &policy.catalogue);
        let known = reference.map(|reference| catalogue::of(reference, request));
        known.transpose().map_err(Unresolved::from)
    });
    let condition = match &known {
        Ok(_) => Condition::is_true(CONFIG_RESOLVED, "Usable"),
        Err(why) => {
            let said = format!("without prices: {why}");
            Condition::true_with_message(CONFIG_RESOLVED, "Usable", said)
        }
    };
    let Known { catalogue, .. } = known.ok().flatten().unwrap_or_default();
    let policy = policy.ok().flatten();
    let region = policy.as_ref().and_then(|policy| policy.region.as_deref());
    let status = menu::entry(name, flavor, &catalogue, region.unwrap_or(policy::REGION));
    let status = fields(&status).unwrap_or_default();
    let desired = Desired {
        status,
        ..Desired::default()
    };
    Response {
        requirements: policy.map_or_else(Vec::new, |policy: FlavorPolicy| {
            catalogue::requirements_of(&policy.catalogue)
        }),
        ..answer(condition, desired, true)
    }
}

fn answer(condition: Condition, desired: Desired, is_usable: bool) -> Response {
    let desired = Desired {
        ready: Some(is_usable),
        ..desired
    };
    Response {
        conditions: vec![condition],
        ..Response::desiring(TTL, desired)
    }
}
