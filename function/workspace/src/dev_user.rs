//! The `DevUser` with the name of a workspace's owner.

use api::policy::WorkspacePolicy;
use api::workspace::GpuDevWorkspaceStatus;
use function_runtime::json::Json;
use function_runtime::outcome::{Hold, Problem};
use function_runtime::request::{Request, Required};
use function_runtime::requirement::Requirement;
use thiserror::Error;

use crate::cost::budget;

/// The requirement for the owner's `DevUser`; none if neither keys nor budgets need it.
pub fn requirement(
    has_keys: bool,
    policy: Option<&WorkspacePolicy>,
    status: &GpuDevWorkspaceStatus,
    owner: &str,
) -> Option<Requirement> {
    let user = (has_keys && !owner.is_empty()).then(|| budget::dev_user(owner));
    user.or_else(|| budget::requirement(policy, status, owner))
}

/// The owner's `DevUser`; none if its keys do not count, or the owner has none.
///
/// # Errors
///
/// Crossplane has not fetched the `DevUser` yet.
pub fn of<'a>(
    has_keys: bool,
    request: &'a Request<'a>,
    owner: &str,
) -> Result<Option<&'a Json<'a>>, Hold> {
    if !has_keys {
        return Ok(None);
    }
    match request.required(budget::REQUIREMENT) {
        Required::Unresolved => Err(Hold::from(Unresolved {
            name: owner.to_owned(),
        })),
        Required::Absent => Ok(None),
        Required::Present(user) => Ok(Some(user)),
    }
}

/// The SSH public keys of a `DevUser`.
pub fn public_keys(user: Option<&Json<'_>>) -> Vec<String> {
    let keys = user.and_then(|user| user.pointer("/spec/publicKeys"));
    let keys = keys.and_then(Json::as_list).into_iter().flatten();
    keys.filter_map(Json::as_str).map(str::to_owned).collect()
}

/// The UID of a `DevUser`.
pub fn uid(user: Option<&Json<'_>>) -> Option<String> {
    let uid = user?.pointer("/metadata/uid")?.as_str()?;
    Some(uid.to_owned())
}

/// Crossplane has not fetched the owner's `DevUser` yet.
#[derive(Clone, Debug, Error)]
#[error("waiting for Crossplane to fetch DevUser {name}")]
struct Unresolved {
    /// The `DevUser`.
    name: String,
}

impl Problem for Unresolved {
    fn reason(&self) -> &'static str {
        "DevUserUnresolved"
    }

    fn is_pending(&self) -> bool {
        true
    }
}
