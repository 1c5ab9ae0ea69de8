//! Rules about several calls.

use function_gpu_workspace::kinds::KINDS;
use function_sdk_rust::proto::v1::{RunFunctionRequest, RunFunctionResponse, Severity};
use function_sdk_rust::resource::json_to_struct;
use function_server::decode::call::Call;
use function_server::encode::protobuf::encode;
use prost::Message;
use serde_json::Value;

use crate::case::{self, RECORD, answer};
use crate::compare::{is_same, json, state};
use crate::fleeting;
use crate::oracle::{MESSAGE_LIMIT, Outcome, broken, received};

/// Encodes and decodes both messages, which changes the order of their maps. The answer must stay
/// the same.
pub fn over_the_wire(request: &RunFunctionRequest, response: &RunFunctionResponse) -> Outcome {
    let bytes = request.encode_to_vec();
    let again = RunFunctionRequest::decode(bytes.as_slice()).unwrap();
    let encoded = again.encode_to_vec();
    let Ok(call) = Call::read(&encoded, KINDS) else {
        return broken("service", "cannot read what the SDK reads");
    };
    let answered = encode(&case::answer_of(&again, call));
    let answered = answered.as_ref();
    if answered.len() > MESSAGE_LIMIT {
        return broken("size", format!("{} bytes", answered.len()));
    }
    let received = RunFunctionResponse::decode(answered);
    match received {
        Ok(received) if is_same(&received, response) => Ok(()),
        Ok(_) => broken("the same bytes", "the same request has two answers"),
        Err(error) => broken("service", error.to_string()),
    }
}

/// Crossplane repeats the call while the requirements change, four times at most. So the
/// requirements must not depend on fetched resources other than the platform's limits, and the
/// Namespace whose label may name the owner. The Namespace adds the owner's `DevUser` only.
pub fn requirements(request: &RunFunctionRequest, response: &RunFunctionResponse) -> Outcome {
    let with = |kept: &[&str]| {
        let mut bare = request.clone();
        bare.required_resources
            .retain(|name, _| kept.contains(&name.as_str()));
        answer(&bare).requirements
    };
    let mut without_user = response.requirements.clone();
    if let Some(required) = &mut without_user {
        required.resources.remove("dev-user");
    }
    let before = with(&["limits"]);
    let is_steady = before == response.requirements || before == without_user;
    if !is_steady || with(&["limits", "namespace"]) != response.requirements {
        return broken(
            "requirements",
            "what is required depends on what was fetched",
        );
    }
    let Some(requirements) = &response.requirements else {
        return Ok(());
    };
    let known = |name: &&String| {
        matches!(
            name.as_str(),
            "catalogue"
                | "flavor"
                | "namespace"
                | "attachments"
                | "dev-user"
                | "limits"
                | "admission"
                | RECORD
        ) || name.starts_with("catalogue-")
    };
    let names: Vec<&String> = requirements.resources.keys().collect();
    if names.is_empty() || names.len() > 13 || !names.iter().all(known) {
        return broken("requirements", format!("{names:?} are required"));
    }
    Ok(())
}

/// The answer must become stable when the function observes its own status. A status that changes
/// back and forth would be an endless loop of reconciles and events.
pub fn settles(request: &RunFunctionRequest, first: &RunFunctionResponse) -> Outcome {
    let mut request = request.clone();
    let mut last = first.clone();
    for _ in 0..4 {
        let status_of = |response: &RunFunctionResponse| {
            let composite = response.desired.as_ref()?.composite.as_ref()?;
            Some(json(composite).get("status")?.clone())
        };
        let Some(state) = request.observed.as_mut() else {
            return Ok(());
        };
        // The record of a namespaced composite is what the next call remembers.
        let desired = last.desired.as_ref().map(|desired| &desired.resources);
        if let Some(record) = desired.and_then(|resources| resources.get(RECORD)) {
            state.resources.insert(RECORD.to_owned(), record.clone());
        }
        let Some(observed) = state.composite.as_mut() else {
            return Ok(());
        };
        let is_fatal = last.results.iter().any(|r| r.severity() == Severity::Fatal);
        let (Some(mut status), false) = (status_of(&last), is_fatal) else {
            return Ok(());
        };
        // Crossplane also writes the conditions to the status, and the function reads them.
        status["conditions"] = case::conditions(&last);
        let Value::Object(mut xr) = json(observed) else {
            return Ok(());
        };
        xr.insert("status".to_owned(), status);
        observed.resource = Some(json_to_struct(&xr));
        let next = answer(&request);
        if next.results.is_empty() && is_same(&next, &last) {
            return Ok(());
        }
        last = next;
    }
    broken("settles", format!("after five calls: {:?}", last.results))
}

/// Request ids, times and versions change all the time. The answer must not depend on them.
pub fn timeless(json: &Value, response: &RunFunctionResponse) -> Outcome {
    if fleeting::is_out_of_place(json) {
        return Ok(());
    }
    let later = json
        .to_string()
        .replace("-5c53-4b6a-9d1b-", "-77aa-4c4c-8888-")
        .replace("T10:00:05Z", "T23:59:59Z")
        .replace(
            "\"resourceVersion\":\"1234\"",
            "\"resourceVersion\":\"98765\"",
        );
    let later = serde_json::from_str(&later).unwrap_or(Value::Null);
    let Some(request) = received(&later) else {
        return Ok(());
    };
    let echoed = |response: &RunFunctionResponse| {
        let text = state(response.desired.as_ref()).to_string();
        text.contains("T23:59:59Z") || text.contains("-77aa-4c4c-") || text.contains("98765")
    };
    let answered = answer(&request);
    if !echoed(&answered) && !is_same(&answered, response) {
        return broken(
            "timeless",
            "the answer depends on a time or on a request's id",
        );
    }
    Ok(())
}
