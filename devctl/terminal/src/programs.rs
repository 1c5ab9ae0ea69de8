//! Programs whose output the terminal shows, or a command of devctl reads.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use devctl_core::host::{Piped, Ran};
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdout};

/// Runs a program with the terminal, and returns its exit code.
pub async fn run(command: Command) -> io::Result<i32> {
    let mut command = tokio::process::Command::from(command);
    command.status().await.map(code)
}

/// Runs a program and returns its exit code, standard output and standard error.
pub async fn capture(mut command: Command) -> io::Result<Ran> {
    command.stdin(Stdio::null());
    let output = tokio::process::Command::from(command).output().await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ran {
        code: code(output.status),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    })
}

/// Runs a program whose output goes to standard output, and says how much that was.
pub async fn piped(command: Command) -> io::Result<Piped> {
    let (mut child, mut output) = started(command)?;
    let bytes = tokio::io::copy(&mut output, &mut tokio::io::stdout()).await?;
    tokio::io::stdout().flush().await?;
    let code = code(child.wait().await?);
    Ok(Piped { code, bytes })
}

/// Starts a program, and reads its output line by line. It ends when the stream is dropped.
pub fn lines(command: Command) -> io::Result<BoxStream<'static, io::Result<String>>> {
    let (child, output) = started(command)?;
    // The child is a part of the stream's state, and so ends with it.
    let state = (BufReader::new(output).lines(), child);
    let stream = futures::stream::try_unfold(state, |(mut lines, child)| async move {
        let line = lines.next_line().await?;
        Ok(line.map(|line| (line, (lines, child))))
    });
    Ok(stream.boxed())
}

/// Starts a program whose output is read here. The program ends when it is dropped.
fn started(command: Command) -> io::Result<(Child, ChildStdout)> {
    let mut child = tokio::process::Command::from(command)
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
