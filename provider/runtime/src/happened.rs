//! What happened to a resource, before it is an event.

/// Something that happened to a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// Whether a person should look.
    pub is_warning: bool,
    /// A constant word, in `PascalCase`.
    pub reason: &'static str,
    /// What happened, to what, and why.
    pub message: String,
}

impl Happened {
    /// As it should be.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            is_warning: false,
            reason,
            message: message.into(),
        }
    }

    /// Worth a look.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            is_warning: true,
            reason,
            message: message.into(),
        }
    }

    /// Kubernetes' type of the event.
    pub fn type_(&self) -> &'static str {
        if self.is_warning { "Warning" } else { "Normal" }
    }
}
