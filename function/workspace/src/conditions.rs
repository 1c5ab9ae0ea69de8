//! Conditions of workspaces in every placement.

use api::condition::COMPUTE_READY;
use function_runtime::response::{CONFIG_RESOLVED, Condition};

/// `ConfigResolved` with status `True`. `notice` is its message, or empty.
pub fn config_resolved(notice: String) -> Condition {
    Condition::true_with_message(CONFIG_RESOLVED, "Resolved", notice)
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
