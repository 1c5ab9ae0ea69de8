//! The local cluster from `up` to `down`. The tests use clusters with names of their own.
//!
//! `cargo test --workspace --features local-cluster/cluster --test lifecycle`, as root.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod command_line;
mod gpus;
mod host;
mod kueue;
mod pods;
mod policies;
mod volumes;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use command_line::{Guard, await_process, begin_up, fails, xtask, xtask_fails};
use host::{Others, Snapshot};

/// On a small machine, tests that run at the same time would each take twice as long.
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

const NONE: [&str; 0] = [];

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn a_cluster_serves_reports_a_death_and_leaves_nothing() {
    let _alone = alone();
    let name = "lifecycle";
    let guard = Guard::of(name);
    let others = Others::now();
    let before = Snapshot::take(&others);

    let missing = xtask_fails(&["cluster", "env", "--name", name]);
    assert!(missing.contains("cluster up --name lifecycle"), "{missing}");

    xtask(&["cluster", "up", "--name", name]);
    let again = xtask(&["cluster", "up", "--name", name]);
    assert!(
        again.contains("cluster `lifecycle` is already up"),
        "{again}"
    );

    let cluster = local_cluster::Cluster::open(name).unwrap();
    let report = command_line::status(name);
    assert_eq!(report["up"], true, "{report:#}");
    assert!(
        report["parts"].as_array().unwrap().iter().all(|part| {
            part["state"] == "ready" && part["pid"].as_i64().is_some_and(host::runs)
        })
    );
    let processes = host::processes_in(&cluster.cgroup());
    assert!(processes.len() > 15, "only {} processes", processes.len());

    pods::a_pod_runs_and_is_reached(&cluster);
    volumes::a_volume_outlives_its_pod_and_ends_with_its_claim(&cluster);
    policies::pods_reach_each_other_only_as_the_policies_say(&cluster);
    gpus::pods_that_ask_for_emulated_gpus_run(&cluster);
    let changes = Snapshot::take(&others)
        .outside(&cluster)
        .changes_since(&before);
    assert_eq!(
        changes, NONE,
        "only interface, route and cgroup are the cluster's own"
    );

    let victim = report["parts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|part| part["name"] == "kube-scheduler")
        .unwrap();
    host::kill(victim["pid"].as_i64().unwrap());
    let dead = command_line::await_status(name, |report| report["up"] == false);
    let part = dead["parts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|part| part["name"] == "kube-scheduler")
        .unwrap();
    assert_eq!(part["state"], "dead", "{part:#}");
    assert!(
        part["detail"].as_str().unwrap().contains("SIGKILL"),
        "{part:#}"
    );
    let log = cluster.log("kube-scheduler").display().to_string();
    assert_eq!(part["log"], log.as_str());
    let half_up = xtask_fails(&["cluster", "up", "--name", name]);
    for word in [
        "kube-scheduler",
        "killed by signal 9",
        &log,
        "cluster down --name lifecycle",
    ] {
        assert!(half_up.contains(word), "{word} is not in:\n{half_up}");
    }

    xtask(&["cluster", "down", "--name", name]);
    let kept = cluster.state().last_logs();
    assert!(
        kept.join("kube-scheduler.log").exists(),
        "{}",
        kept.display()
    );
    assert!(!cluster.state().root().exists());
    let survivors: Vec<_> = processes.into_iter().filter(host::Process::runs).collect();
    assert!(survivors.is_empty(), "{survivors:?}");
    let changes = Snapshot::take(&others).changes_since(&before);
    assert_eq!(changes, NONE, "left behind");
    drop(guard);
}

#[test]
fn taking_one_cluster_down_does_not_disturb_its_neighbour() {
    let _alone = alone();
    let (one, two) = ("lifecycle-a", "lifecycle-b");
    let guards = [Guard::of(one), Guard::of(two)];
    for name in [one, two] {
        xtask(&["cluster", "up", "--name", name]);
    }
    let (first, second) = (
        local_cluster::Cluster::open(one).unwrap(),
        local_cluster::Cluster::open(two).unwrap(),
    );
    assert_ne!(first.registry(), second.registry());
    let before = host::processes_in(&second.cgroup());

    xtask(&["cluster", "down", "--name", one]);

    assert!(before.iter().all(host::Process::runs), "{before:?}");
    assert_eq!(command_line::status(two)["up"], true);
    pods::a_pod_runs_and_is_reached(&second);
    drop(guards);
}

#[test]
fn kueue_holds_back_what_names_no_queue_until_it_does() {
    let _alone = alone();
    let name = "lifecycle-kueue";
    let guard = Guard::of(name);
    xtask(&["cluster", "up", "--name", name]);
    for _ in ["installs", "brings in line"] {
        xtask(&["cluster", "install", "kueue", "--name", name]);
    }
    kueue::a_queue_lets_one_workload_after_the_other_run(
        &local_cluster::Cluster::open(name).unwrap(),
    );
    drop(guard);
}

#[test]
fn the_machines_of_a_running_emulator_are_nobodys_remains() {
    let _alone = alone();
    let unified = Path::new("/sys/fs/cgroup/unified");
    let root = if unified.exists() {
        unified
    } else {
        Path::new("/sys/fs/cgroup")
    };
    let group = |pid: u32| format!("{}/ec2-emulator-{pid}/i-1", root.display());
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let before = Snapshot::take(&Others::now());
    let came = [std::process::id(), ended.id()].map(|pid| {
        let path = group(pid);
        fs::create_dir_all(&path).unwrap();
        path
    });
    let changes = Snapshot::take(&Others::now()).changes_since(&before);
    for path in &came {
        let path = Path::new(path);
        fs::remove_dir(path).unwrap();
        fs::remove_dir(path.parent().unwrap()).unwrap();
    }
    let (runs, ended) = (&came[0], &came[1]);
    let is_in = |path: &String| changes.iter().any(|change| change.ends_with(path));
    assert!(is_in(ended) && !is_in(runs), "{changes:?}");
}

#[test]
fn the_interfaces_of_the_emulators_tests_are_nobodys_remains() {
    let _alone = alone();
    let theirs = format!("{}fe02", host::INTERFACES_OF_EMULATOR_TESTS);
    let others = "ec2-0af5fe02";
    let before = Snapshot::take(&Others::now());
    for (name, peer) in [(theirs.as_str(), "lifecycle-a"), (others, "lifecycle-b")] {
        let add = ["link", "add", name, "type", "veth", "peer", "name", peer];
        host::output("ip", &add);
    }
    let changes = Snapshot::take(&Others::now()).changes_since(&before);
    for name in [theirs.as_str(), others] {
        host::output("ip", &["link", "delete", name]);
    }
    let is_in = |name: &str| {
        let line = format!("+ link: {name}@");
        changes.iter().any(|change| change.starts_with(&line))
    };
    assert!(is_in(others) && !is_in(&theirs), "{changes:?}");
}

#[test]
fn ctrl_c_ends_a_start_and_leaves_nothing_and_the_next_one_comes_up() {
    let _alone = alone();
    let name = "lifecycle-ctrl-c";
    let guard = Guard::of(name);
    let others = Others::now();
    let before = Snapshot::take(&others);
    let up = begin_up(name);
    await_process(name, "etcd");
    host::interrupt(up.id());
    let said = fails(up);
    assert!(said.contains("interrupted"), "{said}");
    let changes = Snapshot::take(&others).changes_since(&before);
    assert_eq!(changes, NONE, "left behind");
    let missing = xtask_fails(&["cluster", "status", "--name", name]);
    assert!(missing.contains("cluster up --name"), "{missing}");

    // After SIGKILL a half-started cluster is left. The next start removes it.
    let up = begin_up(name);
    await_process(name, "etcd");
    host::kill(up.id().into());
    let killed = up.wait_with_output().unwrap();
    assert!(!killed.status.success());
    let again = xtask(&["cluster", "up", "--name", name]);
    assert!(again.contains("half up"), "{again}");
    drop(guard);
}

#[test]
fn a_part_that_dies_ends_the_up_that_waits_for_it() {
    let _alone = alone();
    let name = "lifecycle-crash";
    let guard = Guard::of(name);
    let up = begin_up(name);
    host::kill(await_process(name, "ec2-emulator"));
    let killed = Instant::now();
    let said = fails(up);
    // `up` must notice the dead part at once, and not wait for other parts or for its time limit.
    assert!(killed.elapsed() < Duration::from_secs(5), "{said}");
    for word in [
        "ec2-emulator ended: killed by signal 9 (SIGKILL)",
        "logs/ec2-emulator.log",
        "cluster down --name lifecycle-crash",
    ] {
        assert!(said.contains(word), "{word} is not in:\n{said}");
    }
    drop(guard);
}
