//! The decision of the function.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::composite::Composite;
use crate::desired::Desired;
use crate::message;
use crate::object::Status;
use crate::outcome::Refusal;
use crate::requirement::Requirement;
use crate::validation::Violation;

/// The condition of every composite that says whether its configuration is complete and allowed.
pub const CONFIG_RESOLVED: &str = "ConfigResolved";
/// When to look again after a fatal result.
const REFUSED_TTL: Duration = Duration::from_mins(1);

/// A decision. It contains no random values.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Longest time until the next call.
    pub ttl: Duration,
    /// Resources that Crossplane must fetch.
    pub requirements: Vec<Requirement>,
    /// The desired state; none with a fatal result. The desired state of earlier steps is passed
    /// on.
    pub desired: Option<Desired>,
    /// Conditions, at most one of each type.
    pub conditions: Vec<Condition>,
    /// Events of this call, including the fatal result.
    pub events: Vec<Event>,
    /// The fields of the claim that are wrong. Crossplane gets them as the message of `ConfigResolved`.
    pub violations: Vec<Violation>,
}

/// A condition of the composite and its claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The type, for example `ConfigResolved`.
    pub type_: &'static str,
    /// The status.
    pub status: Status,
    /// The reason, one word for machines.
    pub reason: String,
    /// The message for people; empty for no message.
    pub message: String,
}

impl Condition {
    /// Whether the status is `True`.
    pub fn holds(&self) -> bool {
        self.status == Status::True
    }

    /// A condition with status `True` and no message.
    pub fn is_true(type_: &'static str, reason: impl Into<String>) -> Self {
        Self {
            type_,
            status: Status::True,
            reason: reason.into(),
            message: String::new(),
        }
    }

    /// A condition with status `True` and a message.
    pub fn true_with_message(
        type_: &'static str,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            message: message.into(),
            ..Self::is_true(type_, reason)
        }
    }

    /// A condition with status `False`, its reason and its message.
    pub fn is_false(
        type_: &'static str,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_,
            status: Status::False,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// A condition with status `Unknown`, its reason and its message.
    pub fn unknown(
        type_: &'static str,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status: Status::Unknown,
            ..Self::is_false(type_, reason, message)
        }
    }
}

/// An event of the composite and its claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The severity of the event.
    pub severity: Severity,
    /// The reason, one word for machines.
    pub reason: &'static str,
    /// The message for people.
    pub message: String,
}

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// A normal event.
    Normal,
    /// A person should look at the problem.
    Warning,
    /// Crossplane applies nothing until a person changes the claim or the policy.
    Fatal,
}

impl Event {
    /// The event of a refusal; none if the composite's condition already tells it.
    pub fn refusal(composite: Composite<'_>, why: &Refusal) -> Option<Self> {
        // As the condition has it.
        let message = message::bounded(why.to_string());
        let told = composite.condition(CONFIG_RESOLVED);
        let is_told =
            told.is_some_and(|told| told.reason == why.reason() && told.message == message);
        (!is_told).then(|| Self {
            severity: Severity::Warning,
            reason: why.reason(),
            message,
        })
    }
}

impl Response {
    /// The condition of a type; none if the decision does not set it.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        let mut conditions = self.conditions.iter();
        conditions.find(|condition| condition.type_ == type_)
    }

    /// A response with desired state only.
    pub fn desiring(ttl: Duration, desired: Desired) -> Self {
        Self {
            ttl,
            requirements: Vec::new(),
            desired: Some(desired),
            conditions: Vec::new(),
            events: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// A fatal result: Crossplane applies nothing and writes no status. It is for requests that the
    /// function cannot answer in another way.
    pub fn refused(reason: &'static str, message: String) -> Self {
        Self {
            ttl: REFUSED_TTL,
            requirements: Vec::new(),
            desired: None,
            conditions: vec![Condition::is_false(
                CONFIG_RESOLVED,
                reason,
                message.as_str(),
            )],
            events: vec![Event {
                severity: Severity::Fatal,
                reason,
                message,
            }],
            violations: Vec::new(),
        }
    }
}

/// Converts a status into the form that Crossplane expects.
///
/// # Errors
///
/// The status cannot be written as a JSON object.
pub fn fields<T: Serialize>(status: &T) -> Result<Map<String, Value>, Refusal> {
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Refusal::unwritable("the status", &"it is no object")),
        Err(problem) => Err(Refusal::unwritable("the status", &problem)),
    }
}
