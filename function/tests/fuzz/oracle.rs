//! What must hold of every answer.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use function_gpu_workspace::kinds::KINDS;
use function_sdk_rust::proto::v1::{
    Condition, Ready, Resource, RunFunctionRequest, RunFunctionResponse, Severity, Status,
};
use function_sdk_rust::resource::struct_to_json;
use function_server::decode::call::Call;
use prost::Message;
use serde::Deserialize;
use serde_json::Value;

use crate::case::{self, own_names::is_own};
use crate::compare::{self, json};
use crate::conditions::is_reason;
use crate::hostile;
use crate::intent::Applied;
use crate::view::View;
use crate::{conditions, connection, limits, readiness, size, steadiness, volume};

/// What gRPC refuses to carry.
pub const MESSAGE_LIMIT: usize = 4 * 1024 * 1024;
const STATUS_FIELDS: [&str; 16] = [
    "machine",
    "cost",
    "lifecycle",
    "activity",
    "hostKeys",
    "phase",
    "message",
    "ssh",
    "instanceId",
    "instanceType",
    "capacityType",
    "zone",
    "publicIp",
    "privateIp",
    "image",
    "home",
];

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It never reached the function.
    Unsendable,
    /// A fatal result.
    Refused,
    /// Everything stays as it is.
    Held,
    /// It was rendered.
    Resolved,
    /// It was rendered, and something observed goes.
    Dropping,
}

/// A rule that is broken.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule's name: minimising keeps it.
    pub rule: &'static str,
    /// What was seen.
    pub what: String,
}

pub type Outcome = Result<(), Violation>;

pub fn broken(rule: &'static str, what: impl Into<String>) -> Outcome {
    Err(Violation {
        rule,
        what: what.into(),
    })
}

/// Checks a request in JSON. `is_thorough` asks for what costs several calls, or
/// a way over the wire.
pub fn check(json: &Value, is_thorough: bool) -> Result<Kind, Violation> {
    let parsed = if is_thorough {
        received(json)
    } else {
        parsed(json)
    };
    let Some(request) = parsed else {
        return Ok(Kind::Unsendable);
    };
    let encoded = request.encode_to_vec();
    let call = match Call::read(&encoded, KINDS) {
        Ok(call) => call,
        Err(_) if is_thorough => {
            return broken("reading", "the SDK reads more").map(|()| Kind::Unsendable);
        }
        Err(_) => return Ok(Kind::Unsendable),
    };
    IS_CAUGHT.set(true);
    let response = catch_unwind(AssertUnwindSafe(|| {
        case::received(&case::answer_of(&request, call))
    }));
    IS_CAUGHT.set(false);
    let Ok(response) = response else {
        return broken("panic", "the function panicked").map(|()| Kind::Unsendable);
    };
    size::small(&request, &response)?;
    passed_on(&request, &response)?;
    conditions::check(json, &response)?;
    let fatal = results(&response)?;
    if is_thorough {
        steadiness::over_the_wire(&request, &response)?;
        steadiness::requirements(&request, &response)?;
        steadiness::settles(&request, &response)?;
        steadiness::timeless(json, &response)?;
    } else if warns(&response) {
        // Few answers warn. A warning that each reconcile repeats would bury all other events.
        steadiness::settles(&request, &response)?;
    }
    if fatal {
        let [before, after] = [&request.desired, &response.desired].map(Option::as_ref);
        if before != after && compare::state(before) != compare::state(after) {
            broken("refused untouched", "a fatal answer changes desired state")?;
        }
        return Ok(Kind::Refused);
    }
    applied(&request, &response)
}

fn warns(response: &RunFunctionResponse) -> bool {
    let mut results = response.results.iter();
    results.any(|result| result.severity() == Severity::Warning)
}

/// A caught panic is reported with its request, made small.
pub fn keep_caught_panics_quiet() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !IS_CAUGHT.get() {
            usual(info);
        }
    }));
}

fn parsed(json: &Value) -> Option<RunFunctionRequest> {
    let mut request = RunFunctionRequest::deserialize(json).ok()?;
    hostile::with_numbers(&mut request);
    Some(request)
}

/// The request as it comes off the wire; none for one that no wire carries.
pub fn received(json: &Value) -> Option<RunFunctionRequest> {
    let bytes = parsed(json)?.encode_to_vec();
    let fits = bytes.len() < MESSAGE_LIMIT;
    fits.then(|| RunFunctionRequest::decode(bytes.as_slice()).ok())?
}

/// What earlier steps left, and the tag.
fn passed_on(request: &RunFunctionRequest, response: &RunFunctionResponse) -> Outcome {
    let tag = |tag: Option<&str>| tag.unwrap_or_default().to_owned();
    let asked = tag(request.meta.as_ref().map(|meta| meta.tag.as_str()));
    let meta = response.meta.as_ref();
    if tag(meta.map(|meta| meta.tag.as_str())) != asked {
        return broken("tag", "the tag is not echoed");
    }
    let ttl = meta
        .and_then(|meta| meta.ttl.as_ref())
        .map_or(0, |ttl| ttl.seconds);
    if !(10..=86_400).contains(&ttl) {
        return broken("ttl", format!("looks again after {ttl} s"));
    }
    if response.context != request.context {
        let json = |of: &Option<pbjson_types::Struct>| of.as_ref().map(struct_to_json);
        if json(&response.context) != json(&request.context) {
            return broken("context", "the context is changed");
        }
    }
    let (Some(before), Some(after)) = (&request.desired, &response.desired) else {
        return Ok(());
    };
    let foreign = before.resources.iter().filter(|(key, _)| !is_own(key));
    for (key, resource) in foreign {
        let kept = after.resources.get(key);
        if kept != Some(resource) && kept.map(json) != Some(json(resource)) {
            return broken(
                "earlier steps",
                format!("{key} of an earlier step is changed"),
            );
        }
    }
    composite(before.composite.as_ref(), after.composite.as_ref())
}

/// Of the XR only `status` is this function's, and of that only its own fields.
fn composite(before: Option<&Resource>, after: Option<&Resource>) -> Outcome {
    let Some(after) = after else {
        return match before {
            Some(_) => broken("earlier steps", "the desired XR is lost"),
            None => Ok(()),
        };
    };
    let none = Resource::default();
    let before = before.unwrap_or(&none);
    for (key, value) in &before.connection_details {
        let own = ["host", "port", "ssh", "user"].contains(&key.as_str());
        if !own && after.connection_details.get(key) != Some(value) {
            return broken("earlier steps", format!("connection detail {key} is lost"));
        }
    }
    let (mut before, mut after) = (json(before), json(after));
    let status = |of: &mut Value| of.as_object_mut().and_then(|of| of.remove("status"));
    let (old, new) = (status(&mut before), status(&mut after));
    let empty = |value: &Value| value.as_object().is_none_or(serde_json::Map::is_empty);
    if before != after && !(empty(&before) && empty(&after)) {
        return broken("only status", format!("of the XR {after} is desired"));
    }
    let (Some(Value::Object(old)), Some(Value::Object(new))) = (old, new) else {
        return Ok(());
    };
    let foreign = old
        .iter()
        .filter(|(f, _)| !STATUS_FIELDS.contains(&f.as_str()));
    for (field, value) in foreign {
        if new.get(field) != Some(value) {
            return broken("earlier steps", format!("status.{field} is changed"));
        }
    }
    Ok(())
}

/// Answers whether there is a fatal result.
fn results(response: &RunFunctionResponse) -> Result<bool, Violation> {
    let mut fatal = 0;
    for result in &response.results {
        let is_fatal = result.severity() == Severity::Fatal;
        fatal += u32::from(is_fatal);
        let says = result.reason.as_deref().is_some_and(is_reason) && !result.message.is_empty();
        if !says || result.severity() == Severity::Unspecified {
            broken("results", format!("{result:?} says nothing"))?;
        }
    }
    if fatal > 1 {
        broken("results", "there are several fatal results")?;
    }
    Ok(fatal == 1)
}

/// An answer that is applied.
fn applied(
    request: &RunFunctionRequest,
    response: &RunFunctionResponse,
) -> Result<Kind, Violation> {
    let view = View::new(request);
    let state = response.desired.clone().unwrap_or_default();
    let desired: BTreeMap<String, Value> = state
        .resources
        .iter()
        .map(|(key, resource)| (key.clone(), json(resource)))
        .collect();
    let earlier = request.desired.as_ref().map(|d| &d.resources);
    let mut passed_on = BTreeSet::new();
    for (key, resource) in &desired {
        let before = earlier.and_then(|earlier| earlier.get(key));
        if before.is_some_and(|before| json(before) == *resource) {
            passed_on.insert(key.clone());
        } else {
            well_formed(key, resource)?;
        }
    }
    let holds = |type_: &str| {
        let mut conditions = response.conditions.iter();
        conditions.any(|c| c.r#type == type_ && c.status == Status::ConditionTrue as i32)
    };
    let composite = state.composite.as_ref().map(json).unwrap_or_default();
    let applied = Applied {
        view: &view,
        status: &composite["status"],
        earlier: &earlier.iter().flat_map(|e| e.keys().cloned()).collect(),
        passed_on: &passed_on,
        desired: &desired,
        is_resolved: holds("ConfigResolved"),
    };
    if let Some((rule, what)) = applied.violation() {
        broken(rule, what)?;
    }
    if let Some(what) = volume::violation(&applied) {
        broken("home volume", what)?;
    }
    if let Some(what) = limits::violation(&applied) {
        broken("limits", what)?;
    }
    let composite = state.composite.unwrap_or_default();
    if let Some(what) = connection::violation(&applied, &composite) {
        broken("connection", what)?;
    }
    let others = earlier.is_some_and(|e| e.keys().any(|key| !is_own(key)));
    let mut conditions = response.conditions.iter();
    let in_order =
        |c: &Condition| !c.r#type.ends_with("Ready") || c.status() == Status::ConditionTrue;
    let is_ready = composite.ready() == Ready::True || (others && conditions.all(in_order));
    if let Some(what) = readiness::violation(&applied, is_ready, response) {
        broken("ready", what)?;
    }
    let drops = |key: &String| is_own(key) && !desired.contains_key(key);
    Ok(match () {
        () if view.observed.keys().any(drops) => Kind::Dropping,
        () if applied.is_resolved => Kind::Resolved,
        () => Kind::Held,
    })
}

/// A desired resource that the API server takes, under a key that is a name.
fn well_formed(key: &str, resource: &Value) -> Outcome {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = !key.is_empty()
        && key.len() <= 63
        && key.chars().all(inner)
        && !key.starts_with('-')
        && !key.ends_with('-');
    if !is_label || !is_own(key) {
        return broken("keys", format!("{key:?} is composed"));
    }
    let fields = resource.as_object();
    if fields.is_none_or(|fields| fields.contains_key("status")) {
        return broken("no status", format!("{key} has a status"));
    }
    let metadata = resource.get("metadata").and_then(Value::as_object);
    let allowed = ["name", "namespace", "labels", "annotations"];
    let foreign = metadata.and_then(|m| m.keys().find(|f| !allowed.contains(&f.as_str())));
    if let Some(field) = foreign {
        return broken("metadata", format!("{key} has metadata.{field}"));
    }
    Ok(())
}
