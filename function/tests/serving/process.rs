//! Runs the program.
#![allow(dead_code, reason = "every test binary uses its own part")]

use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

/// The longest time that a test waits for one thing.
pub const PATIENCE: Duration = Duration::from_secs(30);

const PROGRAM: &str = env!("CARGO_BIN_EXE_function-gpu-workspace");

/// The program with its flags, without the caller's environment.
pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    piped(command.args(arguments));
    command
}

/// The program with a limit of its open files, as the kubelet starts it on many nodes.
pub fn program_with_open_files(limit: u64, arguments: &[&str]) -> Command {
    let limited = format!("ulimit -n {limit} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, PROGRAM]).args(arguments);
    piped(&mut command);
    command
}

fn piped(command: &mut Command) {
    command.env_clear();
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.kill_on_drop(true);
}

/// The running program, after it has logged its address.
pub struct Running {
    /// The address of the gRPC server.
    pub address: SocketAddr,
    /// The address of the metrics, if the program serves them.
    pub metrics: Option<SocketAddr>,
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl Running {
    /// Starts the program without TLS and metrics, on a free port of the loopback interface.
    pub async fn insecure() -> Self {
        Self::start(&mut program(&[
            "--insecure",
            "--address=127.0.0.1:0",
            "--metrics-address=",
        ]))
        .await
    }

    /// Starts the program, and waits until it serves.
    pub async fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut running = Self {
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            metrics: None,
            child,
            log,
        };
        loop {
            let line = running.line().await;
            let said = &line["fields"];
            let address = || said["address"].as_str().unwrap().parse().unwrap();
            match said["message"].as_str() {
                Some("serving metrics") => running.metrics = Some(address()),
                Some("serving") => {
                    running.address = address();
                    return running;
                }
                _ => {}
            }
        }
    }

    /// Waits for a line of the log that contains all of the words.
    pub async fn said(&mut self, words: &[&str]) -> Value {
        loop {
            let line = self.line().await;
            if words.iter().all(|word| line.to_string().contains(word)) {
                return line;
            }
        }
    }

    async fn line(&mut self) -> Value {
        let line = timeout(PATIENCE, self.log.next_line()).await;
        let line = line.expect("the program says nothing").unwrap();
        let line = line.expect("the program ended");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"))
    }

    /// The number of the program's open files.
    pub fn open_files(&self) -> usize {
        let id = self.child.id().expect("the program ended");
        let files = std::fs::read_dir(format!("/proc/{id}/fd")).unwrap();
        files.count()
    }

    /// Sends the program a signal.
    pub fn signal(&self, signal: Signal) {
        let id = self.child.id().expect("the program ended");
        kill(Pid::from_raw(id.try_into().unwrap()), signal).unwrap();
    }

    /// Waits for the end of the program.
    pub async fn ended(&mut self) -> ExitStatus {
        let ended = timeout(PATIENCE, self.child.wait()).await;
        ended.expect("the program does not end").unwrap()
    }

    /// The answer of `/metrics`.
    pub async fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.metrics.unwrap()).await.unwrap();
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}
