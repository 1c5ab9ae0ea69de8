//! The suspension of an owner.

use function_runtime::json::Json;
use function_runtime::request::{Request, Required};

use crate::cause::{Cause, Reason};

/// Name of the requirement for the owner's `DevUser`.
pub const DEV_USER: &str = "dev-user";

/// Why nothing starts for an owner and no key of theirs counts; none unless the owner's `DevUser` is
/// suspended. A policy that uses no `DevUser`s does not know.
pub fn of(request: &Request, owner: &str) -> Option<Cause> {
    let Required::Present(user) = request.required(DEV_USER) else {
        return None;
    };
    let suspended = user.pointer("/spec/suspended").and_then(Json::as_bool);
    (suspended == Some(true)).then(|| {
        let message = format!(
            "DevUser {owner} is suspended: nothing starts for this owner, and their keys are removed; \
             only the platform team may set spec.suspended of that DevUser to false"
        );
        Cause::new(Reason::OwnerSuspended, message)
    })
}
