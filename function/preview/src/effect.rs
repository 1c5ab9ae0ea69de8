//! Compares two decisions about a workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use api::workspace::Phase;
use function_runtime::object::Status;
use function_runtime::response::{CONFIG_RESOLVED, Condition, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kinds of composed resources that are machines.
const MACHINES: [&str; 3] = ["SpotPool", "Instance", "StatefulSet"];
/// Fields that follow the time of the call, not the policy.
const OF_THE_CLOCK: [&str; 1] = ["spec.forProvider.endsAt"];

/// The effect of a policy on a workspace. A later one is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum Effect {
    /// Nothing changes.
    Unchanged,
    /// Resources change. The machine stays, and the next machine may be another one.
    Changed,
    /// The workspace cannot be resolved for now. Everything stays as it is.
    Held,
    /// The claim is refused. What runs stays as it is, within its limits.
    Refused,
    /// The machine ends, and another one takes its place.
    Replaced,
    /// The machine ends.
    Stopped,
}

impl Effect {
    /// Whether the machine of the workspace ends.
    pub fn ends_a_machine(self) -> bool {
        matches!(self, Self::Replaced | Self::Stopped)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unchanged => "unchanged",
            Self::Changed => "changed",
            Self::Held => "held",
            Self::Refused => "refused",
            Self::Replaced => "replaced",
            Self::Stopped => "stopped",
        })
    }
}

/// The difference between two decisions.
pub struct Compared {
    /// The effect.
    pub effect: Effect,
    /// Why, or what changes.
    pub message: String,
    /// The fields that change.
    pub fields: Vec<String>,
}

/// Whether a workspace has a machine that runs or starts.
pub fn is_on(observed: &BTreeMap<String, Value>) -> bool {
    observed.values().any(wants_a_machine)
}

/// Whether the pods of a workspace run or start, as its status says; none if it has no pods.
pub fn pods_are_on(composite: &Value) -> Option<bool> {
    composite.pointer("/status/pods")?;
    let phase = composite.pointer("/status/phase")?;
    let phase = Phase::deserialize(phase).ok()?;
    let on = [Phase::Provisioning, Phase::Ready, Phase::Interrupted];
    Some(on.contains(&phase))
}

/// Compares the decision under the policy in force with that under the proposed one.
pub fn compare(
    observed: &BTreeMap<String, Value>,
    in_force: &Response,
    proposed: &Response,
) -> Compared {
    let (before, after) = (machines(in_force), machines(proposed));
    let gone = before.difference(&after).next();
    let new = after.difference(&before).next();
    let of_another_image = observed.iter().find(|(name, pool)| {
        after.contains(name.as_str())
            && boots_another_image(pool, name, proposed)
            && !boots_another_image(pool, name, in_force)
    });
    let fields = fields(in_force, proposed);
    let unresolved = unresolved(proposed).filter(|_| unresolved(in_force).is_none());
    let compared = |effect, message: String| Compared {
        effect,
        message,
        fields: fields.clone(),
    };
    match (gone, new, of_another_image, unresolved) {
        (_, Some(new), ..) => compared(Effect::Replaced, format!("{new} takes its place")),
        (_, None, Some((name, _)), _) => {
            compared(Effect::Replaced, format!("{name} boots another image"))
        }
        (Some(_), None, None, _) => compared(Effect::Stopped, message_of(proposed)),
        (None, None, None, Some(why)) => compared(unresolved_effect(why), why.message.clone()),
        (None, None, None, None) if fields.is_empty() => compared(Effect::Unchanged, String::new()),
        (None, None, None, None) => compared(Effect::Changed, fields.join(", ")),
    }
}

/// What becomes of pods that run, if a decision does not resolve the workspace; none if it does. The function leaves
/// them as they are. In a comparison without them, they would seem to end.
pub fn unresolved_pods(proposed: &Response) -> Option<Compared> {
    let why = unresolved(proposed)?;
    Some(Compared {
        effect: unresolved_effect(why),
        message: why.message.clone(),
        fields: Vec::new(),
    })
}

/// The composition resource names of the machines that a decision wants.
fn machines(response: &Response) -> BTreeSet<&str> {
    let desired = objects(response).into_iter();
    let machines = desired.filter(|(_, object)| wants_a_machine(object));
    machines.map(|(name, _)| name).collect()
}

/// The manifests of a decision's composed resources, by composition resource name.
fn objects(response: &Response) -> BTreeMap<&str, &Value> {
    let desired = response.desired.iter();
    let resources = desired.flat_map(|desired| &desired.resources);
    let objects = resources.map(|(name, resource)| (name.as_str(), &resource.object));
    objects.collect()
}

fn wants_a_machine(object: &Value) -> bool {
    let kind = object.get("kind").and_then(Value::as_str);
    if !kind.is_some_and(|kind| MACHINES.contains(&kind)) {
        return false;
    }
    let size = object
        .pointer("/spec/forProvider/size/minimum")
        .or_else(|| object.pointer("/spec/replicas"));
    // An Instance of provider-aws has no size.
    size.is_none_or(|size| size.as_i64() != Some(0))
}

/// Whether the pool ends its instance because the instance booted another image.
fn boots_another_image(pool: &Value, name: &str, proposed: &Response) -> bool {
    let desired = proposed.desired.as_ref();
    let new = desired.and_then(|desired| desired.resources.get(name));
    let Some(spec) = new.and_then(|new| new.object.pointer("/spec/forProvider")) else {
        return false;
    };
    let replaces = spec.pointer("/replace/otherImage") == Some(&Value::Bool(true));
    let wanted = spec.pointer("/image/id");
    let instances = pool.pointer("/status/atProvider/instances");
    let mut instances = instances.and_then(Value::as_array).into_iter().flatten();
    replaces && instances.any(|instance| instance.get("imageId") != wanted)
}

fn unresolved(response: &Response) -> Option<&Condition> {
    let resolved = response.condition(CONFIG_RESOLVED)?;
    (resolved.status != Status::True).then_some(resolved)
}

fn unresolved_effect(why: &Condition) -> Effect {
    if why.reason == "ParametersInvalid" || why.reason == "PolicyInvalid" {
        Effect::Refused
    } else {
        Effect::Held
    }
}

fn message_of(response: &Response) -> String {
    let status = response.desired.as_ref().map(|desired| &desired.status);
    let message = status.and_then(|status| status.get("message")?.as_str());
    message.unwrap_or_default().to_owned()
}

/// The fields of resources that differ, each with the name of its resource.
fn fields(in_force: &Response, proposed: &Response) -> Vec<String> {
    let (before, after) = (objects(in_force), objects(proposed));
    let names: BTreeSet<&&str> = before.keys().chain(after.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        match (before.get(name), after.get(name)) {
            (Some(one), Some(other)) => {
                let mut paths = Vec::new();
                differences(one, other, "", &mut paths);
                paths.retain(|path| !OF_THE_CLOCK.contains(&path.as_str()));
                found.extend(paths.iter().map(|path| format!("{name}: {path}")));
            }
            (Some(_), None) => found.push(format!("{name}: removed")),
            (None, _) => found.push(format!("{name}: added")),
        }
    }
    found
}

fn differences(one: &Value, other: &Value, path: &str, found: &mut Vec<String>) {
    if let (Value::Object(one), Value::Object(other)) = (one, other) {
        let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        for key in keys {
            let dot = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{key}");
            differences(
                one.get(key).unwrap_or(&Value::Null),
                other.get(key).unwrap_or(&Value::Null),
                &path,
                found,
            );
        }
    } else if one != other {
        found.push(path.to_owned());
    }
}
