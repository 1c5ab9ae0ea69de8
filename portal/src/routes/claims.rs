//! The claims that a person sees.

use portal_core::problem::Problem;
use portal_core::visible::Visible;
use serde_json::Value;

use crate::app::Portal;

/// A claim, if the person sees it.
pub(super) fn seen(
    portal: &Portal,
    visible: &Visible,
    namespace: &str,
    name: &str,
) -> Result<Value, Problem> {
    if !visible.has(namespace) {
        return Err(absent(namespace, name));
    }
    let found = portal.mirror.read()?.claim(namespace, name)?;
    found.ok_or_else(|| absent(namespace, name))
}

/// A change that Argo CD would undo.
pub(super) fn managed_by_git(detail: String) -> Problem {
    Problem::new(409, "managed-by-git", "Git has this workspace", detail)
}

fn absent(namespace: &str, name: &str) -> Problem {
    let detail = format!("workspace {namespace}/{name} does not exist, or you may not see it");
    Problem::new(404, "not-found", "Workspace not found", detail)
}
