use api::lifecycle::{
    ActivityVerdict, DurationBounds, LifecyclePolicy, WorkspaceLifecycle, WorkspaceState,
};

mod extension;
mod stop;

use super::terms::{Bounds, Sources};
use super::*;

const START: &str = "2026-11-20T10:00:00Z";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A workspace over several calls. Each call gets the record of the call before.
struct Life {
    claim: WorkspaceLifecycle,
    policy: LifecyclePolicy,
    resume: Option<String>,
    stop: Option<String>,
    extend: Option<String>,
    record: Option<LifecycleStatus>,
    handled: Handled,
    installation: Installation,
    has_machine: bool,
    report: Option<String>,
}

impl Life {
    fn new(max_lifetime: Option<&str>, idle: Option<&str>) -> Self {
        Self {
            claim: WorkspaceLifecycle {
                max_lifetime: max_lifetime.map(str::to_owned),
                stop_after_idle: idle.map(str::to_owned),
                delete_after_stopped: Some("1d".into()),
                ..WorkspaceLifecycle::default()
            },
            policy: LifecyclePolicy {
                max_extension: Some("2h".into()),
                max_lifetime: Some(DurationBounds::default()),
                ..LifecyclePolicy::default()
            },
            resume: None,
            stop: None,
            extend: None,
            record: None,
            handled: Handled::default(),
            installation: Installation::Unknown,
            has_machine: true,
            report: None,
        }
    }

    fn terms(&self) -> Terms {
        let sources = Sources {
            claim: &self.claim,
            bounds: Bounds {
                policy: Some(&self.policy),
                limits: None,
                may_delete: true,
            },
            recorded: None,
        };
        sources.terms().0
    }

    fn look(&mut self, now: &str) -> Decision {
        let terms = self.terms();
        let decision = decide(&Subject {
            terms: &terms,
            extend_until: self.extend.as_deref(),
            resume: self.resume.as_deref(),
            stop: self.stop.as_deref(),
            is_new: self.record.is_none(),
            installation: self.installation,
            previous: self.record.as_ref(),
            handled: &self.handled,
            has_machine: self.has_machine,
            reported: match &self.report {
                Some(text) => Reported::Text(text),
                None => Reported::Nothing,
            },
            ends_by: None,
            now: time(now),
        });
        self.record.clone_from(&decision.status);
        self.handled.clone_from(&decision.handled);
        decision
    }

    /// The decision at this time (`HH:MM`) of the first day.
    fn at(&mut self, clock: &str) -> Step {
        self.look(&format!("2026-11-20T{clock}:00Z")).step
    }

    fn reports(&mut self, at: &str, ssh: &str) {
        let day = "2026-11-20T";
        let ssh = if ssh.contains(':') {
            format!("{day}{ssh}:00Z")
        } else {
            ssh.to_owned()
        };
        self.report = Some(format!(
            "v1 at={day}{at}:00Z ssh={ssh} job=none gpu=absent kernel=absent"
        ));
    }

    fn verdict(&mut self, clock: &str) -> (ActivityVerdict, String) {
        let activity = self
            .look(&format!("2026-11-20T{clock}:00Z"))
            .activity
            .unwrap();
        (activity.verdict, activity.message)
    }
}

const IDLE: Step = Step::Stop(StopReason::Idle);
const EXPIRED: Step = Step::Stop(StopReason::MaxLifetime);

#[test]
fn a_run_ends_after_its_longest_lifetime_counted_from_its_machine() {
    let mut life = Life::new(Some("1h"), None);
    life.has_machine = false;
    assert_eq!(
        life.at("09:00"),
        Step::Run,
        "nothing runs yet, so nothing is counted"
    );
    life.has_machine = true;
    assert_eq!(life.at("10:00"), Step::Run);
    assert_eq!(life.look("2026-11-20T10:59:59Z").step, Step::Run);
    assert_eq!(life.at("11:00"), EXPIRED);
    assert_eq!(life.at("11:30"), EXPIRED, "and stays ended");
    let record = life.record.unwrap();
    assert_eq!(record.started_at, Some(Time(time(START))));
    assert_eq!(record.stopped_at, Some(Time(time("2026-11-20T11:00:00Z"))));
    assert_eq!(record.deletes_at, Some(Time(time("2026-11-21T11:00:00Z"))));
}

#[test]
fn the_owner_is_warned_thirty_and_five_minutes_before_a_stop() {
    let mut life = Life::new(Some("2h"), None);
    let mut wakes = Vec::new();
    let mut now = time(START);
    while let Some(next) = life.look(&now.to_string()).wakes_at {
        assert!(next > now, "a deadline that is over wakes nobody");
        wakes.push(next.to_string());
        now = next;
        if life.record.as_ref().unwrap().stopped_because.is_some() {
            break;
        }
    }
    let day = "2026-11-20T";
    let expected = ["11:30", "11:55", "12:00"].map(|clock| format!("{day}{clock}:00Z"));
    assert_eq!(wakes[..3], expected);

    let reason = |clock: &str| {
        let mut life = Life::new(Some("2h"), None);
        life.at("10:00");
        let now = time(&format!("{day}{clock}:00Z"));
        let decision = life.look(&now.to_string());
        let terms = life.terms();
        let condition = notice::of(&decision, &terms, now).unwrap().condition();
        (condition.holds(), condition.reason)
    };
    assert_eq!(reason("11:29"), (false, "NotSoon".to_owned()));
    assert_eq!(reason("11:30"), (true, "StopsWithin30Minutes".to_owned()));
    assert_eq!(reason("11:55"), (true, "StopsWithin5Minutes".to_owned()));
    assert_eq!(reason("12:00"), (false, "Stopped".to_owned()));
}

#[test]
fn the_policy_limits_an_extension() {
    let mut life = Life::new(Some("1h"), None);
    life.at("10:00");
    life.extend = Some("2026-11-20T11:30:00Z".into());
    assert_eq!(life.at("11:15"), Step::Run);
    life.extend = Some("2026-12-31T00:00:00Z".into());
    assert_eq!(life.at("12:59"), Step::Run, "two hours beyond its end");
    assert_eq!(life.at("13:00"), EXPIRED);
    life.extend = Some("tomorrow".into());
    let notices = life.look("2026-11-20T13:01:00Z").notices.join("");
    assert!(
        notices.contains("extend-until]: must be a time"),
        "{notices}"
    );
}

#[test]
fn an_extension_after_the_end_continues_the_same_run() {
    let mut life = Life::new(Some("1h"), None);
    life.at("10:00");
    assert_eq!(life.at("11:00"), EXPIRED);
    life.extend = Some("2026-11-20T12:00:00Z".into());
    assert_eq!(life.at("11:05"), Step::Run);
    assert_eq!(
        life.record.as_ref().unwrap().started_at,
        Some(Time(time(START)))
    );
    assert_eq!(life.at("12:00"), EXPIRED);
}

#[test]
fn an_idle_stop_waits_for_a_report_from_after_the_limit() {
    let mut life = Life::new(None, Some("1h"));
    life.at("10:00");
    life.reports("10:55", "10:00");
    assert_eq!(
        life.at("11:00"),
        Step::Run,
        "somebody may have come back at 10:56"
    );
    life.reports("11:00", "10:00");
    assert_eq!(life.at("11:00"), IDLE);
}

#[test]
fn use_delays_the_stop_and_the_message_names_its_source() {
    let mut life = Life::new(None, Some("1h"));
    life.at("10:00");
    life.reports("11:00", "11:00");
    assert_eq!(
        life.verdict("11:01"),
        (ActivityVerdict::Active, "in use: ssh".into())
    );
    life.reports("11:10", "11:05");
    let (verdict, message) = life.verdict("11:10");
    assert_eq!(verdict, ActivityVerdict::Idle);
    assert_eq!(message, "not in use since 2026-11-20T11:05:00Z");
    life.reports("12:05", "11:05");
    assert_eq!(life.at("12:05"), IDLE);
}

#[test]
fn unknown_activity_counts_as_use() {
    let unknown = |report: Option<String>, clock: &str| {
        let mut life = Life::new(None, Some("1h"));
        life.at("10:00");
        life.report = report;
        let decision = life.look(&format!("2026-11-20T{clock}:00Z"));
        assert_eq!(decision.step, Step::Run);
        let activity = decision.activity.unwrap();
        assert_eq!(
            activity.verdict,
            ActivityVerdict::Unknown,
            "{}",
            activity.message
        );
        activity.message
    };
    let report = |at: &str, ssh: &str| {
        Some(format!(
            "v1 at={at} ssh={ssh} job=none gpu=absent kernel=absent"
        ))
    };
    assert!(unknown(None, "23:00").contains("has not reported"));
    assert!(unknown(Some("idle since Tuesday".into()), "23:00").contains("cannot be read"));
    let stale = unknown(report("2026-11-20T12:00:00Z", "none"), "12:15");
    assert!(
        stale.contains("last reported at 2026-11-20T12:00:00Z, more than 15m ago"),
        "{stale}"
    );
    assert!(unknown(report("2026-11-20T12:00:00Z", "none"), "11:00").contains("of the future"));
    let lie = unknown(
        report("2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z"),
        "12:01",
    );
    assert!(lie.contains("before ssh's last sign of use"), "{lie}");
    assert!(unknown(report("2026-11-20T12:00:00Z", "unknown"), "12:01").contains("look at ssh"));
    let old = unknown(report("2026-11-20T09:59:59Z", "none"), "10:01");
    assert!(old.contains("has not reported since it started"), "{old}");
}

#[test]
fn an_idle_workspace_starts_again_only_with_a_new_resume_annotation() {
    let mut life = Life::new(None, Some("1h"));
    life.resume = Some("asked for once, long ago".into());
    life.at("10:00");
    life.reports("11:00", "none");
    assert_eq!(life.at("11:00"), IDLE);
    assert_eq!(
        life.at("11:10"),
        IDLE,
        "what was there when it stopped asks for nothing"
    );
    life.resume = Some("again".into());
    assert_eq!(life.at("12:00"), Step::Run);
    assert_eq!(
        life.record.as_ref().unwrap().started_at,
        Some(Time(time("2026-11-20T12:00:00Z"))),
        "the last machine's report says nothing of the next one"
    );
    assert_eq!(life.at("12:05"), Step::Run);
}

#[test]
fn stopping_and_starting_by_commit_begins_another_run() {
    let mut life = Life::new(Some("1h"), None);
    life.at("10:00");
    life.claim.state = WorkspaceState::Stopped;
    assert_eq!(life.at("10:30"), Step::Stop(StopReason::State));
    life.claim.state = WorkspaceState::Running;
    assert_eq!(life.at("10:40"), Step::Run);
    assert_eq!(life.at("11:30"), Step::Run);
    assert_eq!(life.at("11:40"), EXPIRED);
    life.claim.state = WorkspaceState::Stopped;
    life.at("11:50");
    let stopped_at = life.record.as_ref().unwrap().stopped_at.clone();
    assert_eq!(
        stopped_at,
        Some(Time(time("2026-11-20T11:40:00Z"))),
        "once stopped, not twice"
    );
    life.claim.state = WorkspaceState::Running;
    assert_eq!(life.at("12:00"), Step::Run);
}

#[test]
fn the_rest_of_a_stopped_workspace_is_deleted_in_time_and_it_can_start_again() {
    let mut life = Life::new(None, None);
    life.claim.state = WorkspaceState::Stopped;
    life.at("10:00");
    assert_eq!(
        life.look("2026-11-21T09:59:59Z").step,
        Step::Stop(StopReason::State)
    );
    assert_eq!(
        life.look("2026-11-21T10:00:00Z").step,
        Step::Delete(StopReason::State)
    );
    life.claim.delete_after_stopped = None;
    let later = life.look("2026-11-22T10:00:00Z");
    assert_eq!(
        later.step,
        Step::Delete(StopReason::State),
        "what is gone stays gone"
    );
    life.claim.state = WorkspaceState::Running;
    assert_eq!(life.look("2026-11-22T10:00:00Z").step, Step::Run);
    assert_eq!(life.record.as_ref().unwrap().deleted_at, None);
}

#[test]
fn a_workspace_without_limits_records_nothing() {
    let mut life = Life::new(None, None);
    life.policy = LifecyclePolicy::default();
    life.claim.delete_after_stopped = None;
    let decision = life.look(START);
    assert_eq!((decision.status, decision.wakes_at), (None, None));
}

#[test]
fn two_calls_at_the_same_time_decide_the_same() {
    let mut life = Life::new(Some("1h"), Some("30m"));
    life.reports("10:05", "none");
    for clock in ["10:00", "10:10", "10:20", "10:59", "11:00", "12:00"] {
        let first = life.look(&format!("2026-11-20T{clock}:00Z"));
        assert_eq!(
            first,
            life.look(&format!("2026-11-20T{clock}:00Z")),
            "{clock}"
        );
    }
    assert!(WARNINGS.is_sorted_by(|a, b| a > b));
}

#[test]
fn a_decision_has_the_end_of_the_run_without_idle_stops() {
    let mut life = Life::new(Some("1h"), Some("10m"));
    life.has_machine = false;
    assert_eq!(life.look(START).ends_at, None, "nothing runs yet");
    life.has_machine = true;
    let end = Some(time("2026-11-20T11:00:00Z"));
    assert_eq!(life.look(START).ends_at, end);
    life.reports("10:09", "none");
    assert_eq!(
        life.look("2026-11-20T10:09:00Z").ends_at,
        end,
        "not the idle stop"
    );
    life.extend = Some("2026-11-20T12:00:00Z".into());
    let extended = life.look("2026-11-20T10:09:30Z").ends_at;
    assert_eq!(extended, Some(time("2026-11-20T12:00:00Z")));
    let mut endless = Life::new(None, None);
    assert_eq!(endless.look(START).ends_at, None);
}

/// The provider's clock may be ahead of the function's.
#[test]
fn a_machine_that_the_provider_ends_seconds_early_is_not_replaced() {
    let mut life = Life::new(Some("1h"), None);
    life.look(START);
    life.has_machine = false;
    for clock in ["10:59:57", "10:59:58", "11:00:00", "11:00:09"] {
        let look = life.look(&format!("2026-11-20T{clock}Z"));
        assert_eq!(look.step, EXPIRED, "{clock}");
    }
    let mut lost = Life::new(Some("1h"), None);
    lost.look(START);
    lost.has_machine = false;
    assert_eq!(lost.look("2026-11-20T10:59:50Z").step, Step::Run, "lost");
}

/// A short idle time would otherwise end every machine before its owner could log in.
#[test]
fn the_time_without_use_begins_when_the_software_is_installed() {
    let mut life = Life::new(None, Some("5m"));
    let unused = |clock: &str| {
        Some(format!(
            "v1 at=2026-11-20T{clock}:00Z ssh=none job=none gpu=absent kernel=absent"
        ))
    };
    life.installation = Installation::Going;
    life.report = unused("10:09");
    assert_eq!(life.at("10:00"), Step::Run);
    assert_eq!(life.at("10:09"), Step::Run);
    let waiting = life.look("2026-11-20T10:09:30Z");
    assert_eq!(waiting.status.unwrap().stops_at, None);
    life.installation = Installation::Done;
    life.report = unused("10:10");
    assert_eq!(life.at("10:10"), Step::Run);
    life.report = unused("10:14");
    assert_eq!(life.at("10:14"), Step::Run);
    life.report = unused("10:15");
    assert_eq!(life.at("10:15"), Step::Stop(StopReason::Idle));
}
