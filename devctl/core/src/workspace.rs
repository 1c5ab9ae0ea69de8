//! A workspace as the API server shows it: a claim, or a composite without one. Both configurations
//! have the same fields.
//!
//! A field that a newer version of the platform writes in another way counts as absent, so an older
//! devctl still shows the rest.

use api::condition::ConditionStatus;
use api::lifecycle::StopReason;
use api::workspace::{Phase, Placement};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::object::{self, Kind, Reference, text, time, typed};
use crate::problem::{Code, Problem};

/// A claim.
#[derive(Clone, Copy, Debug)]
pub struct Workspace<'a>(&'a Value);

/// One condition of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition<'a> {
    /// The name, for example `Ready`.
    pub name: &'a str,
    /// Whether it holds; none for an unknown value.
    pub status: Option<ConditionStatus>,
    /// The reason in one word.
    pub reason: &'a str,
    /// The explanation for people.
    pub message: &'a str,
}

impl Condition<'_> {
    /// Whether the condition holds.
    pub fn is_true(&self) -> bool {
        self.status == Some(ConditionStatus::True)
    }
}

/// A pod of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// The name of the pod.
    pub name: &'a str,
    /// Whether the owner can log in.
    pub ready: bool,
    /// Why it is not ready.
    pub message: Option<&'a str>,
}

impl<'a> Workspace<'a> {
    /// The workspace that a claim describes.
    pub fn new(claim: &'a Value) -> Self {
        Self(claim)
    }

    /// The claim.
    pub fn claim(self) -> &'a Value {
        self.0
    }

    /// The name of the claim.
    pub fn name(self) -> &'a str {
        text(self.0, "/metadata/name").unwrap_or_default()
    }

    /// The namespace of the claim.
    pub fn namespace(self) -> &'a str {
        text(self.0, "/metadata/namespace").unwrap_or_default()
    }

    /// The claim, for messages.
    pub fn reference(self) -> Reference {
        Reference::new(Kind::Claim, self.namespace(), self.name())
    }

    /// The UID of the claim.
    pub fn uid(self) -> &'a str {
        text(self.0, "/metadata/uid").unwrap_or_default()
    }

    /// When the claim was created.
    pub fn created(self) -> Option<Timestamp> {
        self.time("/metadata/creationTimestamp")
    }

    /// Whether the claim is being deleted.
    pub fn is_deleted(self) -> bool {
        text(self.0, "/metadata/deletionTimestamp").is_some()
    }

    /// The phase; none before Crossplane has rendered the claim.
    pub fn phase(self) -> Option<Phase> {
        self.typed("/status/phase")
    }

    /// The phase as text; `Deleting` while the claim is being deleted.
    pub fn phase_text(self) -> &'a str {
        if self.is_deleted() {
            return "Deleting";
        }
        text(self.0, "/status/phase").unwrap_or("New")
    }

    /// Whether the workspace is ready for its owner.
    pub fn is_ready(self) -> bool {
        self.phase() == Some(Phase::Ready) && !self.is_deleted()
    }

    /// Why it has this phase.
    pub fn message(self) -> Option<&'a str> {
        text(self.0, "/status/message")
    }

    /// The phase and its reason, for messages.
    pub fn state(self) -> String {
        match self.message() {
            Some(message) => format!("it is {}: {message}", self.phase_text()),
            None => format!("it is {}", self.phase_text()),
        }
    }

    /// The problem of a person who wants to enter it while it does not run.
    pub fn not_running(self, message: String) -> Problem {
        let name = self.name();
        let next = match self.phase_text() {
            "Stopped" | "Expired" => format!("devctl start {name}"),
            _ => format!("devctl why {name}"),
        };
        Problem::new(Code::NotRunning, self.phase_text(), message)
            .of(self.reference().to_string())
            .next(next)
    }

    /// Where it runs.
    pub fn placement(self) -> Placement {
        self.typed("/spec/parameters/placement").unwrap_or_default()
    }

    /// The owner.
    pub fn owner(self) -> Option<&'a str> {
        text(self.0, "/status/owner").or_else(|| text(self.0, "/spec/parameters/owner"))
    }

    /// The text of a field of the status.
    pub fn status(self, field: &str) -> Option<&'a str> {
        self.0.get("status")?.get(field)?.as_str()
    }

    /// The address of an EC2 instance: the public one, or else the private one.
    pub fn address(self) -> Option<&'a str> {
        self.status("publicIp").or_else(|| self.status("privateIp"))
    }

    /// The pods.
    pub fn nodes(self) -> Vec<Node<'a>> {
        let nodes = object::list(self.0, "/status/nodes").iter();
        nodes
            .map(|node| Node {
                name: text(node, "/name").unwrap_or_default(),
                ready: node.get("ready").and_then(Value::as_bool) == Some(true),
                message: text(node, "/message"),
            })
            .collect()
    }

    /// The number of pods that the claim asks for; 1 on EC2.
    pub fn replicas(self) -> u16 {
        self.typed("/spec/parameters/distributed/nodes")
            .unwrap_or(1)
    }

    /// The SSH host keys, each as `TYPE KEY`.
    pub fn host_keys(self) -> Vec<&'a str> {
        let keys = object::list(self.0, "/status/hostKeys").iter();
        keys.filter_map(Value::as_str).collect()
    }

    /// Whether the files of the owner outlive machines.
    pub fn has_home(self) -> bool {
        self.0.pointer("/spec/parameters/home").is_some()
    }

    /// The conditions.
    pub fn conditions(self) -> Vec<Condition<'a>> {
        let conditions = object::list(self.0, "/status/conditions").iter();
        conditions
            .map(|one| Condition {
                name: text(one, "/type").unwrap_or_default(),
                status: typed(one, "/status"),
                reason: text(one, "/reason").unwrap_or_default(),
                message: text(one, "/message").unwrap_or_default(),
            })
            .collect()
    }

    /// The condition of a type.
    pub fn condition(self, name: &str) -> Option<Condition<'a>> {
        self.conditions().into_iter().find(|one| one.name == name)
    }

    /// A time of the claim.
    pub fn time(self, pointer: &str) -> Option<Timestamp> {
        time(self.0, pointer)
    }

    /// When it stops next.
    pub fn stops_at(self) -> Option<Timestamp> {
        self.time("/status/lifecycle/stopsAt")
    }

    /// Why it stops next.
    pub fn stops_because(self) -> Option<StopReason> {
        self.typed("/status/lifecycle/stopsBecause")
    }

    /// When its run ends at the latest, used or not; none if no limit is known.
    pub fn run_ends_at(self) -> Option<Timestamp> {
        let longest = || {
            let limit = text(self.0, "/status/lifecycle/limits/maxLifetime")?;
            let started = self.time("/status/lifecycle/startedAt")?;
            started.checked_add(api::duration::duration(limit)?).ok()
        };
        self.time("/status/lifecycle/extension/grantedUntil")
            .or_else(longest)
    }

    /// An amount of US dollars of `status.cost`.
    pub fn cost(self, field: &str) -> Option<f64> {
        self.0.pointer("/status/cost")?.get(field)?.as_f64()
    }

    /// Whether Argo CD keeps the claim as it is in git: by its tracking annotation or label.
    pub fn is_from_git(self) -> bool {
        object::annotation(self.0, "argocd.argoproj.io/tracking-id").is_some()
            || text(self.0, "/metadata/labels/argocd.argoproj.io~1instance").is_some()
    }

    /// A value of a known type; none if it is absent or has another shape.
    pub fn typed<T: DeserializeOwned>(self, pointer: &str) -> Option<T> {
        typed(self.0, pointer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_phase_of_a_newer_version_hides_nothing_else() {
        let claim = json!({
            "metadata": {"name": "a"},
            "status": {"phase": "Hibernating", "message": "asleep", "conditions": [
                {"type": "Ready", "status": "Perhaps", "reason": "X"},
            ]},
        });
        let workspace = Workspace::new(&claim);
        assert_eq!(workspace.phase(), None);
        assert_eq!(workspace.phase_text(), "Hibernating");
        assert_eq!(workspace.message(), Some("asleep"));
        assert_eq!(workspace.condition("Ready").unwrap().status, None);
        assert_eq!(workspace.condition("Synced"), None);
    }

    #[test]
    fn the_longest_run_ends_by_its_limit_or_by_what_was_granted_and_not_by_the_next_stop() {
        let mut claim = json!({"metadata": {"name": "a"}, "status": {"lifecycle": {
            "startedAt": "2026-11-27T10:00:00Z", "stopsAt": "2026-11-27T11:00:00Z",
            "stopsBecause": "Idle", "limits": {"maxLifetime": "3h"},
        }}});
        let ends = |claim: &Value| Workspace::new(claim).run_ends_at().map(|at| at.to_string());
        assert_eq!(ends(&claim).as_deref(), Some("2026-11-27T13:00:00Z"));
        claim["status"]["lifecycle"]["extension"] = json!({"grantedUntil": "2026-11-27T14:30:00Z"});
        assert_eq!(ends(&claim).as_deref(), Some("2026-11-27T14:30:00Z"));
        claim["status"]["lifecycle"] = json!({"startedAt": "2026-11-27T10:00:00Z"});
        assert_eq!(ends(&claim), None, "no limit");
    }

    #[test]
    fn a_workspace_that_is_being_deleted_is_not_ready() {
        let claim = json!({
            "metadata": {"deletionTimestamp": "2026-11-27T10:00:00Z"},
            "status": {"phase": "Ready"},
        });
        let workspace = Workspace::new(&claim);
        assert!(!workspace.is_ready());
        assert_eq!(workspace.phase_text(), "Deleting");
    }
}
