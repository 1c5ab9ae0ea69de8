//! Conditions that workspaces share, wherever they run.

use api::condition::COMPUTE_READY;
use function_runtime::response::{CONFIG_RESOLVED, Condition};

/// `ConfigResolved` as it is when nothing is missing.
pub fn config_resolved(notice: String) -> Condition {
    Condition::true_with_message(CONFIG_RESOLVED, "Resolved", notice)
}

/// `ComputeReady` where there is no compute: none is composed until `ConfigResolved` holds.
pub fn compute_blocked() -> Condition {
    Condition::is_false(
        COMPUTE_READY,
        "ConfigUnresolved",
        format!("waiting for {CONFIG_RESOLVED}"),
    )
}
