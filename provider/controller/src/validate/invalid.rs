//! The error of a spec.

/// Why a spec cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.forProvider.{field}: {problem}")]
pub struct Invalid {
    /// The field, below `spec.forProvider`.
    pub field: String,
    /// The problem, and how to correct it.
    pub problem: String,
}

/// The error of a field below `spec.forProvider`.
pub(super) fn invalid(field: &str, problem: impl Into<String>) -> Invalid {
    Invalid {
        field: field.to_owned(),
        problem: problem.into(),
    }
}
