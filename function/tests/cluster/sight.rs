//! Reads what a request shows of a workspace in the cluster. This module does not use the
//! function's code.

use api::duration::duration;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::case;

/// The composition resource name of the StatefulSet.
pub const SET: &str = "cluster-stateful-set";
const RECORD: &str = "platform.acme.io/made-from";

/// A request in JSON.
#[derive(Clone, Copy)]
pub struct Sight<'a>(pub &'a Value);

impl<'a> Sight<'a> {
    /// The observed resource with this composition resource name.
    pub fn observed(self, key: &str) -> Option<&'a Value> {
        let resource = self.0.pointer("/observed/resources")?.get(key)?;
        resource.get("resource")
    }

    /// The composition resource names of all observed resources.
    pub fn keys(self) -> impl Iterator<Item = &'a String> {
        let resources = self.0.pointer("/observed/resources");
        let resources = resources.and_then(Value::as_object);
        resources.into_iter().flat_map(serde_json::Map::keys)
    }

    /// The objects that Crossplane found for a requirement. `None` means that Crossplane has not
    /// looked yet.
    pub fn found(self, requirement: &str) -> Option<Vec<&'a Value>> {
        let answer = self.0.get("requiredResources")?.get(requirement)?;
        let items = answer.get("items").and_then(Value::as_array);
        let items = items.into_iter().flatten();
        Some(items.filter_map(|item| item.get("resource")).collect())
    }

    /// A parameter of the claim.
    pub fn parameter(self, pointer: &str) -> Option<&'a Value> {
        let parameters = "/observed/composite/resource/spec/parameters";
        self.0.pointer(&format!("{parameters}{pointer}"))
    }

    /// Whether the claim wants the workspace to run, and its lifetime is not over.
    pub fn is_to_run(self) -> bool {
        self.parameter("/lifecycle/state") != Some(&json!("Stopped")) && !self.may_be_over()
    }

    /// Whether the shortest lifetime that claim, policy and status name is over.
    fn may_be_over(self) -> bool {
        let text = |pointer: &str| self.0.pointer(pointer)?.as_str().and_then(duration);
        let record = "/observed/resources/workspace-record/resource/spec/status";
        let status = match self.0.pointer(record) {
            Some(_) => format!("{record}/lifecycle"),
            None => "/observed/composite/resource/status/lifecycle".to_owned(),
        };
        let limits = [
            "/observed/composite/resource/spec/parameters/lifecycle/maxLifetime".to_owned(),
            "/input/lifecycle/maxLifetime/default".to_owned(),
            "/input/lifecycle/maxLifetime/maximum".to_owned(),
            format!("{status}/limits/maxLifetime"),
        ];
        let shortest = limits.iter().filter_map(|pointer| text(pointer)).min();
        let started = self.0.pointer(&format!("{status}/startedAt"));
        let started: Option<Timestamp> = started
            .and_then(Value::as_str)
            .and_then(|started| started.parse().ok());
        let end = started
            .zip(shortest)
            .and_then(|(at, limit)| at.checked_add(limit).ok());
        end.is_some_and(|end| end <= case::now())
    }

    /// The record in the StatefulSet's annotation: the inputs from which its pods were made.
    pub fn record(self) -> Option<Value> {
        let annotations = self.observed(SET)?.pointer("/metadata/annotations")?;
        serde_json::from_str(annotations.get(RECORD)?.as_str()?).ok()
    }

    /// The number of pods that the StatefulSet shall have, and the number that it has.
    pub fn replicas(self) -> (i64, i64) {
        let number = |pointer| {
            let set = self.observed(SET)?;
            set.pointer(pointer)?.as_i64()
        };
        (
            number("/spec/replicas").unwrap_or_default(),
            number("/status/replicas").unwrap_or_default(),
        )
    }

    /// Whether the StatefulSet has pods or shall have pods. Where Crossplane has not looked for
    /// pods, there may be some.
    pub fn is_active(self) -> bool {
        let has_pods = self.found("pods").is_none_or(|pods| !pods.is_empty());
        self.observed(SET).is_some() && (self.replicas() != (0, 0) || has_pods)
    }

    /// Whether a user may work in a pod that is not being deleted.
    pub fn somebody_works(self) -> bool {
        self.found("pods").unwrap_or_default().iter().any(|pod| {
            let is_ending = pod.pointer("/metadata/deletionTimestamp").is_some();
            let containers = pod.pointer("/status/containerStatuses");
            let mut containers = containers.and_then(Value::as_array).into_iter().flatten();
            !is_ending
                && containers
                    .any(|c| c["name"] == "workspace" && c.pointer("/state/running").is_some())
        })
    }

    /// Whether the function may drop the StatefulSet and make another one.
    pub fn may_go(self) -> bool {
        let Some(set) = self.observed(SET) else {
            return true;
        };
        let has_homes = set.pointer("/spec/volumeClaimTemplates/0").is_some();
        let lacks_home = self.parameter("/home").is_some() && !has_homes;
        let is_ending = set.pointer("/metadata/deletionTimestamp").is_some();
        let record = self.record().unwrap_or_default();
        let status = "/observed/composite/resource/status/pods/queue";
        let is_kueues = record.pointer("/pods/queue").is_some()
            || self.0.pointer(status).is_some()
            || self.0.pointer("/input/cluster/queue").is_some();
        // The StatefulSet controller ends these pods anyway.
        let are_ending = self.replicas().0 == 0;
        let nobody_minds = !self.is_to_run() || are_ending || !self.somebody_works();
        (is_kueues && nobody_minds) || (!self.is_active() && (lacks_home || is_ending))
    }
}

/// The status of a condition.
pub fn status_of<'a>(object: &'a Value, type_: &str) -> Option<&'a str> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let condition = conditions.iter().find(|c| c["type"] == type_)?;
    condition["status"].as_str()
}
