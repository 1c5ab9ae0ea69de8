//! Jobs that go on when the session ends.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::machine::{Machine, until};

/// Moments at which the supervisor is killed, in milliseconds after the start of its job.
const KILLS: [u64; 10] = [0, 1, 2, 5, 10, 20, 40, 80, 160, 320];

struct Jobs {
    machine: Machine,
    folder: PathBuf,
}

impl Jobs {
    fn new() -> Self {
        let machine = Machine::new();
        fs::create_dir_all(machine.at("/run/gpu-workspace/jobs")).unwrap();
        let folder = machine.at("/home/developer/jobs");
        Self { machine, folder }
    }

    fn job(&self, arguments: &[&str]) -> Command {
        let mut command = self.machine.agent(&["job"]);
        command
            .args(arguments)
            .env("GPU_WORKSPACE_JOBS", &self.folder);
        command
    }

    fn says(&self, arguments: &[&str]) -> Output {
        self.job(arguments).output().unwrap()
    }

    fn start(&self, script: &str) -> String {
        let said = self.says(&["start", "--name", "train", "--", "sh", "-c", script]);
        assert!(
            said.status.success(),
            "{}",
            String::from_utf8_lossy(&said.stderr)
        );
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    }

    fn state(&self, id: &str) -> Value {
        let said = self.says(&["list", "-o", "json"]);
        let listed: Value = serde_json::from_slice(&said.stdout).unwrap();
        let jobs = listed["jobs"].as_array().unwrap();
        jobs.iter().find(|job| job["id"] == id).unwrap().clone()
    }

    fn becomes(&self, id: &str, state: &str) -> Value {
        until(&format!("{id} to be {state}"), || {
            Some(self.state(id)).filter(|job| job["state"] == state)
        })
    }

    fn output(&self, id: &str) -> String {
        String::from_utf8(self.says(&["logs", id]).stdout).unwrap()
    }

    /// The process group of a job, which is its first process.
    fn group(&self, id: &str) -> i32 {
        let record = fs::read(self.folder.join(id).join("job.json")).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        i32::try_from(record["group"].as_i64().unwrap()).unwrap()
    }
}

fn stat(process: i32) -> Option<(String, i32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some((fields[0].to_owned(), fields[1].parse().ok()?))
}

fn runs(process: i32) -> bool {
    stat(process).is_some_and(|(state, _)| state != "Z")
}

#[test]
fn a_job_that_does_not_count_is_kept_and_lets_the_machine_become_idle() {
    let jobs = Jobs::new();
    let _watch = jobs.machine.watch(&[]);
    jobs.machine.becomes("job", "Idle");
    let said = jobs.says(&[
        "start", "--no-use", "--name", "server", "--", "sleep", "300",
    ]);
    assert!(said.status.success(), "{said:?}");
    jobs.becomes("server-1", "Running");
    let counted = jobs.start("sleep 300");
    let active = jobs.machine.becomes("job", "Active");
    assert!(jobs.says(&["stop", &counted]).status.success());
    jobs.machine.becomes("job", "Idle");
    let status = jobs.machine.status().unwrap();
    assert_eq!(status["jobs"], serde_json::json!([]), "{active}");
    assert_eq!(jobs.state("server-1")["state"], "Running");
    assert!(jobs.says(&["stop", "server-1"]).status.success());
    jobs.becomes("server-1", "Finished");
}

#[test]
fn a_job_outlives_its_session_and_its_output_and_code_arrive() {
    let jobs = Jobs::new();
    let gate = jobs.machine.at("/gate");
    let script = format!(
        "echo begun; echo wrong >&2; while ! [ -e {} ]; do sleep 0.05; done; exit 3",
        gate.display()
    );
    // The session is a process group of its own, which is hung up.
    let id = jobs.start(&script);
    assert_eq!(id, "train-1");
    assert_eq!(jobs.state(&id)["state"], "Running");
    until("output", || {
        (jobs.output(&id) == "begun\nwrong\n").then_some(())
    });
    let mut follower = jobs
        .job(&["logs", "--follow", &id])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    fs::write(gate, "").unwrap();
    let waited = jobs.says(&["wait", &id]);
    assert_eq!(waited.status.code(), Some(3));
    let job = jobs.state(&id);
    assert_eq!(
        (job["state"].as_str(), job["code"].as_u64()),
        (Some("Finished"), Some(3))
    );
    assert!(follower.wait().unwrap().success(), "it ends with the job");
    assert_eq!(jobs.says(&["logs", "--from", "6", &id]).stdout, b"wrong\n");
    assert_eq!(jobs.start("true"), "train-2");
}

#[test]
fn a_killed_supervisor_leaves_no_job_that_is_finished_or_that_runs_unregistered() {
    let jobs = Jobs::new();
    for moment in KILLS {
        let id = jobs.start("exec sleep 300");
        let group = jobs.group(&id);
        thread::sleep(Duration::from_millis(moment));
        let (_, supervisor) = stat(group).unwrap();
        kill(Pid::from_raw(supervisor), Signal::SIGKILL).unwrap();
        let job = jobs.becomes(&id, "Lost");
        assert_eq!(job["code"], Value::Null, "after {moment} ms");
        assert!(
            !runs(group),
            "after {moment} ms it runs on, and nobody keeps its output"
        );
        assert_eq!(jobs.says(&["wait", &id]).status.code(), Some(125));
    }
}

#[test]
fn a_part_of_a_job_that_survives_its_supervisor_keeps_the_job_registered() {
    let jobs = Jobs::new();
    let survivor = jobs.machine.at("/survivor");
    let script = format!(
        "setsid sh -c 'echo $$ > {}; exec sleep 300' & wait",
        survivor.display()
    );
    let id = jobs.start(&script);
    let survivor: i32 = until("the survivor", || {
        fs::read_to_string(&survivor).ok()?.trim().parse().ok()
    });
    let (_, supervisor) = stat(jobs.group(&id)).unwrap();
    kill(Pid::from_raw(supervisor), Signal::SIGKILL).unwrap();
    until("the command to end", || {
        (!runs(jobs.group(&id))).then_some(())
    });
    assert_eq!(jobs.state(&id)["state"], "Running");
    kill(Pid::from_raw(survivor), Signal::SIGKILL).unwrap();
    jobs.becomes(&id, "Lost");
}

#[test]
fn a_job_that_ends_with_its_machine_is_lost() {
    let jobs = Jobs::new();
    let id = jobs.start("exec sleep 300");
    let (_, supervisor) = stat(jobs.group(&id)).unwrap();
    // As systemd and the kubelet do before they kill what is left.
    kill(Pid::from_raw(supervisor), Signal::SIGTERM).unwrap();
    assert_eq!(jobs.becomes(&id, "Lost")["code"], Value::Null);
    assert_eq!(jobs.says(&["wait", &id]).status.code(), Some(125));
}

#[test]
fn a_replaced_machine_shows_its_jobs_as_lost() {
    let jobs = Jobs::new();
    let id = jobs.start("exec sleep 300");
    let group = jobs.group(&id);
    // The next machine has the same home and an empty /run.
    fs::remove_dir_all(jobs.machine.at("/run/gpu-workspace/jobs")).unwrap();
    assert_eq!(jobs.state(&id)["state"], "Lost");
    kill(Pid::from_raw(group), Signal::SIGKILL).unwrap();
}

#[test]
fn a_job_ends_when_it_is_stopped_even_if_it_ignores_that() {
    let jobs = Jobs::new();
    let polite = jobs.start("trap 'echo bye; exit 5' TERM; echo on; while :; do sleep 0.05; done");
    until("output", || {
        jobs.output(&polite).contains("on").then_some(())
    });
    assert!(jobs.says(&["stop", &polite]).status.success());
    assert_eq!(jobs.state(&polite)["code"], 5);
    assert!(jobs.output(&polite).ends_with("bye\n"));
    let stubborn = jobs.start("trap '' TERM; echo on; while :; do sleep 0.05; done");
    until("output", || {
        jobs.output(&stubborn).contains("on").then_some(())
    });
    assert!(
        jobs.says(&["stop", "--grace", "1", &stubborn])
            .status
            .success()
    );
    assert_eq!(jobs.state(&stubborn)["code"], 137);
}

#[test]
fn a_gibibyte_of_output_keeps_its_end_and_its_size() {
    let jobs = Jobs::new();
    let id = jobs.start("head -c 1073741824 /dev/zero; echo; echo the end");
    assert_eq!(jobs.says(&["wait", &id]).status.code(), Some(0));
    let files = fs::read_dir(jobs.folder.join(&id)).unwrap();
    let sizes: u64 = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(sizes < 130 * 1024 * 1024, "{sizes} bytes");
    let end = jobs.says(&["logs", "--from", "1073741824", &id]);
    assert_eq!(end.stdout, b"\nthe end\n");
}

#[test]
fn a_full_disk_stops_no_job_and_hides_no_result() {
    let jobs = Jobs::new();
    fs::create_dir_all(&jobs.folder).unwrap();
    let agent = env!("CARGO_BIN_EXE_gpu-workspace-agent");
    let script = format!(
        "mount -t tmpfs -o size=256k tmpfs {folder} && export GPU_WORKSPACE_JOBS={folder} && \
         id=$({agent} --root {root} job start -- sh -c 'head -c 1000000 /dev/zero; echo done; exit 9') && \
         {agent} --root {root} job wait $id; echo code $?; \
         {agent} --root {root} job list -o json",
        folder = jobs.folder.display(),
        root = jobs.machine.root.display(),
    );
    let said = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(text.starts_with("code 9\n"), "{text}{wrong}");
    assert!(text.contains("\"Finished\""), "{text}");
}

#[test]
fn a_job_that_cannot_be_registered_does_not_start() {
    let jobs = Jobs::new();
    fs::remove_dir_all(jobs.machine.at("/run/gpu-workspace/jobs")).unwrap();
    let trace = jobs.machine.at("/trace");
    let script = format!("touch {}", trace.display());
    let said = jobs.says(&["start", "--", "sh", "-c", &script]);
    assert_eq!(said.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&said.stderr).contains("does the agent run here?"));
    assert!(!trace.exists());
    assert_eq!(
        jobs.says(&["list"])
            .stdout
            .split(|byte| *byte == b'\n')
            .count(),
        2
    );
}

#[test]
fn a_command_that_does_not_exist_says_so_in_its_output() {
    let jobs = Jobs::new();
    let said = jobs.says(&["start", "--", "/no/such/program"]);
    let id = String::from_utf8(said.stdout).unwrap().trim().to_owned();
    assert_eq!(jobs.says(&["wait", &id]).status.code(), Some(127));
    assert!(jobs.output(&id).contains("/no/such/program: No such file"));
}
