//! An observed resource: a managed resource of any provider, or an object of Kubernetes itself.

use serde_json::{Map, Value};

/// Crossplane's annotation with the resource's id in the external system.
pub const EXTERNAL_NAME: &str = "crossplane.io/external-name";

const READY: &str = "Ready";
const SYNCED: &str = "Synced";
/// Condition of upjet's providers: result of the last create, update or delete that the provider
/// ran in the background.
const LAST_ASYNC_OPERATION: &str = "LastAsyncOperation";

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The status is `Unknown`, or a value that Kubernetes does not define.
    Unknown,
}

impl Status {
    /// The status as Kubernetes spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    fn of(status: &str) -> Self {
        match status {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

/// An observed condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed<'a> {
    /// The status of the condition.
    pub status: Status,
    /// The reason, one word for machines.
    pub reason: &'a str,
    /// The message for people.
    pub message: &'a str,
}

/// The object that controls another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controller<'a> {
    /// The kind of the controlling object.
    pub kind: &'a str,
    /// Its name, in the namespace of the controlled object.
    pub name: &'a str,
    /// Its UID. A later object with the same name has another UID.
    pub uid: &'a str,
}

/// The name of a composed resource; none if it is not observed, or has no name yet. Crossplane cannot
/// rename a resource, so the function desires an observed one under its own name.
pub fn given_name(observed: Option<&Value>) -> Option<&str> {
    let name = ObservedObject::new(observed?).name();
    (!name.is_empty()).then_some(name)
}

/// An observed resource.
#[derive(Clone, Copy, Debug)]
pub struct ObservedObject<'a>(&'a Value);

impl<'a> ObservedObject<'a> {
    /// Wraps an observed resource.
    pub fn new(observed: &'a Value) -> Self {
        Self(observed)
    }

    /// The kind; empty if it is missing.
    pub fn kind(self) -> &'a str {
        let kind = self.0.get("kind").and_then(Value::as_str);
        kind.unwrap_or_default()
    }

    /// The value of `metadata.name`; empty if it is missing.
    pub fn name(self) -> &'a str {
        let name = self.part("metadata", "name");
        name.and_then(Value::as_str).unwrap_or_default()
    }

    /// The resource's id in the external system; none until it is known.
    pub fn external_name(self) -> Option<&'a str> {
        let annotations = self.part("metadata", "annotations")?;
        annotations
            .get(EXTERNAL_NAME)?
            .as_str()
            .filter(|id| !id.is_empty())
    }

    /// The label with this key; none if it is missing or empty.
    pub fn label(self, key: &str) -> Option<&'a str> {
        let labels = self.part("metadata", "labels")?;
        labels.get(key)?.as_str().filter(|value| !value.is_empty())
    }

    /// The object that controls this one: the owner reference with `controller: true`.
    pub fn controller(self) -> Option<Controller<'a>> {
        let owners = self.part("metadata", "ownerReferences")?.as_array()?;
        let mut owners = owners.iter();
        let owner = owners.find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
        let text = |field| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        Some(Controller {
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
        })
    }

    /// Whether the resource is being deleted.
    pub fn deleting(self) -> bool {
        self.part("metadata", "deletionTimestamp").is_some()
    }

    /// The condition of this type.
    pub fn condition(self, type_: &str) -> Option<Observed<'a>> {
        let conditions = self.part("status", "conditions")?.as_array()?;
        conditions
            .iter()
            .filter_map(Value::as_object)
            .map(typed)
            .find(|(of, _)| *of == type_)
            .map(|(_, observed)| observed)
    }

    /// The condition of this type, if its status is `False`.
    pub fn failing(self, type_: &str) -> Option<Observed<'a>> {
        self.condition(type_)
            .filter(|condition| condition.status == Status::False)
    }

    /// Whether the condition of this type has status `True`.
    pub fn holds(self, type_: &str) -> bool {
        self.condition(type_)
            .is_some_and(|condition| condition.status == Status::True)
    }

    /// Whether the provider found the resource as desired in its last reconcile. `Ready` alone is
    /// not enough: it keeps its old value when a reconcile fails, and upjet reports the result of
    /// background operations in a condition of its own.
    pub fn is_ready(self) -> bool {
        !self.deleting()
            && self.holds(READY)
            && self.holds(SYNCED)
            && self.failing(LAST_ASYNC_OPERATION).is_none()
    }

    /// A field of a field. `Value::pointer` is not used because it copies the keys.
    fn part(self, outer: &str, inner: &str) -> Option<&'a Value> {
        self.0.get(outer)?.get(inner)
    }
}

/// The type of a condition, and the condition. The function asks for a hundred conditions in a call.
/// One pass over the fields needs fewer comparisons of keys than a search for each field.
fn typed(condition: &Map<String, Value>) -> (&str, Observed<'_>) {
    let mut type_ = "";
    let mut observed = Observed {
        status: Status::Unknown,
        reason: "",
        message: "",
    };
    for (field, value) in condition {
        let text = value.as_str().unwrap_or_default();
        match field.as_str() {
            "type" => type_ = text,
            "status" => observed.status = Status::of(text),
            "reason" => observed.reason = text,
            "message" => observed.message = text,
            _ => {}
        }
    }
    (type_, observed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with(conditions: &[(&str, &str)]) -> Value {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status)| json!({"type": type_, "status": status}))
            .collect();
        json!({"status": {"conditions": conditions}})
    }

    #[test]
    fn a_resource_whose_reconcile_fails_is_not_ready_although_it_says_so() {
        let ready = |conditions: &[(&str, &str)]| ObservedObject::new(&with(conditions)).is_ready();
        assert!(ready(&[("Ready", "True"), ("Synced", "True")]));
        assert!(!ready(&[("Ready", "True"), ("Synced", "False")]));
        assert!(!ready(&[("Ready", "True")]));
        assert!(!ready(&[
            ("Ready", "True"),
            ("Synced", "True"),
            ("LastAsyncOperation", "False")
        ]));
    }

    #[test]
    fn a_resource_that_is_being_deleted_is_not_ready() {
        let mut resource = with(&[("Ready", "True"), ("Synced", "True")]);
        resource["metadata"] = json!({"deletionTimestamp": "2026-11-20T10:00:00Z"});
        assert!(!ObservedObject::new(&resource).is_ready());
    }
}
