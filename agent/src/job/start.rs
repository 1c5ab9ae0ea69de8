//! `job start`: starts the supervisor, and returns when the command runs.

use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::arguments::Start;
use crate::job::folder::Jobs;
use crate::job::supervisor::STARTED;
use crate::places::Places;

/// Starts a command as a job and prints the job's id.
pub(super) fn start(places: &Places, jobs: &Jobs, wish: &Start) -> Result<ExitCode, String> {
    let program = wish
        .command
        .first()
        .ok_or("name a command: job start -- COMMAND")?;
    let name = wish.name.clone().unwrap_or_else(|| {
        let name = Path::new(program).file_name().unwrap_or(program);
        name.to_string_lossy().into_owned()
    });
    let folder = jobs
        .create(&name)
        .map_err(|error| format!("cannot create the job: {error}"))?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut supervisor = Command::new(own);
    supervisor
        .args(places.arguments())
        .args(["job", "supervise"])
        .arg(&folder)
        .arg(&name)
        .args(wish.no_use.then_some("--no-use"))
        .arg("--")
        .args(&wish.command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    if let Some(dir) = &wish.dir {
        supervisor.current_dir(dir);
    }
    let started = supervisor.spawn().map_err(|error| match &wish.dir {
        Some(dir) => format!("{}: {error}", dir.display()),
        None => error.to_string(),
    });
    let answer = started.and_then(|mut supervisor| {
        let mut answer = String::new();
        let mut pipe = supervisor
            .stdout
            .take()
            .ok_or("the supervisor has no output")?;
        pipe.read_to_string(&mut answer)
            .map_err(|error| error.to_string())?;
        Ok(answer)
    });
    if answer.as_deref() == Ok(STARTED) {
        let id = folder.file_name().unwrap_or_default().to_string_lossy();
        println!("{id}");
        return Ok(ExitCode::SUCCESS);
    }
    // Without a record the folder is no job. It may hold output that is never read.
    let _ = std::fs::remove_dir_all(&folder);
    let problem = answer.unwrap_or_else(|error| error);
    Err(if problem.is_empty() {
        "the supervisor ended before the job started".to_owned()
    } else {
        problem
    })
}
