//! Why there is no desired state.

use std::fmt;

use crate::validation::Violations;

/// Why a composite is not resolved: an error type of the module that finds the problem.
pub trait Problem: fmt::Display {
    /// The condition's reason.
    fn reason(&self) -> &'static str;
}

/// The function does not know enough: what exists stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    reason: &'static str,
    message: String,
}

/// A person has to change something. The result is fatal: Crossplane applies nothing of
/// the pipeline, so nothing is dropped either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    reason: &'static str,
    message: String,
}

/// Why there is no desired state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// The function does not know enough.
    Held(Hold),
    /// A person has to change something.
    Refused(Refusal),
}

impl Hold {
    /// The condition's reason.
    pub fn reason(&self) -> &'static str {
        self.reason
    }
}

impl Refusal {
    /// The claim asks for something that is malformed or not allowed.
    pub fn parameters(violations: impl Into<Violations>) -> Self {
        Self {
            reason: "ParametersInvalid",
            message: violations.into().to_string(),
        }
    }

    /// The Composition's input is no usable policy.
    pub fn policy(violations: &Violations) -> Self {
        Self {
            reason: "PolicyInvalid",
            message: format!("the Composition's policy is not usable: {violations}"),
        }
    }

    /// A value could not be written as JSON or YAML.
    pub fn unwritable(what: &str, problem: &impl fmt::Display) -> Self {
        Self {
            reason: "Unwritable",
            message: format!(
                "cannot write {what}: {problem}; please report this as a bug of \
                 function-gpu-workspace"
            ),
        }
    }

    /// The condition's reason.
    pub fn reason(&self) -> &'static str {
        self.reason
    }
}

impl Unresolved {
    /// The condition's reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Held(why) => why.reason,
            Self::Refused(why) => why.reason,
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
        }
    }
}

impl<P: Problem> From<P> for Refusal {
    fn from(problem: P) -> Self {
        Self {
            reason: problem.reason(),
            message: problem.to_string(),
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
