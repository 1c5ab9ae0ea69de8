//! Converts a decision into the protocol's response.

use std::collections::BTreeMap;

use function_runtime::desired::{Composed, Desired};
use function_runtime::message::bounded;
use function_runtime::object::Status;
use function_runtime::requirement::{Requirement, Selector};
use function_runtime::response::{Condition, Event, Response, Severity};
use function_sdk_rust::proto::v1::{Ready, RunFunctionRequest, RunFunctionResponse, Target};
use function_sdk_rust::resource::{add_connection_detail, json_to_pb, pb_to_json, set_ready};
use function_sdk_rust::response::{self as sdk, ResourceMatch};
use serde_json::{Map, Value};

use crate::decode::call::Call;

/// Crossplane's label on a composite with the namespace of its claim.
const CLAIM_NAMESPACE: &str = "crossplane.io/claim-namespace";

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

/// The protocol's response: the desired state and the context of earlier steps, and this decision.
pub fn response(decision: Response, call: Call<'_>) -> Answer {
    let request = RunFunctionRequest {
        meta: call.meta,
        ..RunFunctionRequest::default()
    };
    let mut rsp = RunFunctionResponse {
        desired: call.desired,
        context: call.context,
        ..sdk::to(&request, decision.ttl)
    };
    for requirement in decision.requirements {
        add_requirement(&mut rsp, requirement);
    }
    let composed = match decision.desired {
        Some(desired) => add_desired(&mut rsp, desired),
        None => BTreeMap::new(),
    };
    for condition in decision.conditions {
        add_condition(&mut rsp, condition);
    }
    for event in decision.events {
        add_event(&mut rsp, event);
    }
    Answer {
        message: rsp,
        composed,
    }
}

/// Adds the desired composite, and returns the composed resources.
fn add_desired(rsp: &mut RunFunctionResponse, desired: Desired) -> BTreeMap<String, Composed> {
    let composite = sdk::desired_composite(rsp);
    let fields = &mut composite.resource.get_or_insert_default().fields;
    // Other steps may own other fields of the status.
    let mut status = match fields.remove("status").map(|status| pb_to_json(&status)) {
        Some(Value::Object(status)) => status,
        _ => Map::new(),
    };
    status.extend(desired.status);
    if let Some(Value::String(message)) = status.get_mut("message") {
        *message = bounded(std::mem::take(message));
    }
    fields.insert("status".to_owned(), json_to_pb(&Value::Object(status)));
    for (key, value) in desired.connection {
        add_connection_detail(composite, key, value);
    }
    if let Some(ready) = desired.ready {
        set_ready(composite, readiness(ready));
    }
    desired.resources
}

fn add_requirement(rsp: &mut RunFunctionResponse, requirement: Requirement) {
    let (selected, namespace) = match requirement.selector {
        Selector::Named(name) => (Some(ResourceMatch::Name(name)), None),
        Selector::NamedIn { namespace, name } => (Some(ResourceMatch::Name(name)), Some(namespace)),
        Selector::Every { namespace } => (None, namespace),
        Selector::Claimed { namespace } => {
            let label = (CLAIM_NAMESPACE.to_owned(), namespace);
            (Some(ResourceMatch::Labels([label].into())), None)
        }
        Selector::Labelled {
            namespace,
            key,
            value,
        } => {
            let labels = [(key.to_owned(), value)].into_iter().collect();
            (Some(ResourceMatch::Labels(labels)), Some(namespace))
        }
    };
    sdk::require_resources(
        rsp,
        requirement.name,
        requirement.api_version,
        requirement.kind,
        selected,
        namespace,
    );
}

fn add_condition(rsp: &mut RunFunctionResponse, given: Condition) {
    let condition = match given.status {
        Status::True => sdk::condition_true(rsp, given.type_, given.reason),
        Status::False => sdk::condition_false(rsp, given.type_, given.reason),
        Status::Unknown => sdk::condition_unknown(rsp, given.type_, given.reason),
    };
    condition.message = (!given.message.is_empty()).then(|| bounded(given.message));
    condition.target = Some(Target::CompositeAndClaim as i32);
}

fn add_event(rsp: &mut RunFunctionResponse, event: Event) {
    let message = bounded(event.message);
    let result = match event.severity {
        Severity::Normal => sdk::normal(rsp, message),
        Severity::Warning => sdk::warning(rsp, message),
        Severity::Fatal => sdk::fatal(rsp, message),
    };
    result.reason = Some(event.reason.to_owned());
    result.target = Some(Target::CompositeAndClaim as i32);
}

/// The readiness of a desired resource.
pub fn readiness(ready: bool) -> Ready {
    if ready { Ready::True } else { Ready::False }
}
