//! `stop`, `start` and `extend`. They write annotations, which Argo CD leaves alone.

use api::lifecycle::{EXTEND_UNTIL, StopReason};
use api::workspace::Phase;
use jiff::SignedDuration;
use serde_json::Value;

use crate::commands::call::Call;
use crate::commands::ready;
use crate::commands::waiting::{self, Step};
use crate::grammar::{Extend, Waiting};
use crate::host::Effect;
use crate::object::{Reference, text};
use crate::problem::{Code, Problem};
use crate::runs::{self, Needed, NotExtended, StoppedInGit};
use crate::table::span;
use crate::text::{Line, Style};
use crate::workspace::Workspace;

/// How long an extension may wait for the function's answer.
const ANSWER: std::time::Duration = std::time::Duration::from_mins(2);

/// Stops a workspace.
pub(super) async fn stop(call: Call<'_>, given: &Waiting) -> Result<u8, Problem> {
    let target = call.workspace(&given.name);
    let claim = call.read(&target).await?;
    let workspace = Workspace::new(&claim);
    let Needed::Patch(patch) = runs::stop(&claim, call.host.clock.now()) else {
        let name = given.name.to_string();
        return say(call, &name, "is stopped already", Style::Plain);
    };
    let stored = patched(call, &target, &patch).await?;
    if given.no_wait {
        return say(
            call,
            &given.name.to_string(),
            "is told to stop",
            Style::Plain,
        );
    }
    let line = format!("{target} stops without devctl: devctl show {}", given.name);
    call.host.terminal.stays(&line.into());
    waiting::wait(call, &target, Some(stored), given.timeout, |workspace| {
        let Some(workspace) = workspace.filter(|one| !is_stopped(*one)) else {
            return Step::Done;
        };
        let phase = workspace.phase_text().to_owned();
        let name = workspace.name().to_owned();
        let message = workspace.message().unwrap_or_default().to_owned();
        Step::Going(Box::new(move |seconds| {
            let line = Line::new().with(Style::Bold, format!("{name}  "));
            line.plain(format!("{phase}  "))
                .with(Style::Dim, span(seconds))
                .plain(format!("  {message}"))
        }))
    })
    .await?;
    let kept = if workspace.has_home() {
        "; its home stays"
    } else {
        "; it had no home"
    };
    say(
        call,
        &given.name.to_string(),
        &format!("is stopped{kept}"),
        Style::Plain,
    )
}

/// Starts a workspace that stopped.
pub(super) async fn start(call: Call<'_>, given: &Waiting) -> Result<u8, Problem> {
    let target = call.workspace(&given.name);
    let claim = call.read(&target).await?;
    let stored = started(call, &target, claim).await?;
    if given.no_wait {
        return say(
            call,
            &given.name.to_string(),
            "is told to start",
            Style::Plain,
        );
    }
    ready::until_ready(call, &target, stored, given.timeout).await?;
    say(call, &given.name.to_string(), "is Ready", Style::Good)
}

/// Tells a workspace to start; one that runs is left as it is.
pub(super) async fn started(
    call: Call<'_>,
    target: &Reference,
    claim: Value,
) -> Result<Value, Problem> {
    match runs::start(&claim, call.host.clock.now()) {
        Ok(Needed::Nothing) => Ok(claim),
        Ok(Needed::Patch(patch)) => patched(call, target, &patch).await,
        Err(StoppedInGit) => {
            let message =
                "its claim in git says Stopped, and Argo CD would undo a change of it here";
            Err(Problem::new(Code::Refused, "FromGit", message)
                .of(target.to_string())
                .field("spec.parameters.lifecycle.state")
                .next("commit state: Running to the claim in git"))
        }
    }
}

/// Lets a workspace run longer.
pub(super) async fn extend(call: Call<'_>, given: &Extend) -> Result<u8, Problem> {
    let target = call.workspace(&given.name);
    let claim = call.read(&target).await?;
    let workspace = Workspace::new(&claim);
    let name = given.name.as_str();
    let by = SignedDuration::try_from(given.by).unwrap_or(SignedDuration::MAX);
    let extension = match runs::extend(&claim, by, call.host.clock.now()) {
        Ok(extension) => extension,
        Err(NotExtended::NotRunning) => {
            return Err(
                Problem::new(Code::NotRunning, workspace.phase_text(), "it does not run")
                    .of(target.to_string())
                    .next(format!("devctl start {name}")),
            );
        }
        Err(NotExtended::Unlimited) => {
            return say(call, name, "has no longest run to extend", Style::Plain);
        }
        Err(NotExtended::TooFar) => return Err(Problem::usage("BY", "that is too far away")),
    };
    if workspace.stops_because() == Some(StopReason::Idle) {
        let line =
            "it stops because it is idle: using it keeps it; extend is about its longest run";
        call.host.terminal.note(&line.into());
    }
    let asked = extension.until;
    let stored = patched(call, &target, &extension.patch).await?;
    let done = waiting::wait(call, &target, Some(stored), ANSWER, |workspace| {
        let answered = workspace
            .and_then(|one| one.time("/status/lifecycle/extension/askedUntil"))
            .is_some_and(|at| at == asked);
        if answered || workspace.is_none() {
            return Step::Done;
        }
        Step::Going(Box::new(|seconds| {
            Line::from("waiting for the platform  ").with(Style::Dim, span(seconds))
        }))
    });
    let done = done.await?;
    let answer = done.as_ref().map(Workspace::new);
    let granted = answer.and_then(|one| one.time("/status/lifecycle/extension/grantedUntil"));
    let message = done
        .as_ref()
        .and_then(|one| text(one, "/status/lifecycle/extension/message"));
    match granted {
        None => Err(Problem::new(
            Code::Refused,
            "NotExtended",
            message.unwrap_or("the platform grants no extension"),
        )
        .of(target.to_string())
        .field(format!("metadata.annotations[{EXTEND_UNTIL}]"))),
        Some(until) => {
            let less = message
                .filter(|_| until < asked)
                .map(|why| format!(", not until {asked:.0}: {why}"));
            say(
                call,
                name,
                &format!("may run until {until:.0}{}", less.unwrap_or_default()),
                Style::Plain,
            )
        }
    }
}

/// Whether the workspace does not run, and its machines are gone.
fn is_stopped(workspace: Workspace<'_>) -> bool {
    matches!(workspace.phase(), Some(Phase::Stopped | Phase::Expired))
}

async fn patched(call: Call<'_>, target: &Reference, patch: &Value) -> Result<Value, Problem> {
    let patched = call.host.api.patch(target, patch, Effect::Stored).await;
    patched.map_err(|refused| refused.problem(target))
}

fn say(call: Call<'_>, name: &str, what: &str, style: Style) -> Result<u8, Problem> {
    let line = Line::new()
        .with(Style::Bold, name)
        .plain(" ")
        .with(style, what);
    call.host.terminal.data(&line)?;
    Ok(0)
}
