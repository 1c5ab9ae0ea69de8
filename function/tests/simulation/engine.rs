//! Runs the function, either in this process or through Crossplane itself.

use std::collections::BTreeMap;

use function_gpu_workspace::kinds::render;
use function_runtime::json::Json;
use function_runtime::request::Request;
use function_runtime::requirement::{Requirement, Selector};
use function_runtime::response::{Response, Severity};
use serde_json::{Value, json};

use super::manifest::{stated, text};

/// The inputs of a reconcile of an XR.
pub struct Call<'a> {
    /// The Composition's input, or null where there is none.
    pub policy: &'a Value,
    /// The XR.
    pub xr: Value,
    /// The composed resources that exist, by key.
    pub observed: BTreeMap<String, Value>,
    /// All objects that the function may require.
    pub cluster: Vec<Value>,
}

/// The result of the function's calls in a reconcile.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The message of the fatal result, where there is one.
    pub fatal: Option<String>,
    /// The resources to apply, by composition resource name.
    pub desired: BTreeMap<String, Value>,
    /// The XR's status.
    pub status: Value,
    /// Whether the XR is ready.
    pub ready: bool,
    /// The XR's own conditions.
    pub conditions: Vec<Value>,
    /// Events.
    pub events: Vec<String>,
    /// The time until the next reconcile, in seconds.
    pub ttl: u64,
    /// The required objects that were found.
    pub required: Vec<Value>,
}

/// Runs the function for one reconcile.
pub trait Engine {
    /// Runs the function for one reconcile.
    fn render(&mut self, call: &Call<'_>) -> Result<Rendered, String>;
}

/// Calls the function directly, without gRPC and without protobuf.
#[derive(Default)]
pub struct InProcess {
    /// The requirements of the last reconcile, which Crossplane remembers for each step.
    remembered: Vec<Requirement>,
}

/// After this many rounds, Crossplane gives up if the requirements still change.
const ROUNDS: usize = 5;

impl Engine for InProcess {
    fn render(&mut self, call: &Call<'_>) -> Result<Rendered, String> {
        let mut asked: Option<Vec<Requirement>> = None;
        let mut request = Request {
            policy: Some(call.policy.clone()).filter(|policy| !policy.is_null()),
            composite: Some(call.xr.clone().into()),
            observed: (call.observed.clone().into_iter())
                .map(|(key, object)| (key, object.into()))
                .collect(),
            required: fetch(&self.remembered, &call.cluster),
            ..Request::default()
        };
        for round in 0..=ROUNDS {
            let response = render(&request);
            let is_fatal = response
                .events
                .iter()
                .any(|e| e.severity == Severity::Fatal);
            let required = response.requirements.clone();
            if is_fatal || asked.as_ref() == Some(&required) {
                return Ok(self.done(response, &request));
            }
            let found = fetch(&required, &call.cluster);
            if round == 0 && found == request.required {
                return Ok(self.done(response, &request));
            }
            request.required = found;
            asked = Some(required);
        }
        Err("the requirements did not become stable".to_owned())
    }
}

impl InProcess {
    fn done(&mut self, response: Response, request: &Request<'_>) -> Rendered {
        self.remembered.clone_from(&response.requirements);
        let required = request
            .required
            .values()
            .flatten()
            .map(Value::from)
            .collect();
        rendered(response, required)
    }
}

fn rendered(response: Response, required: Vec<Value>) -> Rendered {
    let fatal = response
        .events
        .iter()
        .find(|e| e.severity == Severity::Fatal);
    let conditions = response.conditions.iter();
    let desired = response.desired;
    let all_ready = desired
        .as_ref()
        .is_some_and(|d| d.resources.values().all(|r| r.ready));
    Rendered {
        fatal: fatal.map(|event| event.message.clone()),
        ready: desired.as_ref().and_then(|d| d.ready).unwrap_or(all_ready),
        status: desired.as_ref().map_or(Value::Null, |d| json!(d.status)),
        desired: desired
            .into_iter()
            .flat_map(|d| d.resources)
            .map(|(key, composed)| (key, composed.object))
            .collect(),
        conditions: conditions
            .map(|c| stated(c.type_, c.status.as_str(), &c.reason, &c.message))
            .collect(),
        events: response
            .events
            .iter()
            .map(|event| format!("{}: {}", event.reason, event.message))
            .collect(),
        ttl: response.ttl.as_secs(),
        required,
    }
}

/// The objects that Crossplane finds for requirements.
fn fetch(required: &[Requirement], cluster: &[Value]) -> BTreeMap<String, Vec<Json<'static>>> {
    let matches = |requirement: &Requirement, object: &&Value| {
        let is = |pointer, wanted: &str| text(object, pointer) == Some(wanted);
        is("/apiVersion", requirement.api_version)
            && is("/kind", requirement.kind)
            && match &requirement.selector {
                Selector::Named(name) => is("/metadata/name", name),
                Selector::NamedIn { namespace, name } => {
                    is("/metadata/namespace", namespace) && is("/metadata/name", name)
                }
                Selector::Every { namespace } => namespace
                    .as_ref()
                    .is_none_or(|namespace| is("/metadata/namespace", namespace)),
                Selector::Claimed { namespace } => {
                    let label = "/metadata/labels/crossplane.io~1claim-namespace";
                    is(label, namespace)
                }
                Selector::Labelled {
                    namespace,
                    key,
                    value,
                } => {
                    let label = format!("/metadata/labels/{}", key.replace('/', "~1"));
                    is("/metadata/namespace", namespace) && is(&label, value)
                }
            }
    };
    let find = |requirement: &Requirement| {
        let found = cluster.iter().filter(|object| matches(requirement, object));
        (
            requirement.name.clone(),
            found.cloned().map(Json::from).collect(),
        )
    };
    required.iter().map(find).collect()
}
