//! `job list`, `job logs` and `job wait`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::arguments::{Format, Id, Logs, Status};
use crate::job::folder::{Found, Jobs, State};
use crate::job::output::Reader;
use crate::run::NOT_STARTED;

/// The time between two looks at growing output.
const LOOK: Duration = Duration::from_millis(100);

/// Lists the jobs.
pub(super) fn list(jobs: &Jobs, wish: &Status) -> Result<ExitCode, String> {
    let all = jobs.all().map_err(|error| error.to_string())?;
    let rows: Result<Vec<Value>, String> = all.iter().map(row).collect();
    let rows = rows?;
    if wish.output == Format::Json {
        println!("{:#}", json!({"jobs": rows}));
        return Ok(ExitCode::SUCCESS);
    }
    println!("{:<24}  {:<9}  {:<4}  STARTED", "JOB", "STATE", "CODE");
    for row in &rows {
        let text = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
        let code = row["code"]
            .as_u64()
            .map_or("-".to_owned(), |code| code.to_string());
        println!(
            "{:<24}  {:<9}  {code:<4}  {}",
            text("id"),
            text("state"),
            text("startedAt")
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn row(job: &Found) -> Result<Value, String> {
    let state = job
        .state()
        .map_err(|error| format!("job {}: {error}", job.id))?;
    let (word, code, ended) = match state {
        State::Running => ("Running", None, None),
        State::Finished { code, at } => ("Finished", Some(code), Some(format!("{at:.0}"))),
        State::Lost => ("Lost", None, None),
    };
    Ok(json!({
        "id": job.id,
        "name": job.record.name,
        "state": word,
        "code": code,
        "command": job.record.command,
        "startedAt": format!("{:.0}", job.record.started),
        "endedAt": ended,
    }))
}

/// Prints the output of a job, to its end if that is asked for.
pub(super) fn logs(jobs: &Jobs, wish: &Logs) -> Result<ExitCode, String> {
    let job = jobs.find(wish.id.as_deref())?;
    let failed = |error: io::Error| format!("job {}: {error}", job.id);
    let mut reader = Reader::new(&job.folder, wish.from);
    let mut out = io::stdout().lock();
    loop {
        // The state is read first: what an ended job has written is all there.
        let is_over = !wish.follow || job.state().map_err(failed)? != State::Running;
        let part = reader.next().map_err(failed)?;
        if part.left_out > 0 {
            eprintln!("[{} bytes of output are not kept any more]", part.left_out);
        }
        if !part.bytes.is_empty() {
            out.write_all(&part.bytes)
                .and_then(|()| out.flush())
                .map_err(|e| e.to_string())?;
            continue;
        }
        if is_over {
            return Ok(ExitCode::SUCCESS);
        }
        thread::sleep(LOOK);
    }
}

/// Waits for the end of a job, and returns its exit code.
pub(super) fn wait(jobs: &Jobs, wish: &Id) -> Result<ExitCode, String> {
    let job = jobs.find(wish.id.as_deref())?;
    let state = job
        .ended()
        .map_err(|error| format!("job {}: {error}", job.id))?;
    match state {
        State::Finished { code, .. } => Ok(ExitCode::from(code)),
        State::Lost => {
            eprintln!(
                "job {} is lost: its machine or its supervisor ended before it",
                job.id
            );
            Ok(ExitCode::from(NOT_STARTED))
        }
        State::Running => Err(format!("job {} runs again", job.id)),
    }
}
