//! Runs `cargo xtask` as its users do.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Takes the cluster down when the test ends, however it ends.
pub(crate) struct Guard(&'static str);

impl Guard {
    pub(crate) fn of(name: &'static str) -> Self {
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

/// Runs a command that must succeed, and returns what it said.
pub(crate) fn xtask(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}:\n{}", said(&output));
    said(&output)
}

/// Runs a command that must fail, and returns what it said.
pub(crate) fn xtask_fails(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(
        !output.status.success(),
        "{arguments:?}:\n{}",
        said(&output)
    );
    said(&output)
}

/// `status -o json`, whatever its exit status.
pub(crate) fn status(name: &str) -> serde_json::Value {
    let output = run(&["cluster", "status", "--name", name, "-o", "json"]);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    assert_eq!(report["up"], output.status.success(), "{report:#}");
    report
}

/// Waits until the status is as wanted.
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

/// `$XTASK` names a built xtask; without it, cargo builds and runs this one.
fn run(arguments: &[&str]) -> Output {
    let mut command = std::env::var_os("XTASK").map_or_else(
        || {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.arg("xtask");
            cargo
        },
        Command::new,
    );
    command
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args(arguments)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
