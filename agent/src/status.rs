//! `status`: shows the last report and the jobs to people on the machine.

use std::process::ExitCode;

use activity_report::{Report, Sign};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::arguments::{Format, Status};
use crate::jobs::{self, Job};
use crate::places::Places;
use crate::state;

/// The age of a report from which the agent does not seem to run.
const STALE: SignedDuration = SignedDuration::from_secs(120);

/// Prints the last report and the running jobs.
pub fn run(places: &Places, given: &Status) -> Result<ExitCode, String> {
    let none = || {
        let state = places.state();
        let hint = "systemctl status gpu-workspace-agent";
        format!(
            "{}: no agent has run since the machine started; see {hint}",
            state.display()
        )
    };
    let state = state::load(places).ok_or_else(none)?;
    let report: Report = state
        .report
        .parse()
        .map_err(|e| format!("its report: {e}"))?;
    let folder = places.jobs();
    let jobs = jobs::running(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    match given.output {
        Format::Table => print!("{}", table(&report, &jobs, Timestamp::now())),
        Format::Json => println!("{:#}", json(&report, &jobs)),
    }
    Ok(ExitCode::SUCCESS)
}

fn words(sign: Sign, at: Timestamp) -> (&'static str, Option<Timestamp>) {
    match sign {
        Sign::Absent => ("Absent", None),
        Sign::Unknown => ("Unknown", None),
        Sign::Never => ("Idle", None),
        Sign::At(time) if time == at => ("Active", Some(time)),
        Sign::At(time) => ("Idle", Some(time)),
    }
}

fn table(report: &Report, jobs: &[Job], now: Timestamp) -> String {
    let ago = |time: Timestamp| {
        let seconds = now.duration_since(time).as_secs().max(0);
        match seconds {
            0..120 => format!("{seconds}s ago"),
            120..7_200 => format!("{}m ago", seconds / 60),
            _ => format!("{}h ago", seconds / 3_600),
        }
    };
    let mut rows = vec![["SOURCE", "STATE", "LAST SIGN OF USE"].map(str::to_owned)];
    for (name, sign) in report.sources() {
        let (state, last) = words(sign, report.at);
        let last = last.map_or("-".to_owned(), ago);
        rows.push([name.to_owned(), state.to_owned(), last]);
    }
    let mut text = columns(&rows);
    if !jobs.is_empty() {
        let mut rows = vec![["JOB", "USER", "SINCE"].map(str::to_owned)];
        for job in jobs {
            let since = job.since.map_or("-".to_owned(), ago);
            rows.push([job.name.clone(), job.user.to_string(), since]);
        }
        text = text + "\n" + &columns(&rows);
    }
    if now.duration_since(report.at) > STALE {
        let hint = "the agent does not run: systemctl status gpu-workspace-agent";
        text = format!("{text}\nof {}; {hint}\n", ago(report.at));
    }
    text
}

fn columns(rows: &[[String; 3]]) -> String {
    let width = |n: usize| {
        rows.iter()
            .map(|row| row[n].chars().count())
            .max()
            .unwrap_or(0)
    };
    let (first, second) = (width(0), width(1));
    let line = |[a, b, c]: &[String; 3]| format!("{a:first$}  {b:second$}  {c}\n");
    rows.iter().map(line).collect()
}

fn json(report: &Report, jobs: &[Job]) -> Value {
    let second = |time: Timestamp| format!("{time:.0}");
    let sources = report.sources().map(|(name, sign)| {
        let (state, last) = words(sign, report.at);
        json!({"name": name, "state": state, "lastActive": last.map(second)})
    });
    let jobs = jobs
        .iter()
        .map(|job| json!({"name": job.name, "user": job.user, "since": job.since.map(second)}));
    json!({
        "at": second(report.at),
        "sources": sources,
        "jobs": jobs.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        "v1 at=2026-11-22T10:00:00Z ssh=2026-11-22T10:00:00Z job=2026-11-22T07:00:00Z gpu=absent kernel=unknown"
            .parse()
            .unwrap()
    }

    fn job() -> Job {
        let since = "2026-11-22T09:10:00Z".parse().ok();
        Job {
            name: "train".into(),
            since,
            user: 1001,
        }
    }

    #[test]
    fn the_table_shows_sources_and_jobs() {
        let now = "2026-11-22T10:00:05Z".parse().unwrap();
        let expected = "\
SOURCE  STATE    LAST SIGN OF USE
ssh     Active   5s ago
job     Idle     3h ago
gpu     Absent   -
kernel  Unknown  -

JOB    USER  SINCE
train  1001  50m ago
";
        assert_eq!(table(&report(), &[job()], now), expected);
    }

    #[test]
    fn the_table_says_that_the_agent_does_not_run() {
        let now = "2026-11-22T10:30:00Z".parse().unwrap();
        let text = table(&report(), &[], now);
        assert!(
            text.contains("of 30m ago; the agent does not run"),
            "{text}"
        );
    }

    #[test]
    fn json_has_the_same_content_as_the_table() {
        let value = json(&report(), &[job()]);
        assert_eq!(
            value["sources"][0],
            json!({"name": "ssh", "state": "Active", "lastActive": "2026-11-22T10:00:00Z"})
        );
        assert_eq!(
            value["sources"][3],
            json!({"name": "kernel", "state": "Unknown", "lastActive": null})
        );
        assert_eq!(
            value["jobs"],
            json!([{"name": "train", "user": 1001, "since": "2026-11-22T09:10:00Z"}])
        );
    }
}
