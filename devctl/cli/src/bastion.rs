//! The API server and the workspaces, by way of a bastion. The user's own ssh logs in there, so keys,
//! agents and `~/.ssh/config` work as everywhere.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use bastion_core::calls::Caller;
use bastion_core::protocol::{Answer, Call, Reply};
use devctl_core::grammar::Shared;
use devctl_core::host::{Destination, Reach, Refused};
use devctl_core::name::Host;
use devctl_core::problem::{Code, Problem};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

/// The command of the bastion that answers calls.
const CALLS: &str = "api";

/// A login at the bastion that answers calls.
pub(crate) struct Door {
    namespace: String,
    line: Mutex<Line>,
}

struct Line {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// It ends when devctl does.
    _ssh: Child,
}

impl Door {
    /// Logs in at the bastion.
    pub(crate) async fn open(shared: &Shared, bastion: &str) -> Result<Self, Problem> {
        let away = |message: String| {
            Problem::new(Code::OutOfReach, "Bastion", message)
                .of(bastion)
                .next(format!("try it yourself: ssh {bastion} whoami"))
        };
        let mut ssh = ssh(shared.identity.as_deref(), bastion, &[CALLS])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| away(format!("ssh: {error}")))?;
        let (Some(to), Some(from)) = (ssh.stdin.take(), ssh.stdout.take()) else {
            return Err(away("ssh has no streams".into()));
        };
        let mut line = Line {
            to,
            from: BufReader::new(from),
            _ssh: ssh,
        };
        match line.read().await {
            Ok(Answer::Welcome(welcome)) => Ok(Self {
                namespace: welcome.namespace,
                line: Mutex::new(line),
            }),
            Ok(_) => Err(away("it answered something else".into())),
            Err(error) => Err(away(format!("the login failed: {error}"))),
        }
    }
}

#[async_trait]
impl Caller for Door {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    async fn call(&self, call: Call) -> Result<Reply, Refused> {
        let away = |message: String| Refused {
            message: format!("the bastion: {message}"),
            ..Refused::default()
        };
        let mut line = self.line.lock().await;
        match line.ask(&call).await {
            Ok(Answer::Api(result)) => result,
            Ok(Answer::Refused(problem)) => Err(away(problem.message)),
            Ok(_) => Err(away("it answered something else".to_owned())),
            Err(error) => Err(away(error.to_string())),
        }
    }
}

impl Line {
    async fn ask(&mut self, call: &Call) -> io::Result<Answer> {
        let mut line = serde_json::to_vec(call)?;
        line.push(b'\n');
        self.to.write_all(&line).await?;
        self.to.flush().await?;
        self.read().await
    }

    async fn read(&mut self) -> io::Result<Answer> {
        let mut line = Vec::new();
        if self.from.read_until(b'\n', &mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_slice(&line)?)
    }
}

/// The user's ssh, with a command of the bastion.
fn ssh(identity: Option<&Path>, bastion: &str, words: &[&str]) -> Command {
    let mut ssh = Command::new("ssh");
    if let Some(identity) = identity {
        ssh.arg("-i").arg(identity);
    }
    ssh.args(["-T", "--", bastion]).args(words);
    ssh
}

/// The way to workspaces through the bastion.
pub(crate) struct Through {
    bastion: String,
    identity: Option<std::path::PathBuf>,
}

impl Through {
    /// The way through a bastion.
    pub(crate) fn new(shared: &Shared, bastion: &str) -> Self {
        Self {
            bastion: bastion.to_owned(),
            identity: shared.identity.clone(),
        }
    }

    fn connection(&self, host: &Host) -> Command {
        let host = host.to_string();
        ssh(self.identity.as_deref(), &self.bastion, &["connect", &host])
    }
}

#[async_trait]
impl Reach for Through {
    async fn connect(&self, host: &Host, _: &Destination) -> io::Result<()> {
        let ended = self.connection(host).status().await?;
        if ended.success() {
            return Ok(());
        }
        Err(io::Error::other("the bastion did not connect"))
    }

    async fn answers(&self, host: &Host, _: &Destination, longest: Duration) -> io::Result<()> {
        let mut ssh = self
            .connection(host)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut output = ssh
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("ssh has no output"))?;
        let mut first = [0];
        let read = tokio::time::timeout(longest, output.read(&mut first)).await;
        match read.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn free_port(&self) -> io::Result<u16> {
        crate::reach::free_port()
    }
}
