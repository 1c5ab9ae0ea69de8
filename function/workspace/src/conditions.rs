//! Conditions of workspaces in every placement.

use api::condition::{ADMITTED, COMPUTE_READY, HOME_READY, INTERRUPTING};
use function_runtime::composite::Composite;
use function_runtime::outcome::Unresolved;
use function_runtime::response::{CONFIG_RESOLVED, Condition};

/// `ConfigResolved` with status `True`. `notice` is its message, or empty.
pub fn config_resolved(notice: String) -> Condition {
    Condition::true_with_message(CONFIG_RESOLVED, "Resolved", notice)
}

/// `ConfigResolved` of a workspace that cannot be resolved: `Unknown` until Crossplane has fetched what
/// the function needs, and `False` after that.
pub fn config_unresolved(why: &Unresolved) -> Condition {
    let (reason, message) = (why.reason(), why.to_string());
    if why.is_pending() {
        Condition::unknown(CONFIG_RESOLVED, reason, message)
    } else {
        Condition::is_false(CONFIG_RESOLVED, reason, message)
    }
}

/// `ComputeReady` with status `False`. The function composes no compute before `ConfigResolved`
/// holds.
pub fn compute_blocked() -> Condition {
    Condition::is_false(
        COMPUTE_READY,
        "ConfigUnresolved",
        format!("waiting for {CONFIG_RESOLVED}"),
    )
}

/// The observed conditions about a workspace's machines and home, as the last call left them. They
/// stay while the function cannot read the resources that they are about.
pub fn observed(composite: Composite<'_>) -> Vec<Condition> {
    let observed = |type_| {
        let observed = composite.condition(type_)?;
        Some(Condition {
            type_,
            status: observed.status,
            reason: observed.reason.to_owned(),
            message: observed.message.to_owned(),
        })
    };
    let compute = observed(COMPUTE_READY).unwrap_or_else(compute_blocked);
    let others = [HOME_READY, ADMITTED, INTERRUPTING]
        .into_iter()
        .filter_map(observed);
    [compute].into_iter().chain(others).collect()
}
