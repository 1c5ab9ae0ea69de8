//! Why something is not ready.

/// Why something is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// One word for machines.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl Cause {
    /// A cause.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
        }
    }
}
