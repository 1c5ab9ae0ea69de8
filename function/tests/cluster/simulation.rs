//! Simulates workspaces in which many things go wrong: claims, flavors and policies change, pods
//! fail, quota comes and goes, and Crossplane ends in the middle of a reconcile.
//!
//! `SIMULATION_SEED` and `SIMULATION_SCHEDULES` repeat one schedule, or run more schedules.
//! `THOROUGH` runs `ALL_SCHEDULES`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::world::World;

/// This number of schedules finds every defect of `cargo xtask planted`.
const SCHEDULES: u64 = 80;
const ALL_SCHEDULES: u64 = 160;
const STEPS: usize = 60;
/// Without events, the workspace must come to rest within this many reconciles.
const REST: usize = 60;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

#[test]
fn whatever_happens_homes_stay_and_the_workspace_comes_to_rest() {
    let number = |key| std::env::var(key).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("SIMULATION_SEED").unwrap_or(1);
    let is_thorough = std::env::var_os("THOROUGH").is_some();
    let usual = if is_thorough {
        ALL_SCHEDULES
    } else {
        SCHEDULES
    };
    let schedules = number("SIMULATION_SCHEDULES").unwrap_or(usual);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let ended: Vec<(usize, String)> = std::thread::scope(|scope| {
        let all = |offset| {
            let seeds = (first..first + schedules).skip(offset).step_by(threads);
            seeds.map(at_end).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..threads).map(|n| scope.spawn(move || all(n))).collect();
        let joined = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap());
        joined.collect()
    });
    let most = ended.iter().map(|(reconciles, _)| *reconciles).max();
    let most = most.unwrap_or_default();
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    for (_, end) in ended {
        *ends.entry(end).or_default() += 1;
    }
    println!(
        "seeds from {first}: {schedules} schedules, to rest within {most} reconciles: {ends:?}"
    );
    if schedules >= SCHEDULES {
        for end in ["Ready", "Stopped", "Queued", "Failed"] {
            let share = ends.get(end).copied().unwrap_or_default() * 100 / schedules;
            assert!(share >= 3, "{end}: {ends:?}");
        }
    }
}

fn at_end(seed: u64) -> (usize, String) {
    let (rest, log) = run(seed);
    rest.unwrap_or_else(|what| {
        panic!(
            "{}\nSIMULATION_SEED={seed} SIMULATION_SCHEDULES=1: {what}",
            log.join("\n")
        )
    })
}

/// The number of reconciles until the workspace came to rest, and the phase or the outcome in which
/// it rests.
type Rest = Result<(usize, String), String>;

fn run(seed: u64) -> (Rest, Vec<String>) {
    let mut dice = Dice::new(seed);
    let mut world = world(&mut dice);
    let mut log = Vec::new();
    let result = steps(&mut world, &mut dice, &mut log).and_then(|()| {
        let reconciles = rest(&mut world, &mut dice, &mut log)?;
        departure(&world)?;
        let end = match world.last.as_str() {
            "applied" => world.status["phase"].as_str().unwrap_or_default(),
            last => last,
        };
        Ok((reconciles, end.to_owned()))
    });
    (result, log)
}

fn steps(world: &mut World, dice: &mut Dice, log: &mut Vec<String>) -> Result<(), String> {
    for _ in 0..STEPS {
        if dice.percent(35) {
            log.push(event(world, dice));
        }
        if dice.percent(60) {
            world.tick(dice);
        }
        if dice.percent(70) {
            let is_cut_short = dice.percent(20);
            world.reconcile(dice, is_cut_short)?;
            log.push(told(world));
        }
    }
    Ok(())
}

fn told(world: &World) -> String {
    let set = world.set.as_ref().map(|set| {
        let replicas = &set["spec"]["replicas"];
        let ending = set["metadata"].get("deletionTimestamp").is_some();
        format!("{replicas} replicas, ending {ending}")
    });
    format!(
        "  {}: {} {} | {set:?} {:?} {:?}",
        world.last, world.status["phase"], world.status["message"], world.pods, world.workloads
    )
}

/// Reconciles without further events until nothing has changed for eight reconciles. Returns the
/// number of reconciles before these eight.
fn rest(world: &mut World, dice: &mut Dice, log: &mut Vec<String>) -> Result<usize, String> {
    let mut quiet = 0;
    for reconcile in 0..REST {
        let before = format!("{world:?}");
        world.tick(dice);
        world.reconcile(dice, false)?;
        log.push(told(world));
        quiet = if format!("{world:?}") == before {
            quiet + 1
        } else {
            0
        };
        if quiet == 8 {
            return at_rest(world).map(|()| reconcile + 1 - quiet);
        }
    }
    Err("does not come to rest".to_owned())
}

fn at_rest(world: &World) -> Result<(), String> {
    if world.last == "refused" {
        // There is no status to check: either nothing runs, or the conditions tell the claim's
        // owner why the function refused.
        return Ok(());
    }
    if world.last != "applied" {
        return Err(format!("at rest: {}", world.last));
    }
    let phase = world.status["phase"].as_str().unwrap_or_default();
    let has_pods = !world.pods.is_empty();
    let is_bad = world.pods.values().any(|pod| pod.image.ends_with("bad"));
    let is_gated = world.pods.values().any(|pod| pod.gated);
    let expected = match (world.is_to_run(), has_pods) {
        (false, _) => "Stopped",
        // The function holds the workspace, because the flavor to start with does not exist.
        (true, false) => phase,
        (true, true) if is_gated => "Queued",
        (true, true) if is_bad => "Failed",
        (true, true) => "Ready",
    };
    let explained = phase == "Ready" || world.status["message"].is_string();
    if phase == expected && explained && (world.is_to_run() || !has_pods) {
        Ok(())
    } else {
        Err(format!(
            "at rest {phase} instead of {expected}: {}",
            told(world)
        ))
    }
}

/// The claim is deleted, and Crossplane deletes every composed resource. Homes may be among them
/// only where a policy said so.
fn departure(world: &World) -> Result<(), String> {
    if world.composed_homes.is_empty() || world.ever_deletes {
        Ok(())
    } else {
        Err("homes go with the claim, which no policy ever said".to_owned())
    }
}

fn world(dice: &mut Dice) -> World {
    let mut world = World {
        // From v3 on, a workspace without a key does not start.
        parameters: json!({
            "owner": "alice",
            "placement": "Cluster",
            "ssh": {"publicKeys": [KEY]},
        }),
        policy: json!({
            "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
            "kind": "WorkspacePolicy",
            "behaviourVersion": *dice.pick(&["v2", "v3"]),
            "catalogue": {"name": "gpu-workspaces"},
            "allowedInstanceTypes": ["g4dn.*"],
            "cluster": {"defaultFlavor": "t4"},
        }),
        flavor: Some(flavor("good", "4")),
        has_quota: true,
        is_namespaced: dice.percent(50),
        status: json!({}),
        ..World::default()
    };
    if dice.percent(60) {
        world.policy["cluster"]["queue"] = json!({"default": "a"});
    }
    if dice.percent(60) {
        world.parameters["home"] = json!({"sizeGiB": 20});
    }
    world
}

fn flavor(image: &str, cpu: &str) -> Value {
    json!({
        "image": format!("registry.acme.example/{image}"),
        "opencvVersion": "4.8.0",
        "pytorchVersion": "2.8.0",
        "cpu": cpu,
        "memory": "16Gi",
        "overrides": {"maxMemory": "32Gi", "maxGpus": 2},
    })
}

fn event(world: &mut World, dice: &mut Dice) -> String {
    let parameters = &mut world.parameters;
    let what = match dice.below(18) {
        0 | 1 => {
            parameters["lifecycle"] = json!({"state": "Stopped"});
            "stopped"
        }
        2 | 3 => {
            parameters["lifecycle"] = json!({"state": "Running"});
            "started"
        }
        4 => {
            parameters["home"] = json!({"sizeGiB": 50});
            "a home"
        }
        5 => {
            parameters["overrides"] = json!({"memory": *dice.pick(&["8Gi", "32Gi", "64Gi"])});
            "other memory"
        }
        6 => {
            parameters["distributed"] = json!({"nodes": 1 + dice.below(3)});
            "other nodes"
        }
        7 => {
            let image = *dice.pick(&["good", "other", "bad"]);
            let cpu = *dice.pick(&["4", "8"]);
            world.flavor = Some(flavor(image, cpu));
            "another flavor"
        }
        8 => {
            world.flavor = None;
            "no flavor"
        }
        9 => {
            world.policy["home"] = json!({"onDelete": *dice.pick(&["Delete", "Retain"])});
            "another policy of homes"
        }
        10 => {
            let queues = [
                json!({"default": "a"}),
                json!({"default": "b"}),
                json!({"default": "a", "defaultPriorityClass": "batch"}),
            ];
            world.policy["cluster"]["queue"] = dice.pick(&queues).clone();
            "another queue"
        }
        11 => {
            let cluster = world.policy["cluster"].as_object_mut();
            cluster.and_then(|cluster| cluster.remove("queue"));
            "no queue"
        }
        12 => {
            world.has_quota = !world.has_quota;
            "quota comes or goes"
        }
        13 => {
            world.preempt();
            "preempted"
        }
        14 => {
            if let Some(pod) = dice.any(world.pods.keys().cloned()) {
                world.pods.remove(&pod);
            }
            "a pod is gone"
        }
        15 => {
            world.status = json!({});
            "the status is lost"
        }
        16 => {
            world.policy["behaviourVersion"] = json!("v3");
            "behaviour version v3"
        }
        _ => {
            world.policy["cluster"]["domain"] = json!(*dice.pick(&["cluster.local", "b.example"]));
            "another domain"
        }
    };
    what.to_owned()
}
