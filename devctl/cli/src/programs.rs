//! Other programs of this machine.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use async_trait::async_trait;
use devctl_core::host::{Piped, Program, Programs, Ran};
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdout};

/// The programs that the user has installed.
pub(crate) struct Installed;

#[async_trait]
impl Programs for Installed {
    /// The program takes devctl's place, so signals and the exit code are its own.
    async fn run(&self, program: &Program) -> io::Result<i32> {
        Err(command(program).exec())
    }

    async fn capture(&self, program: &Program) -> io::Result<Ran> {
        let mut command = command(program);
        command.stdin(Stdio::null());
        let output = tokio::process::Command::from(command).output().await?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Ran {
            code: code(output.status),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        })
    }

    async fn piped(&self, program: &Program) -> io::Result<Piped> {
        let (mut child, mut output) = started(program)?;
        let bytes = tokio::io::copy(&mut output, &mut tokio::io::stdout()).await?;
        tokio::io::stdout().flush().await?;
        let code = code(child.wait().await?);
        Ok(Piped { code, bytes })
    }

    fn lines(&self, program: &Program) -> io::Result<BoxStream<'static, io::Result<String>>> {
        let (child, output) = started(program)?;
        let lines = BufReader::new(output).lines();
        // The child is a part of the stream's state, and so ends with it.
        let stream = futures::stream::try_unfold((lines, child), |(mut lines, child)| async move {
            let line = lines.next_line().await?;
            Ok(line.map(|line| (line, (lines, child))))
        });
        Ok(stream.boxed())
    }

    fn own_path(&self) -> io::Result<PathBuf> {
        std::env::current_exe()
    }

    fn is_installed(&self, name: &str) -> bool {
        let is_program = |path: PathBuf| path.join(name).is_file();
        if name.contains('/') {
            return PathBuf::from(name).is_file();
        }
        std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(is_program))
    }
}

/// Starts a program whose output is read here. The program ends when it is dropped.
fn started(program: &Program) -> io::Result<(Child, ChildStdout)> {
    let mut child = tokio::process::Command::from(command(program))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = child.stdout.take();
    let output = output.ok_or_else(|| io::Error::other("it has no output"))?;
    Ok((child, output))
}

/// The exit code as shells give it: 128 and more for signals.
fn code(status: ExitStatus) -> i32 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).unwrap_or(1)
}

fn command(program: &Program) -> std::process::Command {
    let mut command = std::process::Command::new(&program.name);
    command.args(&program.arguments);
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    command
}
