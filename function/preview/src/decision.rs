//! One decision about a workspace, as Crossplane would ask for it.

use std::collections::BTreeMap;

use function_runtime::kind::Kinds;
use function_runtime::request::Request;
use function_runtime::response::Response;
use jiff::Timestamp;
use serde_json::Value;

use crate::error::Error;
use crate::snapshot::Snapshot;

/// How often Crossplane calls a function whose requirements change ("Crossplane will call the
/// function up to five times").
const CALLS: usize = 5;

/// A decision, and the request that it answers.
pub struct Decision {
    /// The request with everything that the function asked for.
    pub request: Request,
    /// The decision.
    pub response: Response,
}

/// Calls the function until it asks for nothing else.
pub fn decide(
    snapshot: &mut Snapshot<'_>,
    kinds: Kinds,
    now: Timestamp,
    composite: &Value,
    observed: &BTreeMap<String, Value>,
    policy: Option<&Value>,
) -> Result<Decision, Error> {
    let mut request = Request {
        policy: policy.cloned(),
        composite: Some(composite.clone()),
        observed: observed.clone(),
        now,
        ..Request::default()
    };
    let mut response = kinds.render(&request);
    for _ in 1..CALLS {
        let mut required = BTreeMap::new();
        for requirement in &response.requirements {
            let found = snapshot.select(requirement)?;
            required.insert(requirement.name.clone(), found);
        }
        if required == request.required {
            break;
        }
        request.required = required;
        response = kinds.render(&request);
    }
    Ok(Decision { request, response })
}
