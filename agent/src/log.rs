//! Messages on standard error. A problem is written once, not at every reading.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The problems that were written and still exist.
#[derive(Debug, Default)]
pub struct Log {
    said: Mutex<BTreeMap<&'static str, String>>,
}

/// A problem: its kind, which stays the same while only details change, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of the problem.
    pub kind: String,
    /// The text for people. It holds no secret.
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
    /// Writes a problem, unless a problem of the same kind was already written. Returns whether it
    /// was written.
    pub fn problem(&self, what: &'static str, kind: &str, text: &str) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(what).is_some_and(|before| before == kind) {
            return false;
        }
        said.insert(what, kind.to_owned());
        eprintln!("{what}: {text}");
        true
    }

    /// Writes that `what` works again, if a problem was written before. Returns whether it was
    /// written.
    pub fn fine(&self, what: &'static str) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = said.remove(what).is_some();
        if is_over {
            eprintln!("{what}: works again");
        }
        is_over
    }

    /// Writes an event.
    pub fn event(&self, text: &str) {
        eprintln!("{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_logged_once() {
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
