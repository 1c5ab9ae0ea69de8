//! The input of a decision.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::json::Json;

/// The parts of a `RunFunctionRequest` that a decision may depend on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request<'a> {
    /// The input of the pipeline step.
    pub policy: Option<Value>,
    /// The observed composite.
    pub composite: Option<Json<'a>>,
    /// The observed resources that this function composed, by composition resource name.
    pub observed: BTreeMap<String, Json<'a>>,
    /// The resources that Crossplane fetched for this function, by the name of the requirement.
    pub required: BTreeMap<String, Vec<Json<'a>>>,
    /// Whether an earlier step of the pipeline has desired resources or has set the readiness of
    /// the composite.
    pub others_decide_readiness: bool,
    /// When the call arrived. It is used for deadlines only.
    pub now: Timestamp,
}

/// The three states of a required resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Required<'a> {
    /// Crossplane has not fetched the resource yet.
    Unresolved,
    /// The resource does not exist.
    Absent,
    /// The resource exists.
    Present(&'a Json<'a>),
}

impl Request<'_> {
    /// The same request with texts of its own.
    pub fn into_owned(self) -> Request<'static> {
        let observed = self.observed.into_iter();
        let required = self.required.into_iter();
        Request {
            policy: self.policy,
            composite: self.composite.map(Json::into_owned),
            observed: observed
                .map(|(name, object)| (name, object.into_owned()))
                .collect(),
            required: required
                .map(|(name, found)| (name, found.into_iter().map(Json::into_owned).collect()))
                .collect(),
            others_decide_readiness: self.others_decide_readiness,
            now: self.now,
        }
    }

    /// A required resource that is selected by name.
    pub fn required(&self, requirement: &str) -> Required<'_> {
        match self.required.get(requirement).map(Vec::as_slice) {
            None => Required::Unresolved,
            Some([]) => Required::Absent,
            Some([found, ..]) => Required::Present(found),
        }
    }

    /// The readiness to set for the composite. An explicit value overrides the readiness of desired
    /// resources and of earlier steps. If there are either, a ready composite therefore leaves the
    /// decision to Crossplane.
    pub fn readiness(&self, ready: bool) -> Option<bool> {
        match (ready, self.others_decide_readiness) {
            (true, true) => None,
            (ready, _) => Some(ready),
        }
    }
}
