//! An observed resource: a managed one of whichever provider, or one of Kubernetes' own.

use serde_json::Value;

/// Crossplane's annotation with a resource's id at its provider.
pub const EXTERNAL_NAME: &str = "crossplane.io/external-name";

const READY: &str = "Ready";
const SYNCED: &str = "Synced";
/// upjet's: the last create, update or delete that it ran in the background.
const LAST_ASYNC_OPERATION: &str = "LastAsyncOperation";

/// A condition's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The condition holds.
    True,
    /// It does not.
    False,
    /// Nobody can tell, or the status is none that Kubernetes knows.
    Unknown,
}

impl Status {
    fn of(status: &str) -> Self {
        match status {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

/// A condition as it is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed<'a> {
    /// Whether it holds.
    pub status: Status,
    /// One word for machines.
    pub reason: &'a str,
    /// For people.
    pub message: &'a str,
}

/// An observed resource.
#[derive(Clone, Copy, Debug)]
pub struct ObservedObject<'a>(&'a Value);

impl<'a> ObservedObject<'a> {
    /// Looks at an observed resource.
    pub fn new(observed: &'a Value) -> Self {
        Self(observed)
    }

    /// The Kubernetes object's name.
    pub fn name(self) -> &'a str {
        let name = self.part("metadata", "name");
        name.and_then(Value::as_str).unwrap_or_default()
    }

    /// Its id at the provider, once that is known.
    pub fn external_name(self) -> Option<&'a str> {
        let annotations = self.part("metadata", "annotations")?;
        annotations
            .get(EXTERNAL_NAME)?
            .as_str()
            .filter(|id| !id.is_empty())
    }

    /// Whether somebody is deleting it.
    pub fn deleting(self) -> bool {
        self.part("metadata", "deletionTimestamp").is_some()
    }

    /// The condition of a type.
    pub fn condition(self, type_: &str) -> Option<Observed<'a>> {
        let conditions = self.part("status", "conditions")?.as_array()?;
        let text = |condition: &'a Value, field: &str| {
            condition
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        conditions
            .iter()
            .find(|condition| text(condition, "type") == type_)
            .map(|condition| Observed {
                status: Status::of(text(condition, "status")),
                reason: text(condition, "reason"),
                message: text(condition, "message"),
            })
    }

    /// The condition of a type, where it is `False`.
    pub fn failing(self, type_: &str) -> Option<Observed<'a>> {
        self.condition(type_)
            .filter(|condition| condition.status == Status::False)
    }

    /// Whether a condition is `True`.
    pub fn holds(self, type_: &str) -> bool {
        self.condition(type_)
            .is_some_and(|condition| condition.status == Status::True)
    }

    /// Whether its provider found it as it should be at the last look. `Ready`
    /// alone is kept from an earlier time when reconciling fails, and upjet
    /// reports what it runs in the background by a condition of its own.
    pub fn is_ready(self) -> bool {
        !self.deleting()
            && self.holds(READY)
            && self.holds(SYNCED)
            && self.failing(LAST_ASYNC_OPERATION).is_none()
    }

    /// A field of a field. (`Value::pointer` copies the keys to unescape them.)
    fn part(self, outer: &str, inner: &str) -> Option<&'a Value> {
        self.0.get(outer)?.get(inner)
    }
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
