//! What went wrong, for people and for programs: the object, the field and the next step.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::text::{Line, Style};

/// The exit code of a command. docs/devctl.md lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Code {
    /// It failed; the reason is the workspace's.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The object does not exist.
    NotFound = 3,
    /// Rights, policy, quota or budget refuse it.
    Refused = 4,
    /// It exists, or changed meanwhile.
    Exists = 5,
    /// The time for it is over.
    TimedOut = 6,
    /// The workspace does not run.
    NotRunning = 7,
    /// The credentials are missing or no longer valid.
    NotLoggedIn = 8,
    /// The API server or the workspace does not answer.
    OutOfReach = 9,
}

/// Why a command ends without what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The exit code.
    pub code: Code,
    /// The reason in one word, for programs.
    pub reason: String,
    /// What went wrong, for people.
    pub message: String,
    /// The object, for example `team-vision/my-dev`.
    pub object: Option<Box<str>>,
    /// The field of the object, or the option of the command line.
    pub field: Option<Box<str>>,
    /// The next command, or who can help.
    pub next: Option<Box<str>>,
}

impl Problem {
    /// A problem about no object.
    pub fn new(code: Code, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            object: None,
            field: None,
            next: None,
        }
    }

    /// A command line that devctl does not take.
    pub fn usage(field: &str, message: impl Into<String>) -> Self {
        Self::new(Code::Usage, "Usage", message).field(field)
    }

    /// The problem, of this object.
    #[must_use]
    pub fn of(mut self, object: impl Into<Box<str>>) -> Self {
        self.object = Some(object.into());
        self
    }

    /// The problem, about this field.
    #[must_use]
    pub fn field(mut self, field: impl Into<Box<str>>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// The problem, with the next step.
    #[must_use]
    pub fn next(mut self, next: impl Into<Box<str>>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// The exit code as a number.
    pub fn exit(&self) -> u8 {
        self.code as u8
    }

    /// The lines for people.
    pub fn lines(&self) -> Vec<Line> {
        let object = self.object.iter().map(|object| format!("{object}: "));
        let about: String = object.collect();
        let first = Line::new()
            .with(Style::Bad, "error: ")
            .plain(about + &self.message);
        let rest = [("field", &self.field), ("next", &self.next)];
        let rest = rest.into_iter().filter_map(|(label, text)| {
            let text = text.as_ref()?;
            let label = format!("  {label:<5}  ");
            Some(Line::new().with(Style::Dim, label).plain(text))
        });
        std::iter::once(first).chain(rest).collect()
    }

    /// The object for programs, which `-o json` prints.
    pub fn json(&self) -> Value {
        json!({"error": {
            "code": self.exit(),
            "reason": self.reason,
            "message": self.message,
            "object": self.object,
            "field": self.field,
            "next": self.next,
        }})
    }
}

impl From<std::io::Error> for Problem {
    /// An error of standard output: its reader has ended, or its disk is full.
    fn from(error: std::io::Error) -> Self {
        Self::new(Code::Failed, "Output", format!("standard output: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_object_the_field_and_the_next_step() {
        let problem = Problem::new(Code::NotRunning, "Stopped", "it is Stopped")
            .of("team-vision/my-dev")
            .field("spec.parameters.lifecycle.state")
            .next("devctl start my-dev");
        let lines: Vec<_> = problem.lines().iter().map(Line::text).collect();
        assert_eq!(
            lines,
            [
                "error: team-vision/my-dev: it is Stopped",
                "  field  spec.parameters.lifecycle.state",
                "  next   devctl start my-dev",
            ]
        );
        assert_eq!(problem.json()["error"]["code"], 7);
    }
}
