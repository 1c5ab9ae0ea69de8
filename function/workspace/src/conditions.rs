//! Conditions that workspaces share, wherever they run.

use api::condition::COMPUTE_READY;

use function_runtime::response::{CONFIG_RESOLVED, Condition};

/// `ConfigResolved` as it is when nothing is missing.
pub fn config_resolved(notice: String) -> Condition {
    Condition::holds_but(CONFIG_RESOLVED, "Resolved", notice)
}

/// `ComputeReady` where there is no compute: none is composed until `ConfigResolved` holds.
pub fn compute_blocked() -> Condition {
    Condition::fails(
        COMPUTE_READY,
        "ConfigUnresolved",
        format!("waiting for {CONFIG_RESOLVED}"),
    )
}
