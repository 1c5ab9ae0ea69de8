//! Waiting for a workspace, with its progress.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use serde_json::Value;

use crate::commands::call::Call;
use crate::host::{Change, Refused};
use crate::object::{self, Kind, Reference};
use crate::problem::{Code, Problem};
use crate::text::Line;
use crate::workspace::Workspace;

/// How often the elapsed time is shown.
const TICK: Duration = Duration::from_secs(1);
/// The longest watch. The API server ends idle connections later than that.
const WATCH: Duration = Duration::from_mins(1);
/// How long a failure must last. A reconcile that fails once is often repeated with success.
const LASTING: i64 = 20;
/// How long the API server may be away during a wait.
const AWAY: i64 = 30;

/// What a state of the object means for the wait.
pub(super) enum Step {
    /// It is what was waited for.
    Done,
    /// It goes on. The line is shown with the elapsed seconds.
    Going(Box<dyn Fn(i64) -> Line + Send>),
    /// It is not going to be what was waited for.
    Ends(Problem),
    /// It fails now, and may recover.
    Fails(Problem),
}

/// Waits until the object is as `judge` wants it. `None` is an object that does not exist, also as
/// what is known of it first.
pub(super) async fn wait(
    call: Call<'_>,
    target: &Reference,
    first: Option<Value>,
    longest: Duration,
    judge: impl Fn(Option<Workspace<'_>>) -> Step,
) -> Result<Option<Value>, Problem> {
    let clock = call.host.clock;
    let began = clock.now();
    let elapsed = || clock.now().duration_since(began).as_secs().max(0);
    let longest = i64::try_from(longest.as_secs()).unwrap_or(i64::MAX);
    let mut current = first;
    let (mut failing, mut away): (Option<i64>, Option<i64>) = (None, None);
    loop {
        let seen = current.as_ref();
        let line: Box<dyn Fn(i64) -> Line + Send> = match judge(seen.map(Workspace::new)) {
            Step::Done => {
                call.host.terminal.settled();
                return Ok(current);
            }
            Step::Ends(problem) => {
                call.host.terminal.settled();
                return Err(problem);
            }
            Step::Fails(problem) => {
                let since = *failing.get_or_insert_with(elapsed);
                if elapsed() - since >= LASTING {
                    call.host.terminal.settled();
                    return Err(problem);
                }
                Box::new(move |_| Line::from(format!("{}; it is tried again", problem.message)))
            }
            Step::Going(line) => {
                failing = None;
                line
            }
        };
        let version = seen.map(object::version).unwrap_or_default().to_owned();
        let is_failing = failing.is_some();
        let mut change = pin!(call.host.api.changed(target, &version, WATCH));
        let changed = loop {
            call.host.terminal.progress(&line(elapsed()));
            if elapsed() >= longest {
                call.host.terminal.settled();
                return Err(timed_out(target, longest));
            }
            match select(change.as_mut(), pin!(clock.sleep(TICK))).await {
                Either::Left((changed, _)) => break changed,
                Either::Right(_) if is_failing => break Ok(Change::None),
                Either::Right(_) => {}
            }
        };
        match changed {
            Ok(Change::Now(object)) => current = Some(*object),
            Ok(Change::Gone) => current = None,
            Ok(Change::None) => {}
            Err(refused) if is_passing(&refused) => {
                let since = *away.get_or_insert_with(elapsed);
                if elapsed() - since >= AWAY {
                    call.host.terminal.settled();
                    return Err(refused.problem(target));
                }
                clock.sleep(TICK).await;
                continue;
            }
            Err(refused) => {
                call.host.terminal.settled();
                return Err(refused.problem(target));
            }
        }
        away = None;
    }
}

/// Whether the API server may answer soon: it is away, or overloaded.
fn is_passing(refused: &Refused) -> bool {
    refused
        .status
        .is_none_or(|status| status == 429 || status >= 500)
}

fn timed_out(target: &Reference, seconds: i64) -> Problem {
    let message = format!(
        "it did not get there within {}; it goes on",
        crate::table::span(seconds)
    );
    let Reference { kind, name, .. } = target;
    let next = match kind {
        Kind::Claim => format!("devctl why {name}"),
        _ => format!(
            "kubectl describe {} {name} --namespace {}",
            kind.plural(),
            target.namespace
        ),
    };
    Problem::new(Code::TimedOut, "TimedOut", message)
        .of(target.to_string())
        .next(next)
}
