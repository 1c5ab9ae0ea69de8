//! The parts from which requests are made: the golden cases of workspaces on EC2.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::case::{self, RECORD};

/// The cases, and their parts for recombination.
pub struct Corpus {
    /// Requests for which the function renders resources, or holds them.
    pub requests: Vec<Value>,
    /// Those of `requests` with a home volume of provider-aws. Few have one, and a home volume cannot be
    /// made again.
    pub with_home: Vec<Value>,
    /// Requests that the function refuses.
    pub refused: Vec<Value>,
    /// The different observed resources by composition resource name.
    pub observed: BTreeMap<String, Vec<Value>>,
    /// Statuses of XRs.
    pub statuses: Vec<Value>,
    /// Parameters of claims.
    pub parameters: Vec<Value>,
    /// Policies.
    pub policies: Vec<Value>,
    /// Answers to requirements, by the requirement's name.
    pub answers: Vec<(String, Value)>,
}

impl Corpus {
    /// Reads all cases.
    pub fn load() -> Self {
        let (refused, accepted): (Vec<String>, Vec<String>) = case::names()
            .into_iter()
            .filter(|name| case::is_on_ec2(name) && name != "refused-ec2-placement")
            .partition(|name| name.starts_with("refused-"));
        let read = |names: &[String]| -> Vec<Value> {
            let requests = names.iter().map(|name| case::request_json(name));
            // Each case is used twice: with a claim's composite and, where there is a claim, with a
            // namespaced composite.
            let both = requests.flat_map(|request| {
                let namespaced = case::namespaced(&request);
                std::iter::once(request).chain(namespaced)
            });
            both.map(lean).collect()
        };
        let (refused, requests) = (read(&refused), read(&accepted));
        let every = || requests.iter().chain(&refused);
        let mut observed: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (key, resource) in every().flat_map(observed_of) {
            let same = observed.entry(key.clone()).or_default();
            if !same.contains(resource) {
                same.push(resource.clone());
            }
        }
        let all = |pointer: &str| -> Vec<Value> {
            let mut found: Vec<Value> = Vec::new();
            for value in every().filter_map(|r| r.pointer(pointer)) {
                if !found.contains(value) {
                    found.push(value.clone());
                }
            }
            found
        };
        let mut answers: Vec<(String, Value)> = Vec::new();
        for (name, answer) in every().flat_map(|r| entries(r, "requiredResources")) {
            let answer = (name.clone(), answer.clone());
            if !answers.contains(&answer) {
                answers.push(answer);
            }
        }
        let has_home = |request: &&Value| observed_of(request).any(|(key, _)| key == "home");
        Self {
            with_home: requests.iter().filter(has_home).cloned().collect(),
            observed,
            statuses: all("/observed/composite/resource/status"),
            parameters: all("/observed/composite/resource/spec/parameters"),
            policies: all("/input"),
            answers,
            refused,
            requests,
        }
    }
}

/// A request without most of the fields that the function does not read. These fields would take a
/// third of the test's time.
fn lean(mut request: Value) -> Value {
    match &mut request {
        Value::Object(fields) => {
            if let Some(managed) = fields.get_mut("managedFields") {
                *managed = json!([{"manager": "crossplane"}]);
            }
            for unread in [
                "ownerReferences",
                "finalizers",
                "generateName",
                "generation",
            ] {
                fields.remove(unread);
            }
            for value in fields.values_mut() {
                *value = lean(value.take());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = lean(item.take())),
        _ => {}
    }
    request
}

/// The observed resources of a request in JSON.
pub fn observed_of(request: &Value) -> impl Iterator<Item = (&String, &Value)> {
    request
        .pointer("/observed/resources")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

fn entries<'a>(request: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    request
        .get(field)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

/// The object at a path of fields. Creates the missing objects on the way.
pub fn object<'a>(root: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    let mut at = root;
    for field in path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = at
            .as_object_mut()
            .unwrap()
            .entry(*field)
            .or_insert(Value::Null);
    }
    if !at.is_object() {
        *at = Value::Object(Map::new());
    }
    at.as_object_mut().unwrap()
}

/// What the last call left for this one: the record of a namespaced composite, or the status.
pub fn memory(request: &mut Value) -> &mut Map<String, Value> {
    let record = ["observed", "resources", RECORD, "resource"];
    let has_record = request.pointer(&format!("/{}", record.join("/"))).is_some();
    if has_record {
        let [observed, resources, key, resource] = record;
        object(
            request,
            &[observed, resources, key, resource, "spec", "status"],
        )
    } else {
        object(request, &["observed", "composite", "resource", "status"])
    }
}
