//! The table of kinds: a kind more is a line more.

use function_cluster::flavor::WorkspaceFlavor;
use function_runtime::kind::Kinds;
use function_runtime::request::Request;
use function_runtime::response::Response;
use function_sdk_rust::proto::v1::RunFunctionResponse;
use function_server::answer;
use function_server::decode::call::Call;
use function_users::DevUser;
use jiff::Timestamp;

use crate::workspace::Workspace;

/// Every kind that this function serves.
pub static KINDS: Kinds = Kinds(&[&Workspace, &WorkspaceFlavor, &DevUser]);

/// Answers a call, as of a time.
pub fn answer(call: Call, now: Timestamp) -> RunFunctionResponse {
    answer::answer(KINDS, call, now, |_, _| {})
}

/// Decides what is desired.
pub fn render(request: &Request) -> Response {
    KINDS.render(request)
}
