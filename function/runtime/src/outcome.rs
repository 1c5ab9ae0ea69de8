//! Reasons why the function cannot compute desired state.

use std::fmt;

use crate::validation::{Violation, Violations};

/// An error that explains why a composite cannot be resolved. The module that finds the error
/// defines its type.
pub trait Problem: fmt::Display {
    /// The reason of the condition `ConfigResolved`.
    fn reason(&self) -> &'static str;

    /// Whether the function cannot know it yet, because Crossplane has not fetched a resource.
    fn is_pending(&self) -> bool {
        false
    }

    /// The path of the field that a person has to change, with which the message begins; none if it is not
    /// about one field.
    fn field(&self) -> Option<&'static str> {
        None
    }
}

/// The function lacks information, so all observed resources stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    reason: &'static str,
    message: String,
    is_pending: bool,
}

/// A person has to change the claim or the policy. All observed resources of a workspace stay as
/// they are, and its limits still hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    reason: &'static str,
    message: String,
    violations: Vec<Violation>,
}

/// Why the function cannot compute desired state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// The function lacks information.
    Held(Hold),
    /// A person has to change the claim or the policy.
    Refused(Refusal),
}

impl Hold {
    /// The reason of the condition `ConfigResolved`.
    pub fn reason(&self) -> &'static str {
        self.reason
    }
}

impl Refusal {
    /// The claim's parameters are invalid or not allowed.
    pub fn parameters(violations: impl Into<Violations>) -> Self {
        let violations = violations.into();
        Self {
            reason: "ParametersInvalid",
            message: violations.to_string(),
            violations: violations.into(),
        }
    }

    /// The input in the Composition is not a valid policy.
    pub fn policy(violations: &Violations) -> Self {
        Self {
            reason: "PolicyInvalid",
            message: format!("the Composition's policy is not usable: {violations}"),
            violations: Vec::new(),
        }
    }

    /// The function cannot write a value as JSON or YAML. This is a bug of the function.
    pub fn unwritable(what: &str, problem: &impl fmt::Display) -> Self {
        Self {
            reason: "Unwritable",
            message: format!(
                "cannot write {what}: {problem}; please report this as a bug of \
                 function-gpu-workspace"
            ),
            violations: Vec::new(),
        }
    }

    /// The reason of the condition `ConfigResolved`.
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// The fields of the claim that are wrong; empty if the claim is refused for another reason.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
}

impl Unresolved {
    /// The reason of the condition `ConfigResolved`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Held(why) => why.reason,
            Self::Refused(why) => why.reason,
        }
    }

    /// Whether Crossplane has not fetched a resource that the function needs.
    pub fn is_pending(&self) -> bool {
        match self {
            Self::Held(why) => why.is_pending,
            Self::Refused(_) => false,
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(why) => why.fmt(f),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

impl<P: Problem> From<P> for Hold {
    fn from(problem: P) -> Self {
        Self {
            reason: problem.reason(),
            message: problem.to_string(),
            is_pending: problem.is_pending(),
        }
    }
}

impl<P: Problem> From<P> for Refusal {
    fn from(problem: P) -> Self {
        let message = problem.to_string();
        let violation = problem.field().map(|field| {
            let of_field = message.strip_prefix(field);
            let said = of_field.and_then(|said| said.strip_prefix(": "));
            Violation::new(field, said.unwrap_or(&message))
        });
        Self {
            reason: problem.reason(),
            violations: violation.into_iter().collect(),
            message,
        }
    }
}

impl From<Hold> for Unresolved {
    fn from(hold: Hold) -> Self {
        Self::Held(hold)
    }
}

impl From<Refusal> for Unresolved {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
