//! What the agent says on standard error: problems once, not at every look.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The problems that were said and are not over.
#[derive(Debug, Default)]
pub struct Log {
    said: Mutex<BTreeMap<&'static str, String>>,
}

/// What went wrong: its kind, which stays the same while only details change, and the
/// whole of it for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind.
    pub kind: String,
    /// For people. No secret is in it.
    pub text: String,
}

impl Problem {
    /// A problem of a kind.
    pub fn new(kind: impl Into<String>, text: impl Into<String>) -> Self {
        let (kind, text) = (kind.into(), text.into());
        Self { kind, text }
    }
}

impl Log {
    /// Says that something does not work, unless it was said when it began. Answers
    /// whether it was said.
    pub fn problem(&self, what: &'static str, kind: &str, text: &str) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(what).is_some_and(|before| before == kind) {
            return false;
        }
        said.insert(what, kind.to_owned());
        eprintln!("{what}: {text}");
        true
    }

    /// Says that it works again, if it did not. Answers whether it was said.
    pub fn fine(&self, what: &'static str) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = said.remove(what).is_some();
        if is_over {
            eprintln!("{what}: works again");
        }
        is_over
    }

    /// Says what happens once.
    pub fn event(&self, text: &str) {
        eprintln!("{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_not_flooded() {
        let log = Log::default();
        assert!(log.problem("report", "AccessDenied", "one"));
        assert!(!log.problem("report", "AccessDenied", "another id"));
        assert!(log.problem("report", "Throttling", "one"));
        assert!(log.problem("gpu", "AccessDenied", "one"));
        assert!(log.fine("report"));
        assert!(!log.fine("report"));
        assert!(log.problem("report", "Throttling", "again"));
    }
}
