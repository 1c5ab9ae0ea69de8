//! Tests of the hooks that the agent runs before a machine stops.

use std::fs;
use std::process::Command;

use crate::machine::{Machine, OWNER, own, until};
use crate::server::metadata;

const HOOK: &str = "/home/developer/.config/gpu-workspace/pre-stop";
const LOG: &str = "/var/log/gpu-workspace-hooks.log";
const SCRIPT: &str = "#!/bin/sh\n\
    echo \"$(id -u) $WORKSPACE_STOP_REASON $WORKSPACE_STOP_SECONDS $SECRET\" >>\"$HOME/told\"\n\
    echo saved\n";

fn machine() -> Machine {
    let machine = Machine::new();
    machine.script(HOOK, SCRIPT);
    own(&machine.at("/home/developer"));
    machine
}

fn told(machine: &Machine) -> String {
    fs::read_to_string(machine.at("/home/developer/told")).unwrap_or_default()
}

fn stop(machine: &Machine, arguments: &[&str]) {
    let mut command = machine.agent(&["pre-stop"]);
    command.args(arguments).env("SECRET", "of-the-agents");
    let path = format!("{}:{}", machine.at("/bin").display(), env!("PATH"));
    let stopped = command.env("PATH", path).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
}

#[test]
fn a_hook_runs_once_before_a_stop_as_the_owner() {
    let machine = machine();
    stop(&machine, &[]);
    stop(&machine, &[]);
    let times: Vec<String> = told(&machine).lines().map(str::to_owned).collect();
    assert_eq!(times.len(), 1, "{times:?}");
    let words: Vec<&str> = times[0].split_whitespace().collect();
    assert_eq!(words[..2], [OWNER.to_string().as_str(), "stop"]);
    assert!(
        ["109", "110"].contains(&words[2]) && words.len() == 3,
        "{words:?}"
    );
    let log = fs::read_to_string(machine.at(LOG)).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].ends_with("(stop): starts"), "{log}");
    assert_eq!(lines[1], "saved");
    assert!(
        lines[2].ends_with("(stop): ended with exit status: 0"),
        "{log}"
    );
}

#[test]
fn the_platforms_hook_runs_first_and_shares_its_time_with_the_owners() {
    let machine = machine();
    machine.script(
        "/etc/gpu-workspace/hooks/pre-stop",
        "#!/bin/sh\nexec sleep 1000\n",
    );
    stop(&machine, &["--timeout=1"]);
    let log = fs::read_to_string(machine.at(LOG)).unwrap();
    assert!(
        log.contains("hooks/pre-stop (stop): was ended after"),
        "{log}"
    );
    assert!(
        log.ends_with("gpu-workspace/pre-stop (stop): no time was left\n"),
        "{log}"
    );
    assert_eq!(told(&machine), "");
}

#[test]
fn a_restart_of_the_agent_alone_runs_no_hook() {
    let machine = machine();
    machine.script("/bin/systemctl", "#!/bin/sh\necho running\n");
    stop(&machine, &["--only-at-shutdown"]);
    assert_eq!(told(&machine), "");
    machine.script("/bin/systemctl", "#!/bin/sh\necho stopping\nexit 1\n");
    stop(&machine, &["--only-at-shutdown"]);
    assert!(told(&machine).contains(" stop "));
}

#[test]
fn an_interruption_runs_the_hook_at_once_and_the_stop_that_follows_does_not() {
    let machine = machine();
    let action = r#"{"action": "terminate", "time": "2999-01-01T00:00:00Z"}"#;
    let imds = metadata(move |path| (path == "spot/instance-action").then(|| action.to_owned()));
    let metadata = format!("--metadata-endpoint={}", imds.url());
    let _watch = machine.watch(&["--to=ec2", "--ec2-endpoint=http://127.0.0.1:9", &metadata]);
    until("the hook to end", || {
        let log = fs::read_to_string(machine.at(LOG)).ok()?;
        log.contains("(interruption): ended with").then_some(())
    });
    stop(&machine, &[]);
    let told = told(&machine);
    assert!(
        told.starts_with(&format!("{OWNER} interruption 1")),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_pod_saves_work_without_root() {
    let machine = machine();
    let run = machine.at("/run/gpu-workspace-agent");
    fs::create_dir_all(&run).unwrap();
    own(&run);
    let agent = machine.agent(&["pre-stop", "--run-dir=/run/gpu-workspace-agent"]);
    let mut owner = Command::new("setpriv");
    owner.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    owner.arg(agent.get_program()).args(agent.get_args());
    let stopped = owner.output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(told(&machine).starts_with(&format!("{OWNER} stop 1")));
    let log = fs::read_to_string(run.join("hooks.log")).unwrap();
    assert!(log.contains("\nsaved\n"), "{log}");
}

#[test]
fn a_machine_without_hooks_stops_without_an_error() {
    let machine = Machine::new();
    machine.write(HOOK, "not executable");
    stop(&machine, &[]);
    assert_eq!(fs::read_to_string(machine.at(LOG)).unwrap(), "");
}
