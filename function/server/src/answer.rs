//! Builds the response to a call from the decision.
//!
//! An invalid request gets a fatal result in its response. With a gRPC error Crossplane would
//! report a broken function.

use std::collections::BTreeMap;

use function_runtime::composite::Composite;
use function_runtime::desired::Composed;
use function_runtime::kind::Kinds;
use function_runtime::request::Request;
use function_runtime::response::Response;
use function_sdk_rust::proto::v1::RunFunctionResponse;
use jiff::Timestamp;
use tracing::debug;

use crate::decode::call::Call;
use crate::encode::response;

/// The response to a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The message, with the desired resources of earlier steps of the pipeline.
    pub message: RunFunctionResponse,
    /// The composed resources of the decision, by composition resource name. They replace those in
    /// the message with the same name.
    pub composed: BTreeMap<String, Composed>,
}

impl From<RunFunctionResponse> for Answer {
    /// A response without resources of a decision.
    fn from(message: RunFunctionResponse) -> Self {
        Self {
            message,
            composed: BTreeMap::new(),
        }
    }
}

/// Decides as of `now`, passes the decision to `observe`, and returns the response.
pub fn answer(
    kinds: Kinds,
    mut call: Call,
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
            .map(|c| format!("{}={}/{}", c.type_, c.is_true, c.reason))
            .collect::<Vec<_>>()
            .join(" "),
        "ran"
    );
    response::response(decision, call)
}
