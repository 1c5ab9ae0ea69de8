//! How far a workspace is on its way to Ready.

use api::condition::{
    ACCESS_READY, ADMITTED, COMPUTE_READY, HOME_READY, SOFTWARE_READY, WITHIN_BUDGET,
};
use api::workspace::Phase;

use crate::problem::{Code, Problem};
use crate::table::span;
use crate::text::{Line, Style};
use crate::why::rules::Who;
use crate::why::{self, Cause};
use crate::workspace::Workspace;

/// A stage on the way to Ready, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Crossplane has not rendered the claim yet.
    Accepted,
    /// The owner's budget must have room for the run.
    Budget,
    /// Kueue must have quota for the pods.
    Queue,
    /// The machine or the pods start, and the home is attached.
    Machine,
    /// The software is installed.
    Software,
    /// The owner can log in.
    Ready,
}

impl Stage {
    const ALL: [Self; 6] = [
        Self::Accepted,
        Self::Budget,
        Self::Queue,
        Self::Machine,
        Self::Software,
        Self::Ready,
    ];

    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Budget => "budget",
            Self::Queue => "queue",
            Self::Machine => "machine",
            Self::Software => "software",
            Self::Ready => "ready",
        }
    }

    /// How long the stage usually lasts; none if that depends on other people. An instance of EC2 takes
    /// a minute or two to start (AWS, "Launch your instance"); images of the platform bring the
    /// software, and packages from an index take minutes.
    fn typical(self) -> Option<&'static str> {
        match self {
            Self::Accepted => Some("seconds"),
            Self::Machine => Some("1 to 2 min"),
            Self::Software => Some("1 to 5 min"),
            Self::Budget | Self::Queue | Self::Ready => None,
        }
    }
}

/// The stage of a workspace, and what the workspace waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The stage.
    pub stage: Stage,
    /// What it waits for.
    pub message: String,
}

/// How far the workspace is.
pub fn progress(workspace: Workspace<'_>) -> Progress {
    let stage = stage(workspace);
    let names: &[&str] = match stage {
        Stage::Accepted | Stage::Ready => &[],
        Stage::Budget => &[WITHIN_BUDGET],
        Stage::Queue => &[ADMITTED],
        Stage::Machine => &[COMPUTE_READY, HOME_READY],
        Stage::Software => &[SOFTWARE_READY, ACCESS_READY],
    };
    let conditions = names.iter().filter_map(|name| workspace.condition(name));
    let open = conditions.filter(|one| !one.is_true() && !one.message.is_empty());
    let message = open.map(|one| one.message).next();
    let message = message
        .or_else(|| workspace.message())
        .unwrap_or(match stage {
            Stage::Accepted => "waiting for Crossplane",
            _ => "",
        });
    let message = match queue_position(workspace) {
        Some(position) if stage == Stage::Queue => format!("place {position}: {message}"),
        _ => message.to_owned(),
    };
    Progress { stage, message }
}

impl Progress {
    /// One line: the stages with the current one, what it waits for, and for how long already.
    pub fn line(&self, seconds: i64) -> Line {
        let mut line = Line::new();
        for stage in Stage::ALL.into_iter().filter(|stage| *stage <= self.stage) {
            let style = if stage == self.stage {
                Style::Bold
            } else {
                Style::Dim
            };
            let mark = if stage == self.stage { "" } else { " > " };
            line = line.with(style, format!("{}{mark}", stage.word()));
        }
        let typical = self.stage.typical();
        let typical = typical.map(|typical| format!(", typically {typical}"));
        let elapsed = format!("  {}{}", span(seconds), typical.unwrap_or_default());
        line = line.with(Style::Dim, elapsed);
        if self.message.is_empty() {
            return line;
        }
        line.plain(format!("  {}", self.message))
    }
}

/// What a workspace came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is on its way.
    OnItsWay(Progress),
    /// Its owner can log in.
    Ready,
    /// It will not become ready as it is.
    Ends(Problem),
    /// It fails now. The platform tries again, so a failure counts only if it lasts.
    Fails(Problem),
}

/// What became of a workspace that should be ready.
pub fn outcome(workspace: Workspace<'_>) -> Outcome {
    if workspace.is_deleted() {
        let problem = Problem::new(Code::Exists, "Deleted", "it is being deleted");
        return Outcome::Ends(problem.of(workspace.reference().to_string()));
    }
    let phase = workspace.phase();
    if phase == Some(Phase::Ready) {
        return Outcome::Ready;
    }
    let has_failed = phase == Some(Phase::Failed);
    match why::first_cause(workspace) {
        Some(cause) if has_failed && cause.is_refusal() => {
            Outcome::Ends(refused(workspace, &cause))
        }
        // A claim may be older than its flavor or catalogue, so this must last, too.
        Some(cause) if has_failed || cause.is_refusal() => {
            Outcome::Fails(refused(workspace, &cause))
        }
        None if has_failed => {
            let message = workspace.message().unwrap_or("it failed");
            let problem = Problem::new(Code::Failed, "Failed", message);
            Outcome::Fails(
                problem
                    .of(workspace.reference().to_string())
                    .next(format!("devctl why {}", workspace.name())),
            )
        }
        _ => Outcome::OnItsWay(progress(workspace)),
    }
}

/// The problem that a cause is for the owner.
fn refused(workspace: Workspace<'_>, cause: &Cause) -> Problem {
    let code = if cause.is_refusal() {
        Code::Refused
    } else {
        Code::Failed
    };
    let problem = Problem::new(code, &cause.reason, &cause.message);
    let problem = problem.of(workspace.reference().to_string());
    // The platform begins a message about a field with its path.
    let field = cause.message.split_once(": ").map(|(field, _)| field);
    let problem = match field.filter(|field| field.starts_with("spec.")) {
        Some(field) => problem.field(field),
        None => problem,
    };
    let next = match cause.who {
        Who::You => cause.next.first().cloned(),
        _ => None,
    };
    problem.next(next.unwrap_or_else(|| format!("devctl why {}", workspace.name())))
}

fn stage(workspace: Workspace<'_>) -> Stage {
    let is_open = |name: &str| workspace.condition(name).is_some_and(|one| !one.is_true());
    let has_machine = workspace
        .condition(COMPUTE_READY)
        .is_some_and(|one| one.is_true());
    match workspace.phase() {
        None => Stage::Accepted,
        Some(Phase::Ready) => Stage::Ready,
        Some(_) if is_open(WITHIN_BUDGET) => Stage::Budget,
        Some(_) if is_open(ADMITTED) => Stage::Queue,
        Some(_) if !has_machine || is_open(HOME_READY) => Stage::Machine,
        Some(_) => Stage::Software,
    }
}

fn queue_position(workspace: Workspace<'_>) -> Option<i64> {
    workspace
        .claim()
        .pointer("/status/queue/position")?
        .as_i64()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(phase: &str, conditions: &Value) -> Value {
        json!({
            "metadata": {"name": "a", "namespace": "n"},
            "status": {"phase": phase, "conditions": conditions, "queue": {"position": 3}},
        })
    }

    fn condition(name: &str, reason: &str, message: &str) -> Value {
        json!({"type": name, "status": "False", "reason": reason, "message": message})
    }

    #[test]
    fn each_stage_shows_what_it_waits_for() {
        for (phase, conditions, stage, message) in [
            (
                "Provisioning",
                json!([condition("ComputeReady", "Creating", "the instance starts")]),
                Stage::Machine,
                "the instance starts",
            ),
            (
                "Queued",
                json!([condition("Admitted", "Pending", "no quota")]),
                Stage::Queue,
                "place 3: no quota",
            ),
            (
                "Queued",
                json!([condition("WithinBudget", "BudgetSpent", "no money")]),
                Stage::Budget,
                "no money",
            ),
            (
                "Provisioning",
                json!([{"type": "ComputeReady", "status": "True"}, condition("SoftwareReady", "SettingUp", "installs")]),
                Stage::Software,
                "installs",
            ),
        ] {
            let claim = claim(phase, &conditions);
            let progress = progress(Workspace::new(&claim));
            assert_eq!(
                (progress.stage, progress.message.as_str()),
                (stage, message)
            );
        }
        assert_eq!(
            progress(Workspace::new(&json!({}))).message,
            "waiting for Crossplane"
        );
    }

    #[test]
    fn a_flavor_that_does_not_exist_ends_the_wait_once_it_lasts() {
        let missing = condition("ConfigResolved", "FlavorMissing", "no flavor x");
        let claim = claim("Provisioning", &json!([missing]));
        assert!(matches!(outcome(Workspace::new(&claim)), Outcome::Fails(_)));
    }

    #[test]
    fn the_line_has_the_stages_so_far_and_the_time() {
        let progress = Progress {
            stage: Stage::Machine,
            message: "it starts".into(),
        };
        assert_eq!(
            progress.line(75).text(),
            "accepted > budget > queue > machine  75s, typically 1 to 2 min  it starts"
        );
    }

    #[test]
    fn a_refused_claim_ends_the_wait_and_a_failing_machine_does_not_at_once() {
        let refused = claim(
            "Failed",
            &json!([condition(
                "ConfigResolved",
                "ParametersInvalid",
                "spec.parameters.flavor: no flavor x"
            )]),
        );
        match outcome(Workspace::new(&refused)) {
            Outcome::Ends(problem) => assert_eq!(problem.code, Code::Refused),
            other => panic!("{other:?}"),
        }
        let failing = claim(
            "Failed",
            &json!([condition("ComputeReady", "Denied", "no permission")]),
        );
        match outcome(Workspace::new(&failing)) {
            Outcome::Fails(problem) => {
                assert_eq!(problem.code, Code::Failed);
                assert_eq!(problem.next.as_deref(), Some("devctl why a"));
            }
            other => panic!("{other:?}"),
        }
    }
}
