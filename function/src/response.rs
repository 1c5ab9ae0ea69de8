//! What the function answers.

use std::time::Duration;

use api::condition::{COMPUTE_READY, CONFIG_RESOLVED};
use function_sdk_rust::proto::v1::{Ready, RunFunctionRequest, RunFunctionResponse, Target};
use function_sdk_rust::resource::{
    add_connection_detail, json_to_pb, json_to_struct, pb_to_json, set_ready,
};
use function_sdk_rust::response::{self as sdk, ResourceMatch};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::call::Call;
use crate::desired::Desired;
use crate::refusal::Refusal;
use crate::requirement::{Requirement, Which};

/// The longest message, in characters. Values that people wrote and what providers
/// say may be as long as etcd allows, and each message goes into several places.
const LONGEST: usize = 4096;
/// Crossplane's label of a composite with its claim's namespace.
const CLAIM_NAMESPACE: &str = "crossplane.io/claim-namespace";
/// How soon to look again at what a person has to change.
const REFUSED_TTL: Duration = Duration::from_mins(1);

/// A decision, complete and free of chance.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// When to look again, at the latest.
    pub ttl: Duration,
    /// What Crossplane is to fetch; nothing while the policy is unreadable.
    pub requirements: Vec<Requirement>,
    /// Nothing with a fatal result: what earlier steps desire is passed on.
    pub desired: Option<Desired>,
    /// At most one per type.
    pub conditions: Vec<Condition>,
    /// Transitions, and the fatal result.
    pub events: Vec<Event>,
}

/// A condition of the XR and its claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// For example `ConfigResolved`.
    pub type_: &'static str,
    /// `True` or `False`.
    pub holds: bool,
    /// One word for machines.
    pub reason: String,
    /// For people; empty for none.
    pub message: String,
}

impl Condition {
    /// A condition that is `True`.
    pub fn holds(type_: &'static str, reason: impl Into<String>) -> Self {
        Self {
            type_,
            holds: true,
            reason: reason.into(),
            message: String::new(),
        }
    }

    /// A condition that is `True`, and what somebody should know all the same.
    pub fn holds_but(
        type_: &'static str,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            message: message.into(),
            ..Self::holds(type_, reason)
        }
    }

    /// A condition that is `False`, and why.
    pub fn fails(
        type_: &'static str,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_,
            holds: false,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// `ConfigResolved` as it is when nothing is missing.
    pub fn config_resolved(notice: String) -> Self {
        Self::holds_but(CONFIG_RESOLVED, "Resolved", notice)
    }

    /// `ComputeReady` where there is no compute: none is composed until
    /// `ConfigResolved` holds.
    pub fn compute_blocked() -> Self {
        Self::fails(
            COMPUTE_READY,
            "ConfigUnresolved",
            format!("waiting for {CONFIG_RESOLVED}"),
        )
    }
}

/// An event of the XR and its claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// How bad it is.
    pub severity: Severity,
    /// One word for machines.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// How bad an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Good news.
    Normal,
    /// Somebody should look.
    Warning,
    /// Nothing is applied until somebody changes something.
    Fatal,
}

impl Response {
    /// Nothing is applied until a person changes something; it is looked at again
    /// after `least` at the soonest. `others` are the conditions besides
    /// `ConfigResolved`: Crossplane sets those that a fatal response leaves out to
    /// Unknown, and what they are about may well be there.
    pub fn refused(
        why: &Refusal,
        least: Duration,
        others: impl IntoIterator<Item = Condition>,
    ) -> Self {
        let config = Condition::fails(CONFIG_RESOLVED, why.reason(), why.to_string());
        Self {
            ttl: REFUSED_TTL.max(least),
            requirements: Vec::new(),
            desired: None,
            conditions: [config].into_iter().chain(others).collect(),
            events: vec![Event {
                severity: Severity::Fatal,
                reason: why.reason(),
                message: why.to_string(),
            }],
        }
    }

    /// The protocol's response: everything that earlier steps left in the
    /// request, and this decision.
    pub fn onto(self, call: Call) -> RunFunctionResponse {
        let request = RunFunctionRequest {
            meta: call.meta,
            ..RunFunctionRequest::default()
        };
        let mut rsp = RunFunctionResponse {
            desired: call.desired,
            context: call.context,
            ..sdk::to(&request, self.ttl)
        };
        for requirement in self.requirements {
            requirement.add_to(&mut rsp);
        }
        if let Some(desired) = self.desired {
            desired.add_to(&mut rsp);
        }
        for condition in self.conditions {
            condition.add_to(&mut rsp);
        }
        for event in self.events {
            event.add_to(&mut rsp);
        }
        rsp
    }
}

impl Desired {
    fn add_to(self, rsp: &mut RunFunctionResponse) {
        for (key, composed) in self.resources {
            if let Value::Object(fields) = composed.object {
                let resource = sdk::desired_composed(rsp, &key);
                resource.resource = Some(json_to_struct(&fields));
                set_ready(resource, readiness(composed.ready));
            }
        }
        let composite = sdk::desired_composite(rsp);
        let fields = &mut composite.resource.get_or_insert_default().fields;
        // Other steps may own other fields of the same status.
        let mut status = match fields.remove("status").map(|status| pb_to_json(&status)) {
            Some(Value::Object(status)) => status,
            _ => Map::new(),
        };
        status.extend(self.status);
        if let Some(Value::String(message)) = status.get_mut("message") {
            *message = bounded(std::mem::take(message));
        }
        fields.insert("status".to_owned(), json_to_pb(&Value::Object(status)));
        for (key, value) in self.connection {
            add_connection_detail(composite, key, value);
        }
        if let Some(ready) = self.ready {
            set_ready(composite, readiness(ready));
        }
    }
}

impl Requirement {
    fn add_to(self, rsp: &mut RunFunctionResponse) {
        let (which, namespace) = match self.which {
            Which::Named(name) => (Some(ResourceMatch::Name(name)), None),
            Which::Every { namespace } => (None, namespace),
            Which::Claimed { namespace } => {
                let label = (CLAIM_NAMESPACE.to_owned(), namespace);
                (Some(ResourceMatch::Labels([label].into())), None)
            }
            Which::Labelled {
                namespace,
                key,
                value,
            } => {
                let labels = [(key.to_owned(), value)].into_iter().collect();
                (Some(ResourceMatch::Labels(labels)), Some(namespace))
            }
        };
        sdk::require_resources(
            rsp,
            self.name,
            self.api_version,
            self.kind,
            which,
            namespace,
        );
    }
}

impl Condition {
    fn add_to(self, rsp: &mut RunFunctionResponse) {
        let condition = if self.holds {
            sdk::condition_true(rsp, self.type_, self.reason)
        } else {
            sdk::condition_false(rsp, self.type_, self.reason)
        };
        condition.message = (!self.message.is_empty()).then(|| bounded(self.message));
        condition.target = Some(Target::CompositeAndClaim as i32);
    }
}

impl Event {
    fn add_to(self, rsp: &mut RunFunctionResponse) {
        let message = bounded(self.message);
        let result = match self.severity {
            Severity::Normal => sdk::normal(rsp, message),
            Severity::Warning => sdk::warning(rsp, message),
            Severity::Fatal => sdk::fatal(rsp, message),
        };
        result.reason = Some(self.reason.to_owned());
        result.target = Some(Target::CompositeAndClaim as i32);
    }
}

/// A status as Crossplane takes it.
pub fn fields<T: Serialize>(status: &T) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        // A struct of strings, lists and enums always serializes to an object.
        _ => Map::new(),
    }
}

/// A message without what is beyond the longest.
fn bounded(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(LONGEST) {
        message.truncate(end);
        message.push('…');
    }
    message
}

fn readiness(ready: bool) -> Ready {
    if ready { Ready::True } else { Ready::False }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_as_long_as_etcd_takes_does_not_fill_the_claim() {
        let message = bounded("ä".repeat(LONGEST + 1));
        assert_eq!(message, "ä".repeat(LONGEST) + "…");
        assert_eq!(bounded("ä".repeat(LONGEST)), "ä".repeat(LONGEST));
    }
}
