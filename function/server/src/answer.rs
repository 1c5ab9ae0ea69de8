//! Builds the response to a call from the decision.
//!
//! An invalid request gets a fatal result in its response. With a gRPC error Crossplane would
//! report a broken function.

use function_runtime::composite::Composite;
use function_runtime::kind::Kinds;
use function_runtime::request::Request;
use function_runtime::response::Response;
use jiff::Timestamp;
use tracing::debug;

use crate::decode::call::Call;
use crate::encode::response::{Answer, response};

/// Decides as of `now`, passes the decision to `observe`, and returns the response.
pub fn answer(
    kinds: Kinds,
    mut call: Call<'_>,
    now: Timestamp,
    observe: impl FnOnce(&Request, &Response),
) -> Answer {
    call.request.now = now;
    let request = &call.request;
    let decision = kinds.render(request);
    observe(request, &decision);
    let composite = request.composite.as_ref().map(Composite::new);
    debug!(
        composite = composite.map(Composite::name),
        tag = call.meta.as_ref().map(|meta| meta.tag.as_str()),
        conditions = %decision
            .conditions
            .iter()
            .map(|c| format!("{}={}/{}", c.type_, c.status.as_str(), c.reason))
            .collect::<Vec<_>>()
            .join(" "),
        "ran"
    );
    response(decision, call)
}
