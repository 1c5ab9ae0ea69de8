//! How large an answer may be: Crossplane writes it to etcd, and gRPC carries it.

use function_sdk_rust::proto::v1::{RunFunctionRequest, RunFunctionResponse};

use crate::case;
use crate::compare::{self, json};
use crate::oracle::{Outcome, broken};

/// The bytes by which an answer may be larger than observed state, desired state and context of its
/// request together.
const ADDED_LIMIT: usize = 128 * 1024;

/// The answer is not much larger than what the request brings.
pub fn small(request: &RunFunctionRequest, response: &RunFunctionResponse) -> Outcome {
    let asked = [request.observed.as_ref(), request.desired.as_ref()];
    let context = request.context.as_ref().map_or(0, compare::weight);
    let before = asked.map(compare::weight_of).iter().sum::<usize>() + context;
    let results = response.results.iter().map(|r| r.message.len());
    let conditions = response.conditions.iter().map(|c| c.message().len());
    let said: usize = results.chain(conditions).sum();
    let after = compare::weight_of(response.desired.as_ref()) + context + said;
    if after > before + ADDED_LIMIT && after > before + ADDED_LIMIT + passed_on_twice(request) {
        return broken("size", format!("{before} bytes are answered by {after}"));
    }
    Ok(())
}

/// The size of what is observed once and desired twice: the home's tags, which are its instance's
/// `volumeTags` as well, and the status in a workspace's record, which is the composite's as well.
fn passed_on_twice(request: &RunFunctionRequest) -> usize {
    let observed = request.observed.as_ref();
    let size = |name: &str, pointer: &str| {
        let resource = observed.and_then(|observed| observed.resources.get(name));
        let resource = resource.map(json).unwrap_or_default();
        let part = resource.pointer(pointer);
        part.map_or(0, |part| part.to_string().len())
    };
    size("home", "/spec/forProvider/tags") + size(case::RECORD, "/spec/status")
}
