//! Whole commands over a host in memory.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::process::Command;

use devctl_core::object::Kind;
use devctl_core::problem::Code;
use serde_json::{Value, json};

mod doctor;
mod world;

use world::{Homes, World};

fn claim(parameters: &Value) -> Value {
    json!({
        "metadata": {"name": "work", "namespace": "team", "uid": "1", "resourceVersion": "1"},
        "spec": {"parameters": parameters},
        "status": {"phase": "Ready", "publicIp": "203.0.113.7"},
    })
}

/// A world with a workspace on EC2 that runs.
fn ready(name: &str) -> World {
    let world = World::new(name);
    world.put(
        Kind::Claim,
        "work",
        claim(&json!({"home": {"size": "1Gi"}})),
    );
    world
}

fn git(world: &World, words: &[&str]) -> String {
    let ran = Command::new("git")
        .args(words)
        .current_dir(&world.folder)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{words:?}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

/// A clone of a repository with the claim `work`.
fn cloned(name: &str) -> World {
    let world = ready(name);
    git(
        &world,
        &[
            "init",
            "--quiet",
            "--bare",
            "--initial-branch=main",
            "origin",
        ],
    );
    git(&world, &["clone", "--quiet", "origin", "clone"]);
    let folder = world.folder.join("clone/workspaces/work");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("claim.yaml"), "kind: GpuDevWorkspaceClaim\n").unwrap();
    git(
        &world,
        &["-C", "clone", "switch", "--quiet", "--create", "main"],
    );
    git(&world, &["-C", "clone", "add", "."]);
    let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let commit = ["-C", "clone", "commit", "--quiet", "--message", "x"];
    git(&world, &[&author[..], &commit[..]].concat());
    git(
        &world,
        &[
            "-C",
            "clone",
            "push",
            "--quiet",
            "--set-upstream",
            "origin",
            "main",
        ],
    );
    world
}

/// A world with a workspace that has its home in the cluster.
fn at_home(name: &str) -> World {
    let world = ready(name);
    let home = json!({"metadata": {
        "name": "home-gpuws-work-0", "namespace": "team", "uid": "2", "resourceVersion": "1",
        "labels": {"platform.acme.io/cluster-workspace": "gpuws-work"},
    }});
    world.put(Kind::Home, "home-gpuws-work-0", home);
    world
}

/// Kubernetes may delete a volume that no pod uses before devctl reads it again.
#[test]
fn a_home_that_is_gone_at_once_is_not_waited_for() {
    let world = at_home("delete-home");
    assert_eq!(world.run("delete work --home --yes").unwrap(), 0);
    let said = world.said();
    assert!(said.contains("home-gpuws-work-0 deleted"), "{said}");
    assert!(world.objects.lock().unwrap().is_empty());
}

/// The platform's policy, or another person, may delete the home while devctl deletes the workspace.
#[test]
fn a_home_that_went_with_its_workspace_is_no_error() {
    let world = at_home("delete-home-gone");
    *world.homes.lock().unwrap() = Homes::GoWithTheirWorkspace;
    assert_eq!(world.run("delete work --home --yes").unwrap(), 0);
    let said = world.said();
    assert!(
        said.contains("home-gpuws-work-0 was gone already"),
        "{said}"
    );
    assert!(said.contains("work is deleted"), "{said}");
}

#[test]
fn a_home_that_stays_is_named_with_what_shows_its_reason() {
    let world = at_home("delete-home-kept");
    *world.homes.lock().unwrap() = Homes::Stay;
    let problem = world.run("delete work --home --yes").unwrap_err();
    assert_eq!(problem.code, Code::TimedOut);
    assert_eq!(
        problem.object.as_deref(),
        Some("home team/home-gpuws-work-0")
    );
    let next = "kubectl describe persistentvolumeclaims home-gpuws-work-0 --namespace team";
    assert_eq!(problem.next.as_deref(), Some(next));
}

#[test]
fn a_claim_of_git_is_deleted_by_a_commit_on_a_branch_of_its_own() {
    let world = cloned("delete-git");
    assert_eq!(world.run("delete work --git --yes").unwrap(), 0);
    let files = |branch: &str| {
        git(
            &world,
            &["-C", "origin", "ls-tree", "-r", "--name-only", branch],
        )
    };
    assert_eq!(files("delete-workspace-work"), "");
    assert_eq!(files("main"), "workspaces/work/claim.yaml\n");
    let said = world.said();
    assert!(
        said.contains("open a pull request of the branch delete-workspace-work"),
        "{said}"
    );
    assert!(said.contains("Argo CD asks for a confirmation"), "{said}");
    let left = world.objects.lock().unwrap();
    assert_eq!(left.len(), 1, "the claim is Argo CD's to delete");
}

#[test]
fn a_pushed_deletion_is_on_the_branch_that_argo_cd_reads() {
    let world = cloned("delete-push");
    assert_eq!(
        world
            .run("delete work --git --push --yes --no-wait")
            .unwrap(),
        0
    );
    assert_eq!(
        git(
            &world,
            &["-C", "origin", "ls-tree", "-r", "--name-only", "main"]
        ),
        ""
    );
}

#[test]
fn a_claim_that_is_not_in_this_repository_is_named_with_the_repository() {
    let world = cloned("delete-other");
    let problem = world.run("delete other --git --yes").unwrap_err();
    assert_eq!(problem.code, Code::NotFound);
    assert!(
        problem
            .message
            .contains("workspaces/other/claim.yaml does not exist in ")
    );
}

#[test]
fn a_claim_without_a_home_is_deleted_from_git_only_when_confirmed() {
    let world = cloned("delete-unasked");
    world.objects.lock().unwrap().clear();
    world.put(Kind::Claim, "work", claim(&json!({})));
    let problem = world.run("delete work --git --push --no-wait").unwrap_err();
    assert_eq!(
        problem.next.as_deref(),
        Some("devctl delete work --yes --git --push")
    );
    assert!(!git(&world, &["-C", "origin", "ls-tree", "-r", "main"]).is_empty());
}

#[test]
fn the_price_and_the_rest_of_the_budget_are_said_before_the_workspace_is_asked_for() {
    let world = World::new("forecast");
    let price = json!({"metadata": {"name": "t4"}, "status": {"instanceHourlyUsd": 0.5, "placements": "EC2"}});
    world.put(Kind::Flavor, "t4", price);
    let budget = r#"{"month": "2026-11", "monthlyUsd": 10, "spentUsd": 8, "reservedUsd": 1}"#;
    let account = json!({"data": {"owner": "alice", "budget": budget}});
    world.put(Kind::ConfigMap, "gpu-workspaces.account", account);
    world.run("create new t4 --lifetime 8h --no-wait").unwrap();
    let said = world.said();
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text}: {said}"));
    assert!(at("the budget has 1.00 USD left") < at("stored"));
    assert!(at("--lifetime 2h fits") < at("stored"));
}

/// What a job of these tests wrote, as `run` showed it.
fn epochs(world: &World) -> Vec<String> {
    let said = world.said();
    let lines = said.lines().filter(|line| line.starts_with("epoch"));
    lines.map(str::to_owned).collect()
}

/// The agent's answer about a job that ended.
fn finished(code: u8) -> String {
    json!({"jobs": [{"id": "train-1", "state": "Finished", "code": code}]}).to_string()
}

#[test]
fn a_run_goes_on_where_its_connection_broke() {
    let world = ready("reconnect");
    world.answers(0, "train-1\n");
    world.answers(255, "epoch 1\n");
    world.answers(0, r#"{"jobs": [{"id": "train-1", "state": "Running"}]}"#);
    world.answers(255, "epoch 2\n");
    // The agent does not answer either.
    world.answers(255, "");
    world.answers(7, "epoch 3\n");
    assert_eq!(world.run("run work --job train train").unwrap(), 7);
    let lines = world.lines.lock().unwrap();
    let follows: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("--follow"))
        .collect();
    for (line, from) in follows.iter().zip(["--from 0 ", "--from 8 ", "--from 16 "]) {
        assert!(line.contains(from), "{line}");
    }
    assert_eq!(epochs(&world), ["epoch 1", "epoch 2", "epoch 3"]);
}

#[test]
fn a_job_that_exits_with_the_code_of_a_lost_connection_is_not_followed_again() {
    let world = ready("code-255");
    world.answers(0, "train-1\n");
    world.answers(255, "done\n");
    world.answers(0, &finished(255));
    world.answers(0, "");
    assert_eq!(world.run("run work --job train train").unwrap(), 255);
}

#[test]
fn a_run_shows_what_its_job_wrote_after_the_connection_broke() {
    let world = ready("rest");
    world.answers(0, "train-1\n");
    world.answers(255, "epoch 1\n");
    world.answers(0, &finished(7));
    // The connection breaks again before all output has come.
    world.answers(255, "epoch 2\n");
    world.answers(7, "epoch 3\n");
    assert_eq!(world.run("run work --job train train").unwrap(), 7);
    assert_eq!(epochs(&world), ["epoch 1", "epoch 2", "epoch 3"]);
    let lines = world.lines.lock().unwrap();
    for from in ["logs --from 8 ", "logs --follow --from 16 "] {
        assert!(lines.iter().any(|line| line.contains(from)), "{lines:?}");
    }
}

#[test]
fn the_token_of_jupyter_is_in_no_argument_and_the_browser_opens_when_the_port_is_there() {
    let world = ready("jupyter");
    world.answers(0, r#"{"jobs": []}"#);
    world.answers(0, "jupyter-lab-1\n");
    world.answers(0, r#"{"port": 8889, "token": "0af3"}"#);
    world.answers(0, "");
    assert_eq!(world.run("jupyter work").unwrap(), 0);
    let said = world.said();
    assert!(
        said.contains("http://127.0.0.1:41000/lab?token=0af3\n"),
        "{said}"
    );
    let forward = "-L127.0.0.1:41000:127.0.0.1:8889";
    let line = said.lines().find(|line| line.contains(forward)).unwrap();
    assert!(
        line.contains("LocalCommand=xdg-open ") && !line.contains("0af3"),
        "{line}"
    );
    let page = world.folder.join("home/state/jupyter-work.ws.html");
    assert!(
        std::fs::read_to_string(page)
            .unwrap()
            .contains("token=0af3")
    );
}

#[test]
fn a_jupyter_that_did_not_start_names_its_log() {
    let world = ready("jupyter-log");
    world.answers(0, r#"{"jobs": []}"#);
    world.answers(0, "jupyter-lab-1\n");
    world.answers(1, "");
    let problem = world.run("jupyter work").unwrap_err();
    assert_eq!(
        problem.next.as_deref(),
        Some("devctl logs work --job jupyter-lab-1")
    );
}
