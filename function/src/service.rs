//! The answer to a call, around the decision.
//!
//! Whatever is wrong with a request is a fatal result of its response; a gRPC
//! error would tell Crossplane that the function is broken.

use function_sdk_rust::proto::v1::RunFunctionResponse;
use jiff::Timestamp;
use tracing::debug;

use crate::call::Call;
use crate::composite::Composite;
use crate::render::render;

/// Answers a call, as of a time.
pub fn answer(mut call: Call, now: Timestamp) -> RunFunctionResponse {
    call.request.now = now;
    let request = &call.request;
    let response = render(request);
    let composite = request.composite.as_ref().map(Composite::new);
    debug!(
        composite = composite.map(Composite::name),
        tag = call.meta.as_ref().map(|meta| meta.tag.as_str()),
        conditions = %response
            .conditions
            .iter()
            .map(|c| format!("{}={}/{}", c.type_, c.holds, c.reason))
            .collect::<Vec<_>>()
            .join(" "),
        "ran"
    );
    response.onto(call)
}
