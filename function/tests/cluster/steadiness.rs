//! Rules about several answers to the same request, or to nearly the same request.

use function_runtime::response::Response;
use serde_json::{Value, json};

use crate::case::RECORD;
use crate::oracle::{Answer, Outcome};
use crate::request::answer;
use crate::sight::{SET, Sight};

/// The requirements whose answers are lists.
pub const LISTS: [&str; 3] = ["pods", "homes", "workloads"];

/// Checks all rules of this module.
pub fn check(request: &Value) -> Outcome {
    let response = answer(request);
    same_bytes(request, &response)?;
    same_requirements(request, &response)?;
    orderless(request, &response)?;
    timeless(request, &response)?;
    settles(request, response)?;
    same_template(request)
}

fn same_bytes(request: &Value, response: &Response) -> Outcome {
    let again = answer(request);
    if format!("{again:?}") == format!("{response:?}") {
        Ok(())
    } else {
        Err("the same request has two answers".to_owned())
    }
}

/// Crossplane repeats the call while the requirements change, and gives up after some calls.
fn same_requirements(request: &Value, response: &Response) -> Outcome {
    let mut bare = request.clone();
    bare["requiredResources"] = json!({});
    let bare = answer(&bare);
    if bare.requirements == response.requirements {
        Ok(())
    } else {
        Err("what is required depends on what was fetched".to_owned())
    }
}

/// Crossplane reads lists from a cache, and the cache keeps no order.
pub fn orderless(request: &Value, response: &Response) -> Outcome {
    let mut other = request.clone();
    for requirement in LISTS {
        let items = other.pointer_mut(&format!("/requiredResources/{requirement}/items"));
        if let Some(items) = items.and_then(Value::as_array_mut) {
            items.reverse();
        }
    }
    if answer(&other) == *response {
        Ok(())
    } else {
        Err("the answer depends on the order of a list".to_owned())
    }
}

/// The answer must not depend on times, on resource versions or on restart counts.
fn timeless(request: &Value, response: &Response) -> Outcome {
    let text = request.to_string();
    let later = text
        .replace("T10:00:05Z", "T10:00:06Z")
        .replace("\"resourceVersion\":\"1234\"", "\"resourceVersion\":\"9\"")
        .replace("\"restartCount\":4", "\"restartCount\":5");
    let later: Value = serde_json::from_str(&later).map_err(|e| e.to_string())?;
    if answer(&later) == *response {
        Ok(())
    } else {
        Err("the answer depends on a time or on a count".to_owned())
    }
}

/// The answer must become stable when the function observes its own status.
fn settles(request: &Value, mut last: Response) -> Outcome {
    let mut request = request.clone();
    for _ in 0..4 {
        let this = Answer {
            sight: Sight(&request),
            response: &last,
        };
        if this.is_fatal() {
            return Ok(());
        }
        let status = this.response.desired.as_ref().map(|d| d.status.clone());
        let mut status = json!(status.unwrap_or_default());
        // Crossplane also writes the conditions to the status.
        let conditions = this.response.conditions.iter();
        status["conditions"] = conditions
            .map(|c| {
                let holds = c.status.as_str();
                json!({"type": c.type_, "status": holds, "reason": c.reason, "message": c.message})
            })
            .collect();
        // The record of a namespaced composite is what the next call remembers.
        let desired = this.response.desired.as_ref();
        let record = desired.and_then(|desired| desired.resources.get(RECORD));
        let record = record.map(|record| record.object.clone());
        request["observed"]["composite"]["resource"]["status"] = status;
        if let Some(record) = record {
            request["observed"]["resources"][RECORD] = json!({"resource": record});
        }
        let next = answer(&request);
        if next.events.is_empty() && next == last {
            return Ok(());
        }
        last = next;
    }
    Err(format!("does not settle: {:?}", last.events))
}

/// Edits of claim, policy and flavor change nothing in the pods of a running workspace.
fn same_template(request: &Value) -> Outcome {
    let sight = Sight(request);
    if !sight.is_active() || sight.record().is_none() {
        return Ok(());
    }
    let mut other = request.clone();
    other["input"]["cluster"]["domain"] = json!("another.example");
    let spec = other.pointer_mut("/requiredResources/flavor/items/0/resource/spec");
    if let Some(spec) = spec {
        spec["image"] = json!("registry.acme.example/another");
        spec["cpu"] = json!("1");
        spec["nccl"] = json!({"NCCL_ALGO": "Ring"});
    }
    let parameters = &mut other["observed"]["composite"]["resource"]["spec"]["parameters"];
    parameters["overrides"] = json!({"memory": "20Gi"});
    parameters["distributed"] = json!({"nodes": 3});
    let templates = [request, &other].map(|request| {
        let response = answer(request);
        let answer = Answer {
            sight: Sight(request),
            response: &response,
        };
        let is_held = response.conditions.iter().any(|c| {
            c.type_ == "ConfigResolved" && !c.holds() && !c.message.starts_with("once stopped")
        });
        let is_resolved = !answer.is_fatal() && !is_held;
        let set = answer.desired(SET).filter(|_| is_resolved)?;
        Some(set["spec"]["template"].clone())
    });
    match templates {
        [Some(one), Some(other)] if one != other => Err(format!(
            "the template of pods that run changes:\n{one}\n{other}"
        )),
        _ => Ok(()),
    }
}
