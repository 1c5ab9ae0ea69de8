//! Tests of jobs: a command that `run` starts counts as use while it runs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::machine::{Machine, Running, until};

fn pid(running: &Running) -> Pid {
    Pid::from_raw(i32::try_from(running.0.id()).unwrap())
}

/// Starts a job that creates a file and then runs the shell commands in `then`. Returns when the
/// file exists. The job's standard input stays open until the test closes it.
fn job(machine: &Machine, then: &str) -> Running {
    let ready = machine.at("/ready");
    let script = format!(": >{}; {then}", ready.display());
    let mut command = machine.agent(&["run", "--name", "training", "--", "sh", "-c", &script]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let running = Running(child.unwrap());
    until("the job to run", || ready.exists().then_some(()));
    running
}

#[test]
fn a_machine_is_used_while_a_job_runs() {
    let machine = Machine::new();
    let _watch = machine.watch(&[]);
    machine.becomes("job", "Idle");
    let mut running = job(&machine, "read line");
    machine.becomes("job", "Active");
    let status = machine.status().unwrap();
    assert_eq!(status["jobs"][0]["name"], "training", "{status}");
    drop(running.0.stdin.take());
    running.0.wait().unwrap();
    let idle = machine.becomes("job", "Idle");
    assert!(idle["lastActive"].is_string(), "{idle}");
}

#[test]
fn a_job_that_is_killed_does_not_keep_the_machine_for_ever() {
    let machine = Machine::new();
    let _watch = machine.watch(&[]);
    machine.becomes("job", "Idle");
    let mut running = job(&machine, "read line");
    machine.becomes("job", "Active");
    running.kill();
    machine.becomes("job", "Idle");
    until("its file to go", || {
        let mut files = fs::read_dir(machine.at("/run/gpu-workspace/jobs")).unwrap();
        files.next().is_none().then_some(())
    });
}

#[test]
fn scripts_see_the_exit_code_of_the_command_itself() {
    let machine = Machine::new();
    let run = |arguments: &[&str]| {
        let all = [&["run", "--"], arguments].concat();
        machine.says(&all).status.code()
    };
    assert_eq!(
        run(&["true"]),
        Some(125),
        "no agent, no folder: it would not count"
    );
    fs::create_dir_all(machine.at("/run/gpu-workspace/jobs")).unwrap();
    assert_eq!(run(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(run(&["sh", "-c", "kill -KILL $$"]), Some(137));
    assert_eq!(run(&["/no/such/program"]), Some(127));
}

#[test]
fn a_signal_reaches_the_command() {
    let machine = Machine::new();
    fs::create_dir_all(machine.at("/run/gpu-workspace/jobs")).unwrap();
    let script = "trap 'kill $!; echo saved; exit 3' TERM; sleep 30 & echo ready; wait";
    let mut running = job(&machine, script);
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    kill(pid(&running), Signal::SIGTERM).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "saved");
    assert_eq!(running.0.wait().unwrap().code(), Some(3));
}

/// The command signals its parent before the agent returns from the call that started the command.
#[test]
fn a_signal_that_comes_at_once_reaches_the_command() {
    let machine = Machine::new();
    fs::create_dir_all(machine.at("/run/gpu-workspace/jobs")).unwrap();
    let script = "trap 'exit 3' TERM; kill -TERM $PPID; for _ in $(seq 500); do sleep 0.01; done";
    for _ in 0..50 {
        let mut run = machine.agent(&["run", "--", "sh", "-c", script]);
        let ended = run.status().unwrap();
        assert_eq!(ended.code(), Some(3), "{ended:?}");
    }
}

#[test]
fn a_second_agent_in_a_shared_folder_is_the_whole_program() {
    let machine = Machine::new();
    fs::create_dir_all(machine.at("/shared")).unwrap();
    let folder = machine.at("/shared");
    let installed = machine.says(&["install", folder.to_str().unwrap()]);
    assert!(installed.status.success(), "{installed:?}");
    let copy = folder.join("gpu-workspace-agent");
    let own = env!("CARGO_BIN_EXE_gpu-workspace-agent");
    assert_eq!(fs::read(&copy).unwrap(), fs::read(own).unwrap());
    let mut version = Command::new(copy);
    assert!(version.arg("--version").output().unwrap().status.success());
}

/// The agent's container and the owner's container share a volume that another user owns.
#[test]
fn a_job_in_a_pod_is_seen_by_the_agent_beside_it() {
    let machine = Machine::new();
    let jobs = machine.at("/run/gpu-workspace/jobs");
    fs::create_dir_all(&jobs).unwrap();
    for folder in [&jobs, &machine.at("/run/gpu-workspace")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let agent = machine.agent(&["watch", "--sample-interval=1"]);
    let mut beside = Command::new("setpriv");
    beside.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    beside.arg(agent.get_program()).args(agent.get_args());
    let _watch = Running(beside.stdout(Stdio::null()).spawn().unwrap());
    machine.becomes("job", "Idle");
    let _job = job(&machine, "read line");
    machine.becomes("job", "Active");
}

#[test]
fn an_agent_ends_when_it_is_asked_to() {
    let machine = Machine::new();
    let mut watch = machine.watch(&[]);
    machine.becomes("job", "Idle");
    kill(pid(&watch), Signal::SIGTERM).unwrap();
    let ended = until("the agent to end", || watch_ended(&watch));
    assert!(ended, "{}", machine.log());
    assert!(watch.0.wait().unwrap().success());
}

/// Whether the process has ended. The test has not waited for the process yet, so the kernel still
/// lists it, as a zombie (state `Z`).
fn watch_ended(watch: &Running) -> Option<bool> {
    std::thread::sleep(Duration::from_millis(10));
    let stat = fs::read_to_string(format!("/proc/{}/stat", watch.0.id())).ok()?;
    stat.contains(") Z ").then_some(true)
}
