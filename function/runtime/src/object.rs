//! An observed resource: a managed resource of any provider, or an object of Kubernetes itself.

use crate::json::{Json, Object};

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
pub fn given_name<'a>(observed: Option<&'a Json<'a>>) -> Option<&'a str> {
    let name = ObservedObject::new(observed?).name();
    (!name.is_empty()).then_some(name)
}

/// An observed resource.
#[derive(Clone, Copy, Debug)]
pub struct ObservedObject<'a>(&'a Json<'a>);

impl<'a> ObservedObject<'a> {
    /// Wraps an observed resource.
    pub fn new(observed: &'a Json<'a>) -> Self {
        Self(observed)
    }

    /// The kind; empty if it is missing.
    pub fn kind(self) -> &'a str {
        let kind = self.0.get("kind").and_then(Json::as_str);
        kind.unwrap_or_default()
    }

    /// The value of `metadata.name`; empty if it is missing.
    pub fn name(self) -> &'a str {
        let name = self.0.at(&["metadata", "name"]);
        name.and_then(Json::as_str).unwrap_or_default()
    }

    /// The resource's id in the external system; none until it is known.
    pub fn external_name(self) -> Option<&'a str> {
        let annotations = self.0.at(&["metadata", "annotations"])?;
        annotations
            .get(EXTERNAL_NAME)?
            .as_str()
            .filter(|id| !id.is_empty())
    }

    /// The label with this key; none if it is missing or empty.
    pub fn label(self, key: &str) -> Option<&'a str> {
        let labels = self.0.at(&["metadata", "labels"])?;
        labels.get(key)?.as_str().filter(|value| !value.is_empty())
    }

    /// The object that controls this one: the owner reference with `controller: true`.
    pub fn controller(self) -> Option<Controller<'a>> {
        let owners = self.0.at(&["metadata", "ownerReferences"])?.as_list()?;
        let mut owners = owners.iter();
        let owner =
            owners.find(|owner| owner.get("controller").and_then(Json::as_bool) == Some(true))?;
        let text = |field| owner.get(field).and_then(Json::as_str).unwrap_or_default();
        Some(Controller {
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
        })
    }

    /// Whether the resource is being deleted.
    pub fn deleting(self) -> bool {
        self.0.at(&["metadata", "deletionTimestamp"]).is_some()
    }

    /// The condition of this type.
    pub fn condition(self, type_: &str) -> Option<Observed<'a>> {
        let conditions = self.0.at(&["status", "conditions"])?.as_list()?;
        conditions
            .iter()
            .filter_map(Json::as_object)
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
}

/// The type of a condition, and the condition. The function asks for a hundred conditions in a call.
/// One pass over the fields needs fewer comparisons of keys than a search for each field.
fn typed<'a>(condition: &'a Object<'_>) -> (&'a str, Observed<'a>) {
    let mut type_ = "";
    let mut observed = Observed {
        status: Status::Unknown,
        reason: "",
        message: "",
    };
    for (field, value) in condition.iter() {
        let text = value.as_str().unwrap_or_default();
        match field {
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
    use serde_json::{Value, json};

    fn with(conditions: &[(&str, &str)]) -> Json<'static> {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status)| json!({"type": type_, "status": status}))
            .collect();
        json!({"status": {"conditions": conditions}}).into()
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
        let mut resource = Value::from(&with(&[("Ready", "True"), ("Synced", "True")]));
        resource["metadata"] = json!({"deletionTimestamp": "2026-11-20T10:00:00Z"});
        assert!(!ObservedObject::new(&resource.into()).is_ready());
    }
}
