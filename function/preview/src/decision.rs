//! One decision about a workspace that exists.

use std::collections::BTreeMap;

use function_runtime::kind::Kinds;
use function_runtime::request::Request;
use jiff::Timestamp;
use serde_json::Value;

use crate::calls::{self, Calls, Decision};
use crate::error::Error;
use crate::snapshot::Snapshot;

/// Calls the function until it asks for nothing else.
pub fn decide(
    snapshot: &mut Snapshot<'_>,
    kinds: Kinds,
    now: Timestamp,
    composite: &Value,
    observed: &BTreeMap<String, Value>,
    policy: Option<&Value>,
) -> Result<Decision, Error> {
    let request = Request {
        policy: policy.cloned(),
        composite: Some(composite.clone().into()),
        observed: calls::observed(observed),
        now,
        ..Request::default()
    };
    let mut calls = Calls::begin(kinds, request);
    loop {
        let mut required = BTreeMap::new();
        for requirement in calls.requirements() {
            required.insert(requirement.name.clone(), snapshot.select(requirement)?);
        }
        if !calls.supply(required) {
            return Ok(calls.end());
        }
    }
}
