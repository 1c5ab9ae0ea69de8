//! A change of a resource, before it is written as an event.

/// A change of a resource that users are told about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// Whether a person should look at it.
    pub is_warning: bool,
    /// The event's reason, a constant word in `PascalCase`.
    pub reason: &'static str,
    /// The event's message: the change, its subject and its cause.
    pub message: String,
}

impl Happened {
    /// An event of type `Normal`.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            is_warning: false,
            reason,
            message: message.into(),
        }
    }

    /// An event of type `Warning`.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            is_warning: true,
            reason,
            message: message.into(),
        }
    }

    /// Kubernetes' name of the event's type.
    pub fn type_(&self) -> &'static str {
        if self.is_warning { "Warning" } else { "Normal" }
    }
}
