//! What the function decides from.

use function_sdk_rust::proto::v1::{Ready, Resource, RunFunctionRequest};
use function_sdk_rust::request::{get_required_resources, observed_composed, observed_composite};
use function_sdk_rust::resource::struct_to_json;
use serde_json::Value;

use crate::catalogue;
use crate::pool;

/// The parts of a `RunFunctionRequest` that a decision may depend on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The pipeline step's input.
    pub policy: Option<Value>,
    /// The observed XR.
    pub composite: Option<Value>,
    /// The observed `SpotPool`.
    pub pool: Option<Value>,
    /// The catalogue.
    pub catalogue: Required,
    /// Whether earlier steps of the pipeline desire resources of their own, or
    /// have said themselves whether the XR is ready.
    pub others_decide_readiness: bool,
}

/// The three states of a resource that a function requires.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Required {
    /// Crossplane has not looked for it yet.
    #[default]
    Unresolved,
    /// It does not exist.
    Absent,
    /// It exists.
    Present(Value),
}

impl From<&RunFunctionRequest> for Request {
    fn from(request: &RunFunctionRequest) -> Self {
        let json = |resource: Option<&Resource>| resource?.resource.as_ref().map(struct_to_json);
        let desired = request.desired.as_ref();
        Self {
            policy: request.input.as_ref().map(struct_to_json),
            composite: json(observed_composite(request)),
            pool: json(observed_composed(request, pool::KEY)),
            catalogue: match get_required_resources(request, catalogue::REQUIREMENT) {
                None => Required::Unresolved,
                Some(found) => found
                    .into_iter()
                    .next()
                    .map_or(Required::Absent, Required::Present),
            },
            others_decide_readiness: desired.is_some_and(|desired| {
                let said = desired.composite.as_ref().map(Resource::ready);
                desired.resources.keys().any(|key| key != pool::KEY)
                    || said.is_some_and(|ready| ready != Ready::Unspecified)
            }),
        }
    }
}
