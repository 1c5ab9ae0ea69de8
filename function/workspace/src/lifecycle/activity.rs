//! Reads the agent's report about the use of a workspace. If the use is not known, the workspace
//! counts as used, so that a broken agent never loses work.

use activity_report::{Report, Sign};
use api::lifecycle::SignState;
use api::lifecycle::{ActivitySource, ActivityStatus, ActivityVerdict};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::lifecycle::terms::Terms;

/// Clock skew allowed between the agent and this function.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// The report of an agent, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported<'a> {
    /// The policy names no agent. The value is the field of the policy that would name one.
    NoAgent(&'static str),
    /// The agent has not reported yet.
    Nothing,
    /// The text of the last report.
    Text(&'a str),
}

/// The result of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The activity for status.
    pub status: ActivityStatus,
    /// Whether the workspace may be stopped: it was idle for long enough when the agent made its
    /// report.
    pub is_eligible: bool,
    /// When the report becomes too old to use.
    pub stale_at: Option<Timestamp>,
}

/// Reads a report. `since` is the start of this run, which counts as use.
pub fn read(reported: Reported<'_>, terms: &Terms, since: Timestamp, now: Timestamp) -> Reading {
    match usable(reported, terms, since, now) {
        Ok(report) => judged(&report, terms, since),
        Err(why) => Reading {
            status: ActivityStatus {
                verdict: ActivityVerdict::Unknown,
                message: format!("{why}; it counts as used"),
                last_active: None,
                eligible_at: None,
                sources: Vec::new(),
            },
            is_eligible: false,
            stale_at: None,
        },
    }
}

/// The reading of a machine whose setup goes on. Its owner cannot use it yet, so the machine counts as
/// used.
pub fn installing() -> Reading {
    Reading {
        status: ActivityStatus {
            verdict: ActivityVerdict::Active,
            message: "its software is being installed; it counts as used".to_owned(),
            last_active: None,
            eligible_at: None,
            sources: Vec::new(),
        },
        is_eligible: false,
        stale_at: None,
    }
}

/// Parses and checks a report. The error says why the report cannot be used.
fn usable(
    reported: Reported<'_>,
    terms: &Terms,
    since: Timestamp,
    now: Timestamp,
) -> Result<Report, String> {
    let text = match reported {
        Reported::NoAgent(field) => {
            return Err(format!(
                "its use is not reported: the policy has no {field}"
            ));
        }
        Reported::Nothing => return Err("its agent has not reported".into()),
        Reported::Text(text) => text,
    };
    let report: Report = text
        .parse()
        .map_err(|problem| format!("its agent's report cannot be read: {problem}"))?;
    let at = report.at;
    if at > now.saturating_add(MAX_CLOCK_SKEW).unwrap_or(Timestamp::MAX) {
        return Err(format!("its agent's report is of the future, {at:.0}"));
    }
    let signs = report.sources();
    if let Some((name, _)) = signs
        .iter()
        .find(|(_, sign)| matches!(sign, Sign::At(t) if *t > at))
    {
        return Err(format!(
            "its agent's report is made before {name}'s last sign of use"
        ));
    }
    if at < since {
        return Err(format!(
            "its agent has not reported since it started at {since:.0}"
        ));
    }
    if stale_at(at, terms) <= now {
        let limit = &terms.stale_after.text;
        return Err(format!(
            "its agent last reported at {at:.0}, more than {limit} ago"
        ));
    }
    Ok(report)
}

fn judged(report: &Report, terms: &Terms, since: Timestamp) -> Reading {
    let signs = report.sources();
    let named = |state: SignState| {
        let of_state = signs
            .iter()
            .filter(|(_, sign)| state_of(*sign, report.at) == state);
        of_state
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let last = signs.iter().filter_map(|(_, sign)| time_of(*sign)).max();
    let last_active = last.map_or(since, |last| last.max(since));
    let eligible_at = terms.stop_after_idle.as_ref().map(|limit| {
        last_active
            .saturating_add(limit.time)
            .unwrap_or(Timestamp::MAX)
    });
    let (unknown, active) = (named(SignState::Unknown), named(SignState::Active));
    let (verdict, message) = if !active.is_empty() {
        (ActivityVerdict::Active, format!("in use: {active}"))
    } else if !unknown.is_empty() {
        let message = format!("its agent could not look at {unknown}; it counts as used");
        (ActivityVerdict::Unknown, message)
    } else if signs.iter().all(|(_, sign)| *sign == Sign::Absent) {
        let message = "its agent has no source to read; it counts as used".to_owned();
        (ActivityVerdict::Unknown, message)
    } else {
        let message = format!("not in use since {last_active:.0}");
        (ActivityVerdict::Idle, message)
    };
    let is_idle = verdict == ActivityVerdict::Idle;
    Reading {
        is_eligible: is_idle && eligible_at.is_some_and(|eligible| report.at >= eligible),
        stale_at: Some(stale_at(report.at, terms)),
        status: ActivityStatus {
            verdict,
            message,
            last_active: Some(Time(last_active)),
            eligible_at: eligible_at.filter(|_| is_idle).map(Time),
            sources: signs
                .iter()
                .map(|(name, sign)| ActivitySource {
                    name: (*name).to_owned(),
                    state: state_of(*sign, report.at),
                    last_active: time_of(*sign).map(Time),
                })
                .collect(),
        },
    }
}

fn stale_at(at: Timestamp, terms: &Terms) -> Timestamp {
    at.saturating_add(terms.stale_after.time)
        .unwrap_or(Timestamp::MAX)
}

fn state_of(sign: Sign, at: Timestamp) -> SignState {
    match sign {
        Sign::Absent => SignState::Absent,
        Sign::Unknown => SignState::Unknown,
        Sign::At(time) if time == at => SignState::Active,
        Sign::At(_) | Sign::Never => SignState::Idle,
    }
}

fn time_of(sign: Sign) -> Option<Timestamp> {
    match sign {
        Sign::At(time) => Some(time),
        Sign::Absent | Sign::Unknown | Sign::Never => None,
    }
}
