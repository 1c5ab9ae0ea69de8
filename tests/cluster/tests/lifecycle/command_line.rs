//! Runs `cargo xtask` as users run it.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Takes the cluster down when the test ends, also after a failure.
pub(crate) struct Guard(&'static str);

impl Guard {
    /// Takes down a cluster that an earlier, killed run has left. Takes this cluster down on drop.
    pub(crate) fn of(name: &'static str) -> Self {
        xtask(&["cluster", "down", "--name", name]);
        Self(name)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let ended = run(&["cluster", "down", "--name", self.0]);
        if !std::thread::panicking() {
            assert!(ended.status.success(), "{}", said(&ended));
        }
    }
}

/// Runs a command that must succeed, and returns its output.
pub(crate) fn xtask(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}:\n{}", said(&output));
    said(&output)
}

/// Runs a command that must fail, and returns its output.
pub(crate) fn xtask_fails(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(
        !output.status.success(),
        "{arguments:?}:\n{}",
        said(&output)
    );
    said(&output)
}

/// The report of `status -o json`. The exit status must agree with the report's `up`.
pub(crate) fn status(name: &str) -> serde_json::Value {
    let output = run(&["cluster", "status", "--name", name, "-o", "json"]);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    assert_eq!(report["up"], output.status.success(), "{report:#}");
    report
}

/// Waits until the report fulfils the condition, and returns the report.
pub(crate) fn await_status(
    name: &str,
    wanted: impl Fn(&serde_json::Value) -> bool,
) -> serde_json::Value {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let report = status(name);
        if wanted(&report) {
            return report;
        }
        assert!(Instant::now() < deadline, "{report:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Starts `up` and returns while `up` is still running. The process leads a process group, like the
/// commands in a terminal.
pub(crate) fn begin_up(name: &str) -> Child {
    let mut up = command(&["cluster", "up", "--name", name]);
    up.process_group(0);
    up.stdout(Stdio::piped()).stderr(Stdio::piped());
    up.spawn().unwrap()
}

/// Waits until the part runs, and returns its process number.
pub(crate) fn await_process(name: &str, part: &str) -> i64 {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let output = run(&["cluster", "status", "--name", name, "-o", "json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let parts = report["parts"].as_array().into_iter().flatten();
        let mut found = parts.filter(|row| row["name"] == part);
        if let Some(pid) = found.find_map(|row| row["pid"].as_i64()) {
            return pid;
        }
        assert!(Instant::now() < deadline, "{}", said(&output));
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until the command ends. It must fail. Returns its output.
pub(crate) fn fails(command: Child) -> String {
    let output = command.wait_with_output().unwrap();
    assert!(!output.status.success(), "{}", said(&output));
    said(&output)
}

/// A call of xtask. `$XTASK` names a built xtask; without the variable, cargo builds and runs the
/// xtask of this checkout.
fn command(arguments: &[&str]) -> Command {
    let mut command = if let Some(program) = std::env::var_os("XTASK") {
        Command::new(program)
    } else {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.arg("xtask");
        cargo
    };
    command
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
