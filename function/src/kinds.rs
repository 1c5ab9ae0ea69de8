//! The table of the kinds that this function serves. A new kind is one more entry.

use function_cluster::flavor::WorkspaceFlavor;
use function_runtime::kind::Kinds;
use function_runtime::request::Request;
use function_runtime::response::Response;
use function_server::answer;
use function_server::decode::call::Call;
use function_server::encode::response::Answer;
use function_users::DevUser;
use jiff::Timestamp;

use crate::workspace::Workspace;

/// Every kind that this function serves.
pub static KINDS: Kinds = Kinds(&[&Workspace, &WorkspaceFlavor, &DevUser]);

/// Answers a call of Crossplane as of `now`.
pub fn answer(call: Call, now: Timestamp) -> Answer {
    answer::answer(KINDS, call, now, |_, _| {})
}

/// Decides what is desired for the composite of a request.
pub fn render(request: &Request) -> Response {
    KINDS.render(request)
}
