//! Who uses a workspace, by what its agent reports. Whatever is not known counts as use:
//! no work is lost to a broken agent.

use activity_report::{Report, Sign};
use api::lifecycle::SignState;
use api::lifecycle::{ActivitySource, ActivityStatus, ActivityVerdict};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::lifecycle::terms::Terms;

/// How far an agent's clock may be ahead of this one's.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// What is there of an agent's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported<'a> {
    /// The platform has no agent; the field of the policy that would name one.
    NoAgent(&'static str),
    /// The agent has not said anything.
    Nothing,
    /// It said this.
    Text(&'a str),
}

/// What follows from a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// For status.
    pub status: ActivityStatus,
    /// Whether it may be stopped: it was idle for long enough when its agent looked.
    pub is_eligible: bool,
    /// When the report becomes too old to mean anything.
    pub stale_at: Option<Timestamp>,
}

/// Reads a report. `since`: when this run began, which counts as use.
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

/// The report, or why nothing follows from it.
fn usable(
    reported: Reported<'_>,
    terms: &Terms,
    since: Timestamp,
    now: Timestamp,
) -> Result<Report, String> {
    let text = match reported {
        Reported::NoAgent(field) => {
            return Err(format!(
                "nobody says who uses it: the policy has no {field}"
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
        let message = "its agent has nothing to look at; it counts as used".to_owned();
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
