//! Reads requests from JSON, and changes them.

use crate::case::own_names::is_own;
use function_gpu_workspace::kinds::render;
use function_runtime::json::Json;
use function_runtime::request::Request;
use function_runtime::response::Response;
use serde_json::{Map, Value};

use crate::case;
use crate::sight::{SET, Sight};

/// The function's answer to a request.
pub fn answer(request: &Value) -> Response {
    render(&read(request))
}

fn read(request: &Value) -> Request<'static> {
    let sight = Sight(request);
    let answers = request.get("requiredResources").and_then(Value::as_object);
    let found = |name: &String| {
        let found = sight.found(name).unwrap_or_default();
        (
            name.clone(),
            found.into_iter().cloned().map(Json::from).collect(),
        )
    };
    let own = sight.keys().filter(|key| is_own(key));
    Request {
        policy: request
            .get("input")
            .filter(|input| !input.is_null())
            .cloned(),
        composite: (request.pointer("/observed/composite/resource").cloned()).map(Json::from),
        observed: own
            .filter_map(|key| Some((key.clone(), sight.observed(key)?.clone().into())))
            .collect(),
        required: answers.into_iter().flat_map(Map::keys).map(found).collect(),
        others_decide_readiness: false,
        now: case::now(),
    }
}

/// A case with one further event. The event changes the StatefulSet and the Secret of host keys
/// only where the case has them.
pub fn changed(case: &Value, event: &Value) -> Value {
    let mut request = case.clone();
    let there: Vec<String> = Sight(case).keys().cloned().collect();
    case::merge(&mut request, event);
    let resources = request.pointer_mut("/observed/resources");
    if let Some(resources) = resources.and_then(Value::as_object_mut) {
        resources.retain(|key, _| key != SET && key != "cluster-host-keys" || there.contains(key));
    }
    request
}
