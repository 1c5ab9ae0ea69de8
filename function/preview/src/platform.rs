//! The platform as it is now, for decisions about claims.

use std::future::Future;

use function_runtime::requirement::Requirement;
use serde_json::Value;

/// The kinds of the function's inputs.
pub(crate) const WORKSPACE_POLICY: &str = "WorkspacePolicy";
pub(crate) const DEV_USER_POLICY: &str = "DevUserPolicy";

/// The platform as it is now.
pub trait Platform: Sync {
    /// Why the platform cannot be read.
    type Error: Send;

    /// The input of this kind in the Composition that Crossplane takes for an object; none if there is none.
    fn policy(&self, kind: &str, object: &Value) -> Option<Value>;

    /// The objects that a requirement selects. An object of a kind that the platform does not give counts as absent.
    fn select(
        &self,
        requirement: &Requirement,
    ) -> impl Future<Output = Result<Vec<Value>, Self::Error>> + Send;
}
