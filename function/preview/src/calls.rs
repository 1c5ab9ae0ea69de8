//! The calls for one decision, as Crossplane makes them.

use std::collections::BTreeMap;

use function_runtime::json::Json;
use function_runtime::kind::Kinds;
use function_runtime::request::Request;
use function_runtime::requirement::Requirement;
use function_runtime::response::Response;
use serde_json::Value;

/// How often Crossplane calls a function whose requirements change ("Crossplane will call the
/// function up to five times").
const CALLS: usize = 5;

/// A decision, and the request that it answers.
#[derive(Debug)]
pub struct Decision {
    /// The request with everything that the function asked for.
    pub request: Request<'static>,
    /// The decision.
    pub response: Response,
}

/// The calls for one decision. The caller fetches what the function requires, between the calls.
pub struct Calls {
    kinds: Kinds,
    decision: Decision,
    left: usize,
}

impl Calls {
    /// The first call.
    pub fn begin(kinds: Kinds, request: Request<'static>) -> Self {
        let response = kinds.render(&request);
        Self {
            kinds,
            decision: Decision { request, response },
            left: CALLS - 1,
        }
    }

    /// What the function required in the last call.
    pub fn requirements(&self) -> &[Requirement] {
        &self.decision.response.requirements
    }

    /// Calls again with what was required, by the names of the requirements. Returns whether the caller
    /// must fetch once more.
    pub fn supply(&mut self, required: BTreeMap<String, Vec<Value>>) -> bool {
        let Decision { request, response } = &mut self.decision;
        let required = required.into_iter().map(|(name, found)| {
            let found: Vec<Json<'static>> = found.into_iter().map(Json::from).collect();
            (name, found)
        });
        let required = required.collect();
        if self.left == 0 || required == request.required {
            return false;
        }
        self.left -= 1;
        request.required = required;
        *response = self.kinds.render(request);
        self.left > 0
    }

    /// The decision of the last call.
    pub fn end(self) -> Decision {
        self.decision
    }
}

/// Observed resources, as a request has them.
pub fn observed(resources: &BTreeMap<String, Value>) -> BTreeMap<String, Json<'static>> {
    let resources = resources.iter();
    let observed = resources.map(|(name, object)| (name.clone(), object.clone().into()));
    observed.collect()
}
