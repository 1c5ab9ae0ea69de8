//! The calls for one decision, as Crossplane makes them.

use std::collections::BTreeMap;

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
    pub request: Request,
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
    pub fn begin(kinds: Kinds, request: Request) -> Self {
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
