//! What the function decides from.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

/// The parts of a `RunFunctionRequest` that a decision may depend on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The pipeline step's input.
    pub policy: Option<Value>,
    /// The observed XR.
    pub composite: Option<Value>,
    /// The observed resources that this function composed, by composition resource name.
    pub observed: BTreeMap<String, Value>,
    /// What Crossplane fetched for this function, by requirement.
    pub required: BTreeMap<String, Vec<Value>>,
    /// Whether earlier steps of the pipeline desire resources of their own, or
    /// have said themselves whether the XR is ready.
    pub others_decide_readiness: bool,
    /// When the call arrived: deadlines are held against it, and nothing else is.
    pub now: Timestamp,
}

/// The three states of a resource that a function requires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Required<'a> {
    /// Crossplane has not looked for it yet.
    Unresolved,
    /// It does not exist.
    Absent,
    /// It exists.
    Present(&'a Value),
}

impl Request {
    /// A required resource that was asked for by name.
    pub fn required(&self, requirement: &str) -> Required<'_> {
        match self.required.get(requirement).map(Vec::as_slice) {
            None => Required::Unresolved,
            Some([]) => Required::Absent,
            Some([found, ..]) => Required::Present(found),
        }
    }

    /// What to say of the XR's readiness. Said explicitly, it overrides that of the
    /// XR's resources and what earlier steps said of it. Where there is either, a
    /// ready XR leaves the verdict to Crossplane.
    pub fn readiness(&self, ready: bool) -> Option<bool> {
        match (ready, self.others_decide_readiness) {
            (true, true) => None,
            (ready, _) => Some(ready),
        }
    }
}
