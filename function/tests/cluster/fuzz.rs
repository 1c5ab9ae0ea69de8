//! Random requests: golden cases in which several events happen at once.

use serde_json::{Value, json};

use crate::case;
use crate::cases::events;
use crate::dice::Dice;
use crate::oracle::{Answer, Outcome};
use crate::request::{answer, changed};
use crate::sight::Sight;
use crate::steadiness;

/// This number of requests finds every defect of `cargo xtask planted`.
const COUNT: u64 = 1_600;
const ALL: u64 = 3_200;
/// One request in this many is also checked by the rules that need several answers.
const STRIDE: u64 = 10;

/// `FUZZ_SEED` and `FUZZ_COUNT` repeat one request, or make more requests. `THOROUGH` makes `ALL`
/// requests.
#[test]
fn no_combination_of_events_loses_anything() {
    let number = |key| std::env::var(key).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("FUZZ_SEED").unwrap_or(1);
    let is_thorough = std::env::var_os("THOROUGH").is_some();
    let usual = if is_thorough { ALL } else { COUNT };
    let count = number("FUZZ_COUNT").unwrap_or(usual);
    let corpus = Corpus::load();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let found: Vec<String> = std::thread::scope(|scope| {
        let corpus = &corpus;
        let run = |offset| {
            let seeds = (first..first + count).skip(offset).step_by(threads);
            let broken = seeds.filter_map(|seed| {
                let request = corpus.request(&mut Dice::new(seed));
                let what = check(&request, seed.is_multiple_of(STRIDE)).err()?;
                Some(format!("FUZZ_SEED={seed} FUZZ_COUNT=1: {what}"))
            });
            broken.take(5).collect::<Vec<_>>()
        };
        let workers: Vec<_> = (0..threads).map(|n| scope.spawn(move || run(n))).collect();
        let joined = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap());
        joined.collect()
    });
    println!("{count} requests, seeds from {first}");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn check(request: &Value, is_thorough: bool) -> Outcome {
    let response = answer(request);
    let sight = Sight(request);
    Answer {
        sight,
        response: &response,
    }
    .check()?;
    if is_thorough {
        return steadiness::check(request);
    }
    // Few requests have a list with an order, so it is compared in each of them.
    let is_list = |name: &str| sight.found(name).is_some_and(|found| found.len() > 1);
    if steadiness::LISTS.into_iter().any(is_list) {
        return steadiness::orderless(request, &response);
    }
    Ok(())
}

/// The parts from which requests are made.
struct Corpus {
    cases: Vec<Value>,
    /// Those of `cases` with more than one pod. A list has an order, and a count a meaning, only there.
    distributed: Vec<Value>,
    events: Vec<Value>,
}

impl Corpus {
    fn load() -> Self {
        let names = case::names();
        let cases = names.iter().filter(|name| case::is_in_cluster(name));
        // Each case is used twice: with a claim's composite and, where there is a claim, with a
        // namespaced composite.
        let both = cases.flat_map(|name| {
            let request = case::request_json(name);
            let namespaced = case::namespaced(&request);
            std::iter::once(request).chain(namespaced)
        });
        let cases: Vec<Value> = both.collect();
        let pods = |case: &&Value| Sight(case).found("pods").map_or(0, |pods| pods.len());
        Self {
            distributed: cases
                .iter()
                .filter(|case| pods(case) > 1)
                .cloned()
                .collect(),
            cases,
            events: events(),
        }
    }

    fn request(&self, dice: &mut Dice) -> Value {
        let cases = if dice.percent(20) {
            &self.distributed
        } else {
            &self.cases
        };
        let mut request = dice.pick(cases).clone();
        for _ in 0..dice.below(6) {
            match dice.below(12) {
                0..=4 => request = changed(&request, dice.pick(&self.events)),
                5 | 6 => self.swap(&mut request, dice),
                7 => recount(&mut request, dice),
                8 => home(&mut request, dice),
                9 => workload(&mut request, dice),
                _ => pod(&mut request, dice),
            }
        }
        request
    }

    /// Replaces a part of the request by the same part of another case.
    fn swap(&self, request: &mut Value, dice: &mut Dice) {
        let part = *dice.pick(&[
            "/requiredResources/pods",
            "/requiredResources/homes",
            "/requiredResources/workloads",
            "/requiredResources/flavor",
            "/observed/resources/cluster-stateful-set",
            "/observed/composite/resource/status",
            "/observed/composite/resource/spec/parameters",
            "/input",
        ]);
        let other = dice.pick(&self.cases).pointer(part).cloned();
        if let (Some(place), Some(other)) = (request.pointer_mut(part), other) {
            *place = other;
        }
    }
}

/// Sets a count of the StatefulSet to another number.
fn recount(request: &mut Value, dice: &mut Dice) {
    let count = json!(dice.below(4));
    let field = *dice.pick(&[
        "/spec/replicas",
        "/status/replicas",
        "/status/readyReplicas",
        "/metadata/generation",
        "/status/observedGeneration",
    ]);
    let set = "/observed/resources/cluster-stateful-set/resource";
    if let Some(place) = request.pointer_mut(&format!("{set}{field}")) {
        *place = count;
    }
}

/// Removes a pod, or gives it another state.
fn pod(request: &mut Value, dice: &mut Dice) {
    let Some(found) = found(request, "pods", dice) else {
        return;
    };
    let waiting = |reason: &str| json!({"waiting": {"reason": reason, "message": "why"}});
    let state = dice
        .pick(&[
            waiting("ContainerCreating"),
            waiting("CrashLoopBackOff"),
            waiting("ErrImagePull"),
            waiting("CreateContainerConfigError"),
            json!({"running": {}}),
            json!({"terminated": {"exitCode": 137}}),
            json!({}),
            json!("what?"),
        ])
        .clone();
    let ready = *dice.pick(&["True", "False", "Unknown"]);
    let ending = dice.percent(20).then_some("2026-11-20T10:00:05Z");
    let change = json!({
        "metadata": {"deletionTimestamp": ending},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [{"name": "workspace", "state": state}],
        }
    });
    case::merge(found, &change);
}

/// Removes a pod's home, or gives it another phase.
fn home(request: &mut Value, dice: &mut Dice) {
    if let Some(found) = found(request, "homes", dice) {
        let phase = *dice.pick(&["Bound", "Pending", "Lost"]);
        case::merge(found, &json!({"status": {"phase": phase}}));
    }
}

/// Removes a Workload, or gives it other conditions.
fn workload(request: &mut Value, dice: &mut Dice) {
    if let Some(found) = found(request, "workloads", dice) {
        let conditions: Vec<Value> = ["QuotaReserved", "Admitted", "Evicted"]
            .map(|kind| {
                let status = *dice.pick(&["True", "False"]);
                let reason = *dice.pick(&["Pending", "Preempted", ""]);
                let message = *dice.pick(&["no quota", ""]);
                json!({"type": kind, "status": status, "reason": reason, "message": message})
            })
            .into();
        case::merge(found, &json!({"status": {"conditions": conditions}}));
    }
}

/// One of the objects that Crossplane fetched for a requirement. Removes the object instead in 15 % of
/// the calls, and returns none then, or if Crossplane fetched none.
fn found<'a>(request: &'a mut Value, requirement: &str, dice: &mut Dice) -> Option<&'a mut Value> {
    let items = request.pointer_mut(&format!("/requiredResources/{requirement}/items"))?;
    let items = items.as_array_mut().filter(|items| !items.is_empty())?;
    let at = dice.below(items.len());
    if dice.percent(15) {
        items.remove(at);
        return None;
    }
    items[at].get_mut("resource")
}
