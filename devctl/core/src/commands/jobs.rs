//! `run`, `jobs`, `logs` and `cancel`: the agent's jobs.

use std::time::Duration;

use serde_json::Value;

use crate::commands::call::{Call, exit_code};
use crate::commands::connect;
use crate::grammar::working::{Cancel, Jobs, Logs, Run};
use crate::host::{Program, Ran};
use crate::name::{Host, Name};
use crate::object::text;
use crate::output::{self, Data};
use crate::problem::{Code, Problem};
use crate::remote::{self, NO_AGENT};
use crate::table::Table;
use crate::text::{Line, Style};
use crate::workspace::Workspace;

/// The exit code of ssh if the connection failed (`ssh(1)`).
const CONNECTION: i32 = 255;
/// How often a lost connection is made again, and the wait before.
const RETRIES: u32 = 10;
const PAUSE: Duration = Duration::from_secs(3);

/// Runs a command as a job, and shows its output.
pub(super) async fn run(call: Call<'_>, given: &Run) -> Result<u8, Problem> {
    let host = connect::host(&given.name);
    let claim = connect::reachable(call, &host, false).await?;
    let mut command = remote::program(Workspace::new(&claim), &given.command);
    if let Some(folder) = &given.sync {
        let copy = synced(call, &host, folder).await?;
        let enter = format!("cd {} && exec \"$@\"", crate::ssh::client::shell(&copy));
        let words = ["sh".into(), "-c".into(), enter, "sh".into()];
        command = words.into_iter().chain(command).collect();
    }
    let name = given
        .job
        .clone()
        .unwrap_or_else(|| job_name(&given.command));
    let mut words = vec![
        "job".into(),
        "start".into(),
        "--name".into(),
        name,
        "--".into(),
    ];
    words.extend(command.iter().cloned());
    let ran = capture(call, &host, &remote::agent(&words)).await?;
    if ran.code == NO_AGENT {
        return foreground(call, &host, given, &command).await;
    }
    let id = started(&given.name, &ran)?;
    let line = Line::new()
        .plain("job ")
        .with(Style::Bold, &id)
        .plain(format!(" runs on {}", given.name));
    call.host.terminal.note(&line);
    let later = format!("devctl logs {} --job {id} -f", given.name);
    if given.detach {
        call.host
            .terminal
            .note(&format!("its output: {later}").into());
        call.host.terminal.data(&id.into())?;
        return Ok(0);
    }
    let cancel = format!("devctl cancel {} {id}", given.name);
    call.host
        .terminal
        .stays(&format!("job {id} goes on: {later}, or {cancel}").into());
    followed(call, &host, &id).await
}

/// The id of a job that was started.
pub(super) fn started(name: &Name, ran: &Ran) -> Result<String, Problem> {
    let id = ran.stdout.trim().to_owned();
    let is_id = !id.is_empty()
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    if ran.code == 0 && is_id {
        return Ok(id);
    }
    let message = format!("the job did not start: {}", ran.stderr.trim());
    let code = if ran.code == CONNECTION {
        Code::OutOfReach
    } else {
        Code::Failed
    };
    Err(Problem::new(code, "NotStarted", message)
        .of(name.to_string())
        .next(format!("devctl ssh {name}")))
}

/// Shows the output of a job until it ends, also over a connection that breaks.
async fn followed(call: Call<'_>, host: &Host, id: &str) -> Result<u8, Problem> {
    let mut shown = 0;
    for _ in 0..=RETRIES {
        let program = ssh(call, host, &remote::follow(id, shown))?;
        let piped = call.piped(&program).await?;
        shown += piped.bytes;
        if piped.code != CONNECTION {
            return Ok(exit_code(piped.code));
        }
        // 255 is also a code that a job may have.
        if let Ok(Some(code)) = code_of(call, host, id).await {
            // The job may have written more between the end of the connection and its own end.
            let rest = call
                .piped(&ssh(call, host, &remote::rest(id, shown))?)
                .await?;
            shown += rest.bytes;
            if rest.code == 0 {
                return Ok(code);
            }
        }
        call.host.terminal.note(&Line::from(
            "the connection is lost; the job goes on; connecting again",
        ));
        call.host.clock.sleep(PAUSE).await;
    }
    Err(Problem::new(
        Code::OutOfReach,
        "OutOfReach",
        "the connection is lost, and the job goes on",
    )
    .of(host.to_string())
    .next(format!("devctl logs {} --job {id} -f", host.workspace)))
}

/// The exit code of a job; none while it runs.
async fn code_of(call: Call<'_>, host: &Host, id: &str) -> Result<Option<u8>, Problem> {
    let listed = listed(call, host).await?;
    let job = listed.iter().find(|job| text(job, "/id") == Some(id));
    let code = job.and_then(|job| job.get("code")?.as_u64());
    Ok(code.and_then(|code| u8::try_from(code).ok()))
}

/// Runs a command without an agent: it ends with the connection.
async fn foreground(
    call: Call<'_>,
    host: &Host,
    given: &Run,
    command: &[String],
) -> Result<u8, Problem> {
    if given.detach {
        return Err(Problem::new(
            Code::Refused,
            "NoAgent",
            "no agent runs there that could keep the job",
        )
        .of(given.name.to_string())
        .field("--detach")
        .next("ask the platform team for an agent in the policy, or run it without --detach"));
    }
    let line =
        "no agent runs there: the command ends with this connection, and does not count as use";
    call.host
        .terminal
        .note(&Line::new().with(Style::Warning, line));
    let program = call.with_ssh(|client| client.ssh(host, &[], &[remote::quoted(command)]))?;
    call.run(&program).await
}

/// Copies a folder into the workspace, and returns where it is there.
async fn synced(call: Call<'_>, host: &Host, folder: &std::path::Path) -> Result<String, Problem> {
    let shown = folder.display().to_string();
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| {
            Problem::usage("--sync", format!("{shown}: name a folder, and not . or .."))
        })?;
    // scp would make a folder within the folder that is there from the last time.
    let from = format!("{}/.", shown.trim_end_matches('/'));
    let copy = format!("sync/{name}");
    let made = capture(
        call,
        host,
        &format!("mkdir -p {}", crate::ssh::client::shell(&copy)),
    )
    .await?;
    let program = call.with_ssh(|client| client.scp(true, &from, &format!("{host}:{copy}")))?;
    let ran = call.capture(&program).await?;
    if made.code == 0 && ran.code == 0 {
        return Ok(copy);
    }
    let message = format!("{shown}: {} {}", made.stderr.trim(), ran.stderr.trim());
    Err(Problem::new(Code::Failed, "NotCopied", message)
        .of(host.to_string())
        .field("--sync"))
}

fn job_name(command: &[String]) -> String {
    let first = command.first().map_or("job", String::as_str);
    first.rsplit('/').next().unwrap_or(first).to_owned()
}

/// Lists the jobs of a workspace.
pub(super) async fn jobs(call: Call<'_>, given: &Jobs) -> Result<u8, Problem> {
    let host = connect::host(&given.name);
    connect::reachable(call, &host, false).await?;
    let jobs = listed(call, &host).await?;
    let value = serde_json::json!({"jobs": jobs});
    let data = Data {
        table: &|wide| table(&jobs, wide),
        value: &value,
        names: jobs
            .iter()
            .filter_map(|job| text(job, "/id"))
            .map(str::to_owned)
            .collect(),
    };
    output::write(call.host.terminal, given.output.format, &data)?;
    Ok(0)
}

fn table(jobs: &[Value], wide: bool) -> Table {
    let mut head = vec!["JOB", "STATE", "CODE", "STARTED", "ENDED"];
    if wide {
        head.push("COMMAND");
    }
    let mut table = Table::new(head);
    for job in jobs {
        let at = |pointer: &str| text(job, pointer).map(str::to_owned);
        let code = job
            .get("code")
            .and_then(Value::as_u64)
            .map(|code| code.to_string());
        let mut cells = vec![
            at("/id"),
            at("/state"),
            code,
            at("/startedAt"),
            at("/endedAt"),
        ];
        if wide {
            let words = crate::object::list(job, "/command")
                .iter()
                .filter_map(Value::as_str);
            cells.push(Some(words.collect::<Vec<_>>().join(" ")));
        }
        table.row(cells);
    }
    table
}

async fn listed(call: Call<'_>, host: &Host) -> Result<Vec<Value>, Problem> {
    listed_in(host, list(call, host).await?)
}

/// Asks the agent for its jobs.
pub(super) async fn list(call: Call<'_>, host: &Host) -> Result<Ran, Problem> {
    let words = ["job", "list", "-o", "json"].map(str::to_owned);
    capture(call, host, &remote::agent(&words)).await
}

/// The jobs in the agent's answer.
pub(super) fn listed_in(host: &Host, ran: Ran) -> Result<Vec<Value>, Problem> {
    let answer = checked(host, ran)?;
    let value: Value = serde_json::from_str(&answer).map_err(|error| {
        Problem::new(
            Code::Failed,
            "Agent",
            format!("the agent's answer: {error}"),
        )
        .of(host.to_string())
    })?;
    Ok(crate::object::list(&value, "/jobs").to_vec())
}

/// Shows the output of a job, of the setup, or the platform's events.
pub(super) async fn logs(call: Call<'_>, given: &Logs) -> Result<u8, Problem> {
    if given.events {
        return events(call, &given.name).await;
    }
    let host = connect::host(&given.name);
    connect::reachable(call, &host, false).await?;
    let line = if given.setup {
        "exec cat /var/log/gpu-workspace-setup.log".to_owned()
    } else {
        let mut words = vec!["job".to_owned(), "logs".to_owned()];
        words.extend(given.follow.then(|| "--follow".to_owned()));
        if let Some(job) = &given.job {
            words.extend(["--".to_owned(), job.clone()]);
        }
        remote::agent(&words)
    };
    let program = ssh(call, &host, &line)?;
    let piped = call.piped(&program).await?;
    if piped.code == NO_AGENT {
        return Err(no_agent(&host));
    }
    Ok(exit_code(piped.code))
}

async fn events(call: Call<'_>, name: &Name) -> Result<u8, Problem> {
    let claim = call.claim(name).await?;
    let events = call.events(Workspace::new(&claim)).await?;
    let mut table = Table::new(["TIME", "TYPE", "REASON", "MESSAGE"]);
    for event in &events {
        let at = |pointer: &str| text(event, pointer).map(str::to_owned);
        table.row([
            at("/lastTimestamp"),
            at("/type"),
            at("/reason"),
            at("/message"),
        ]);
    }
    for line in table.lines(call.host.terminal.width()) {
        call.host.terminal.data(&line)?;
    }
    Ok(0)
}

/// Ends a job.
pub(super) async fn cancel(call: Call<'_>, given: &Cancel) -> Result<u8, Problem> {
    let host = connect::host(&given.name);
    connect::reachable(call, &host, false).await?;
    let words = [
        "job".to_owned(),
        "stop".to_owned(),
        "--".to_owned(),
        given.job.clone(),
    ];
    let ran = capture(call, &host, &remote::agent(&words)).await?;
    checked(&host, ran)?;
    call.host
        .terminal
        .data(&format!("job {} ended", given.job).into())?;
    Ok(0)
}

/// The answer of the agent, or why there is none.
fn checked(host: &Host, ran: Ran) -> Result<String, Problem> {
    match ran.code {
        0 => Ok(ran.stdout),
        NO_AGENT => Err(no_agent(host)),
        CONNECTION => Err(
            Problem::new(Code::OutOfReach, "OutOfReach", ran.stderr.trim())
                .of(host.to_string())
                .next(format!("devctl doctor {}", host.workspace)),
        ),
        _ => Err(Problem::new(Code::Failed, "Agent", ran.stderr.trim()).of(host.to_string())),
    }
}

/// The problem of a workspace without an agent.
pub(super) fn no_agent(host: &Host) -> Problem {
    Problem::new(
        Code::Refused,
        "NoAgent",
        "no agent runs there that knows jobs and measurements",
    )
    .of(host.to_string())
    .next("ask the platform team for an agent in the policy: lifecycle.agent, or cluster.agent")
}

fn ssh(call: Call<'_>, host: &Host, line: &str) -> Result<Program, Problem> {
    call.with_ssh(|client| client.ssh(host, &["-T"], &[line.to_owned()]))
}

/// Runs a line of the workspace's shell, and returns what it writes.
pub(super) async fn capture(call: Call<'_>, host: &Host, line: &str) -> Result<Ran, Problem> {
    call.capture(&ssh(call, host, line)?).await
}
