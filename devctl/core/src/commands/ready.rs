//! Waiting until a workspace is ready.

use serde_json::Value;

use crate::commands::call::Call;
use crate::commands::waiting::{self, Step};
use crate::object::Reference;
use crate::problem::{Code, Problem};
use crate::progress::{Outcome, outcome};
use crate::text::{Line, Style};

/// Waits until a workspace is ready.
pub(super) async fn until_ready(
    call: Call<'_>,
    target: &Reference,
    stored: Value,
    longest: std::time::Duration,
) -> Result<Value, Problem> {
    let name = target.name.clone();
    call.host.terminal.stays(&Line::from(format!(
        "{target} goes on without devctl: devctl show {name}, or devctl delete {name}"
    )));
    let ready = waiting::wait(call, target, Some(stored), longest, |workspace| {
        let Some(workspace) = workspace else {
            return Step::Ends(gone(target));
        };
        match outcome(workspace) {
            Outcome::Ready => Step::Done,
            Outcome::OnItsWay(progress) => {
                let name = workspace.name().to_owned();
                Step::Going(Box::new(move |seconds| {
                    let line = Line::new().with(Style::Bold, format!("{name}  "));
                    progress
                        .line(seconds)
                        .spans()
                        .iter()
                        .fold(line, |line, span| line.with(span.style(), span.text()))
                }))
            }
            Outcome::Ends(problem) => Step::Ends(problem),
            Outcome::Fails(problem) => Step::Fails(problem),
        }
    });
    ready.await?.ok_or_else(|| gone(target))
}

fn gone(target: &Reference) -> Problem {
    Problem::new(Code::NotFound, "Deleted", "somebody deleted it meanwhile").of(target.to_string())
}
