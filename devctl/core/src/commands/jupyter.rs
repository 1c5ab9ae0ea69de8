//! `jupyter`.
//!
//! Jupyter runs as a job, so it and its kernels outlive the connection. The job does not count as use,
//! because the agent asks Jupyter for busy kernels. It asks by TCP, so Jupyter has no Unix socket. No
//! argument has the token, on either machine.

use serde_json::Value;

use crate::commands::call::Call;
use crate::commands::{connect, jobs};
use crate::grammar::connecting::Jupyter;
use crate::host::Ran;
use crate::name::Host;
use crate::object::text;
use crate::problem::{Code, Problem};
use crate::remote::{self, NO_AGENT};
use crate::ssh::client::{shell, tokens};
use crate::text::Line;

/// The name of the job.
const JOB: &str = "jupyter-lab";

/// Starts Jupyter, or finds the one that runs, and forwards a port to it.
pub(super) async fn jupyter(call: Call<'_>, given: &Jupyter) -> Result<u8, Problem> {
    let host = connect::host(&given.name);
    connect::reachable(call, &host, false).await?;
    let ran = jobs::list(call, &host).await?;
    if ran.code == NO_AGENT {
        return foreground(call, &host, given).await;
    }
    let job = match running(&jobs::listed_in(&host, ran)?) {
        Some(id) => id,
        None => started(call, &host).await?,
    };
    let server = server(call, &host, &job).await?;
    forward(call, &host, given, &job, &server).await
}

/// A server of Jupyter on the workspace, as it describes itself.
#[derive(Debug, PartialEq, Eq)]
struct Server {
    port: u16,
    token: String,
}

impl Server {
    /// Reads a description. A token that an address cannot have as it is counts as none: Jupyter then
    /// asks for it.
    fn read(description: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(description).ok()?;
        let port = value.get("port")?.as_u64()?;
        let token = text(&value, "/token").unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._~-".contains(c);
        let token = Some(token).filter(|token| token.chars().all(is_plain));
        Some(Self {
            port: u16::try_from(port).ok().filter(|port| *port > 0)?,
            token: token.unwrap_or_default().to_owned(),
        })
    }

    /// The address at a port of this machine.
    fn address(&self, port: u16) -> String {
        let query = match self.token.as_str() {
            "" => String::new(),
            token => format!("?token={token}"),
        };
        format!("http://127.0.0.1:{port}/lab{query}")
    }
}

/// The job of Jupyter that runs.
fn running(jobs: &[Value]) -> Option<String> {
    let is_ours = |id: &&str| {
        let number = id.strip_prefix(JOB).and_then(|rest| rest.strip_prefix('-'));
        number.is_some_and(|number| number.chars().all(|c| c.is_ascii_digit()))
    };
    let running = jobs
        .iter()
        .filter(|job| text(job, "/state") == Some("Running"));
    let mut ids = running.filter_map(|job| text(job, "/id"));
    ids.find(is_ours).map(str::to_owned)
}

async fn started(call: Call<'_>, host: &Host) -> Result<String, Problem> {
    let ran = jobs::capture(call, host, &remote::start_jupyter(JOB)).await?;
    let id = jobs::started(&host.workspace, &ran)?;
    let line = format!("Jupyter starts as job {id}");
    call.host.terminal.note(&line.into());
    Ok(id)
}

/// Waits until Jupyter listens.
async fn server(call: Call<'_>, host: &Host, job: &str) -> Result<Server, Problem> {
    let Ran { code, stdout, .. } = jobs::capture(call, host, &remote::jupyter_described()).await?;
    let server = (code == 0).then(|| Server::read(&stdout)).flatten();
    server.ok_or_else(|| {
        Problem::new(
            Code::Failed,
            "NotStarted",
            "Jupyter did not start; is JupyterLab installed there?",
        )
        .of(host.to_string())
        .next(format!("devctl logs {} --job {job}", host.workspace))
    })
}

/// Forwards a port of this machine to the server until the user ends it.
async fn forward(
    call: Call<'_>,
    host: &Host,
    given: &Jupyter,
    job: &str,
    server: &Server,
) -> Result<u8, Problem> {
    let port = local_port(call, given)?;
    let address = server.address(port);
    let forward = format!("-L127.0.0.1:{port}:127.0.0.1:{}", server.port);
    let mut flags = vec![
        "-N".to_owned(),
        "-o".into(),
        "ExitOnForwardFailure=yes".into(),
        forward,
    ];
    if let Some(opener) = connect::opener(call).filter(|_| !given.no_open) {
        let page = page(call, host, &address)?;
        // ssh runs it when the port is there. The address is in the file, and not in an argument.
        let open = format!("{opener} {} >/dev/null 2>&1 &", shell(&page));
        flags.extend(["-o".into(), "PermitLocalCommand=yes".into()]);
        flags.extend(["-o".into(), format!("LocalCommand={}", tokens(&open))]);
    }
    let terminal = call.host.terminal;
    terminal.data(&Line::from(address))?;
    let line = format!(
        "Ctrl-C ends the connection; Jupyter goes on until the machine stops, or devctl cancel {} {job}",
        given.name
    );
    terminal.note(&line.into());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = call.with_ssh(|client| client.ssh(host, &flags, &[]))?;
    call.run(&program).await
}

/// Writes a page that leads to an address, as Jupyter does on a desktop. Only its owner may read it.
fn page(call: Call<'_>, host: &Host, address: &str) -> Result<String, Problem> {
    let path = call.host.files.state().join(format!("jupyter-{host}.html"));
    let page = format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><title>{host}</title>\n\
         <meta http-equiv=\"refresh\" content=\"0;url={address}\">\n\
         <a href=\"{address}\">JupyterLab on {host}</a>\n"
    );
    let written = call.host.files.replace(&path, &page);
    let shown = path.display().to_string();
    written
        .map_err(|error| Problem::new(Code::Failed, "File", format!("{shown}: {error}")))
        .map(|()| shown)
}

fn local_port(call: Call<'_>, given: &Jupyter) -> Result<u16, Problem> {
    let free = || {
        let free = call.host.reach.free_port();
        free.map_err(|error| {
            Problem::new(Code::Failed, "Port", format!("there is no port: {error}"))
                .field("--port")
                .next("choose one with --port")
        })
    };
    given.port.map_or_else(free, Ok)
}

/// Runs Jupyter without an agent: it ends with the connection. It prints its address itself.
async fn foreground(call: Call<'_>, host: &Host, given: &Jupyter) -> Result<u8, Problem> {
    let port = local_port(call, given)?;
    let forward = format!("-L127.0.0.1:{port}:127.0.0.1:{port}");
    let flags = ["-t", "-o", "ExitOnForwardFailure=yes", &forward];
    let port = port.to_string();
    let command = [
        "jupyter",
        "lab",
        "--no-browser",
        "--ip",
        "127.0.0.1",
        "--port",
    ];
    let command = command
        .into_iter()
        .chain([&*port, "--ServerApp.port_retries=0"]);
    let command: Vec<String> = command.map(str::to_owned).collect();
    let program = call.with_ssh(|client| client.ssh(host, &flags, &command))?;
    let line =
        "no agent runs there: Jupyter ends with this connection; open the address that it prints";
    call.host.terminal.note(&Line::from(line));
    call.run(&program).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_answer_of_a_workspace_cannot_change_the_command_line_or_the_page() {
        let address = |description: &Value| {
            let server = Server::read(&description.to_string());
            server.map(|server| server.address(41000))
        };
        assert_eq!(
            address(&json!({"port": 8889, "token": "0af3", "sock": ""})).as_deref(),
            Some("http://127.0.0.1:41000/lab?token=0af3")
        );
        for token in ["\"><script>", "a b", "0a\nx", "\u{1b}[2J", "a&b"] {
            let bare = address(&json!({"port": 8889, "token": token}));
            assert_eq!(
                bare.as_deref(),
                Some("http://127.0.0.1:41000/lab"),
                "{token:?}"
            );
        }
        for port in [json!(0), json!(70_000), json!("22"), json!(-1), Value::Null] {
            assert_eq!(address(&json!({"port": port})), None, "{port}");
        }
    }

    #[test]
    fn a_server_that_runs_is_used_again() {
        let jobs = |state: &str, id: &str| [json!({"id": id, "state": state})];
        assert_eq!(
            running(&jobs("Running", "jupyter-lab-2")).as_deref(),
            Some("jupyter-lab-2")
        );
        assert_eq!(running(&jobs("Finished", "jupyter-lab-2")), None);
        assert_eq!(running(&jobs("Lost", "jupyter-lab-2")), None);
        assert_eq!(running(&jobs("Running", "jupyter-lab-extension-1")), None);
    }
}
