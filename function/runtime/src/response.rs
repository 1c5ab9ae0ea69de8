//! What the function answers.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::desired::Desired;
use crate::outcome::Refusal;
use crate::requirement::Requirement;

/// The condition of every composite: its configuration is complete and allowed.
pub const CONFIG_RESOLVED: &str = "ConfigResolved";
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
    pub is_true: bool,
    /// One word for machines.
    pub reason: String,
    /// For people; empty for none.
    pub message: String,
}

impl Condition {
    /// A condition that is `True`.
    pub fn is_true(type_: &'static str, reason: impl Into<String>) -> Self {
        Self {
            type_,
            is_true: true,
            reason: reason.into(),
            message: String::new(),
        }
    }

    /// A condition that is `True`, and what somebody should know all the same.
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

    /// A condition that is `False`, and why.
    pub fn is_false(
        type_: &'static str,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_,
            is_true: false,
            reason: reason.into(),
            message: message.into(),
        }
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
    /// A decision with nothing to ask for and nothing to tell.
    pub fn desiring(ttl: Duration, desired: Desired) -> Self {
        Self {
            ttl,
            requirements: Vec::new(),
            desired: Some(desired),
            conditions: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Nothing is applied until a person changes something; it is looked at again
    /// after `least` at the soonest. `others` are the conditions besides
    /// `ConfigResolved`: Crossplane sets those that a fatal response leaves out to
    /// Unknown, and what they are about may well be there.
    pub fn refused(
        reason: &'static str,
        message: String,
        least: Duration,
        others: impl IntoIterator<Item = Condition>,
    ) -> Self {
        let config = Condition::is_false(CONFIG_RESOLVED, reason, message.as_str());
        Self {
            ttl: REFUSED_TTL.max(least),
            requirements: Vec::new(),
            desired: None,
            conditions: [config].into_iter().chain(others).collect(),
            events: vec![Event {
                severity: Severity::Fatal,
                reason,
                message,
            }],
        }
    }
}

/// A status as Crossplane takes it.
///
/// # Errors
///
/// It cannot be written as a JSON object.
pub fn fields<T: Serialize>(status: &T) -> Result<Map<String, Value>, Refusal> {
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Refusal::unwritable("the status", &"it is no object")),
        Err(problem) => Err(Refusal::unwritable("the status", &problem)),
    }
}
