//! The table of the kinds that this function serves. A new kind is one more entry.

use function_flavors::WorkspaceFlavor;
use function_runtime::kind::{Kind, Kinds};
use function_runtime::request::Request;
use function_runtime::response::Response;
use function_server::answer;
use function_server::decode::call::Call;
use function_server::encode::response::Answer;
use function_users::DevUser;
use jiff::Timestamp;

use crate::workspace::Workspace;

/// Every kind that this function serves, without platform limits.
pub static KINDS: Kinds = Kinds(&UNLIMITED);

static UNLIMITED: [&dyn Kind; 3] = table(&Workspace { limits: None });

/// Every kind that this function serves, with the platform's limits in the `EnvironmentConfig`
/// `limits`. The table lives as long as the process.
pub fn limited(limits: String) -> Kinds {
    let limits = Some(&*limits.leak());
    let workspace = Box::leak(Box::new(Workspace { limits }));
    Kinds(Box::leak(Box::new(table(workspace))))
}

const fn table(workspace: &'static Workspace) -> [&'static dyn Kind; 3] {
    [workspace, &WorkspaceFlavor, &DevUser]
}

/// Answers a call of Crossplane as of `now`.
pub fn answer(call: Call, now: Timestamp) -> Answer {
    answer::answer(KINDS, call, now, |_, _| {})
}

/// Decides what is desired for the composite of a request.
pub fn render(request: &Request) -> Response {
    KINDS.render(request)
}
