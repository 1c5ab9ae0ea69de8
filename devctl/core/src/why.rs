//! `why`: the cause of a workspace's state, who can change it, and the next step.

use api::condition::{
    ACCESS_READY, ADMITTED, COMPUTE_READY, HOME_READY, INTERRUPTING, SOFTWARE_READY,
    STOP_SCHEDULED, SYNCED, WITHIN_BUDGET,
};
use api::lifecycle::StopReason;
use api::workspace::Phase;
use serde_json::{Value, json};

use crate::text::{Line, Style};
use crate::workspace::{Condition, Workspace};

pub mod rules;

use rules::{Rule, Who};

/// The conditions in the order in which one causes the next.
const ORDER: [&str; 9] = [
    SYNCED,
    "ConfigResolved",
    WITHIN_BUDGET,
    ACCESS_READY,
    ADMITTED,
    COMPUTE_READY,
    HOME_READY,
    SOFTWARE_READY,
    INTERRUPTING,
];

/// One cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The condition that has it; empty for a cause without one.
    pub condition: String,
    /// The reason in one word.
    pub reason: String,
    /// What is the case, in the platform's words.
    pub message: String,
    /// Who can change it.
    pub who: Who,
    /// What to do, one step on each line.
    pub next: Vec<String>,
    /// The rule that names actor and steps; none for a reason that this devctl does not know.
    pub rule: Option<&'static Rule>,
}

impl Cause {
    /// Whether the platform refuses the claim as it is.
    pub fn is_refusal(&self) -> bool {
        self.rule.is_some_and(|rule| rule.is_refusal)
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The state in one sentence.
    pub state: String,
    /// The causes, the first one first.
    pub causes: Vec<Cause>,
    /// What is not as the claim asks, although the workspace works.
    pub remarks: Vec<String>,
}

/// Why the workspace is as it is. `events` are those of the claim.
pub fn answer(workspace: Workspace<'_>, events: &[Value]) -> Answer {
    let mut causes: Vec<Cause> = first_cause(workspace).into_iter().collect();
    if causes.is_empty() && workspace.phase().is_none() {
        causes.push(not_rendered(workspace, events));
    }
    Answer {
        state: state(workspace),
        causes,
        remarks: remarks(workspace),
    }
}

/// The condition that keeps the workspace from being ready, with who can change it.
pub fn first_cause(workspace: Workspace<'_>) -> Option<Cause> {
    if workspace.is_deleted() {
        return Some(cause(
            workspace,
            "Deletion",
            "Deleting",
            "it is being deleted; its machine ends first",
        ));
    }
    if let Some(stopped) = stopped(workspace) {
        return Some(stopped);
    }
    if workspace.is_ready() {
        let warned = [INTERRUPTING, STOP_SCHEDULED].into_iter();
        let warned = warned.filter_map(|name| workspace.condition(name));
        return warned
            .filter(Condition::is_true)
            .map(|one| of(workspace, one))
            .next();
    }
    let conditions = ORDER.iter().filter_map(|name| workspace.condition(name));
    // Interrupting says something when it is true, the others when they are not.
    let open = conditions.filter(|one| one.is_true() == (one.name == INTERRUPTING));
    open.map(|one| of(workspace, one)).next()
}

impl Answer {
    /// The lines for people.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = vec![Line::new().with(Style::Bold, &self.state)];
        for cause in &self.causes {
            lines.push(Line::new());
            let label = |label: &str| Line::new().with(Style::Dim, format!("{label:<9}"));
            lines.push(label("cause").plain(&cause.message));
            let of = match cause.condition.as_str() {
                "" => cause.reason.clone(),
                condition => format!("{condition}, {}", cause.reason),
            };
            lines.push(label("reason").plain(of));
            lines.push(label("who").plain(cause.who.words()));
            for (number, step) in cause.next.iter().enumerate() {
                lines.push(label(if number == 0 { "next" } else { "" }).plain(step));
            }
        }
        for remark in &self.remarks {
            lines.push(Line::new());
            lines.push(
                Line::new()
                    .with(Style::Dim, format!("{:<9}", "note"))
                    .plain(remark),
            );
        }
        lines
    }

    /// The value for programs.
    pub fn json(&self) -> Value {
        let causes = self.causes.iter().map(|cause| {
            json!({
                "condition": cause.condition,
                "reason": cause.reason,
                "message": cause.message,
                "who": cause.who.word(),
                "next": cause.next,
            })
        });
        json!({
            "state": self.state,
            "causes": causes.collect::<Vec<_>>(),
            "remarks": self.remarks,
        })
    }
}

fn state(workspace: Workspace<'_>) -> String {
    let name = workspace.name();
    match workspace.phase() {
        _ if workspace.is_deleted() => format!("{name} is being deleted"),
        None => format!("{name} is new: the platform has not looked at it yet"),
        Some(Phase::Ready) => match workspace.stops_at() {
            Some(at) => {
                let unless = match workspace.stops_because() {
                    Some(StopReason::Idle) => " unless it is used",
                    Some(StopReason::MaxLifetime) => " unless it is extended",
                    _ => "",
                };
                format!("{name} is Ready, and stops at {at:.0}{unless}")
            }
            None => format!("{name} is Ready"),
        },
        Some(_) => format!("{name} is {}", workspace.phase_text()),
    }
}

/// The cause of a workspace that stopped.
fn stopped(workspace: Workspace<'_>) -> Option<Cause> {
    if !matches!(
        workspace.phase()?,
        Phase::Stopped | Phase::Expired | Phase::Stopping
    ) {
        return None;
    }
    let because: Option<StopReason> = workspace
        .typed("/status/lifecycle/stoppedBecause")
        .or_else(|| workspace.stops_because());
    let reason = match because? {
        StopReason::State => "State",
        StopReason::Idle => "Idle",
        StopReason::MaxLifetime => "MaxLifetime",
        StopReason::Requested => "Requested",
    };
    let message = workspace.message().unwrap_or("it stopped");
    Some(cause(workspace, "Stop", reason, message))
}

fn of(workspace: Workspace<'_>, condition: Condition<'_>) -> Cause {
    let message = match condition.message {
        "" => workspace
            .message()
            .unwrap_or("the platform gives no message"),
        message => message,
    };
    cause(workspace, condition.name, condition.reason, message)
}

fn cause(workspace: Workspace<'_>, condition: &str, reason: &str, message: &str) -> Cause {
    let rule = rules::rule(condition, reason);
    let who = rule.map_or(Who::Platform, |rule| rule.who);
    let mut next: Vec<String> = rule
        .map(|rule| {
            rule.next
                .iter()
                .map(|step| filled(step, workspace))
                .collect()
        })
        .unwrap_or_default();
    if who == Who::Platform {
        next.push(format!(
            "send this to the platform team: {}: {condition}={reason}: {message}",
            workspace.reference()
        ));
    }
    Cause {
        condition: condition.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        who,
        next,
        rule,
    }
}

/// A step with the workspace's name, the place where its claim is changed, and what keeps it running.
fn filled(step: &str, workspace: Workspace<'_>) -> String {
    let (name, namespace) = (workspace.name(), workspace.namespace());
    let edit = if workspace.is_from_git() {
        format!("change the claim of {name} in git")
    } else {
        format!("kubectl edit gpuws {name} --namespace {namespace}")
    };
    let keep = match workspace.stops_because() {
        Some(StopReason::Idle) => "use it: devctl ssh {name}",
        Some(StopReason::MaxLifetime) => "devctl extend {name} 2h",
        Some(StopReason::State | StopReason::Requested) | None => "devctl show {name}",
    };
    step.replace("{edit}", &edit)
        .replace("{keep}", keep)
        .replace("{name}", name)
        .replace("{namespace}", namespace)
}

/// The cause of a claim without a status.
fn not_rendered(workspace: Workspace<'_>, events: &[Value]) -> Cause {
    let warning = events
        .iter()
        .rev()
        .find(|event| crate::object::text(event, "/type") == Some("Warning"));
    let message = warning.and_then(|event| crate::object::text(event, "/message"));
    match message {
        Some(message) => cause(workspace, "Event", "Warning", message),
        None => cause(
            workspace,
            "Rendering",
            "NotRendered",
            "Crossplane has not answered this claim",
        ),
    }
}

/// What is not as the claim asks, although nothing fails.
fn remarks(workspace: Workspace<'_>) -> Vec<String> {
    let told = ["ConfigResolved", ACCESS_READY].into_iter();
    let told = told.filter_map(|name| workspace.condition(name));
    let told = told.filter(|one| one.is_true() && !one.message.is_empty());
    let mut remarks: Vec<String> = told.map(|one| one.message.to_owned()).collect();
    let text = |pointer: &str| crate::object::text(workspace.claim(), pointer);
    if let Some(why) = text("/status/choice/why") {
        let asked = text("/status/choice/asked").unwrap_or("the machine");
        remarks.push(format!("{asked}: {why}"));
    }
    let asked = text("/spec/parameters/instanceType").filter(|_| {
        text("/spec/parameters/flavor").is_none() && text("/status/choice/asked").is_none()
    });
    if let (Some(asked), Some(is)) = (asked, workspace.status("instanceType"))
        && asked != is
    {
        remarks.push(format!(
            "it has {is}, not {asked}: EC2 had none, or the machine is older than the claim's wish"
        ));
    }
    if let Some(message) = text("/status/lifecycle/extension/message") {
        remarks.push(message.to_owned());
    }
    if let Some(idle) = text("/status/activity/message") {
        remarks.push(idle.to_owned());
    }
    remarks
}

#[cfg(test)]
mod tests;
