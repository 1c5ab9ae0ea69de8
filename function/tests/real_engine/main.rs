//! Workspaces in which many things go wrong, reconciled by Crossplane's own engine.
//!
//! These are a few of the schedules of the test `schedules`. There, a model in the test process
//! takes the place of Crossplane. Here, every reconcile compares that model with Crossplane. The
//! first run builds Crossplane from source, which takes minutes and needs Go.
//!
//! `SIMULATION_SEED` and `SIMULATION_SCHEDULES` repeat one schedule, or run more schedules.
//! `THOROUGH` runs twice as many.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../dice/mod.rs"]
mod dice;
#[path = "../serving/process.rs"]
mod process;
#[path = "../simulation/mod.rs"]
mod simulation;

mod crossplane;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use crossplane::Crossplane;
use process::Running;
use simulation::engine::{Call, Engine, InProcess, Rendered};
use simulation::manifest::condition;
use simulation::schedule;

/// Few schedules are enough: the test compares each reconcile, so the first reconcile that shows a
/// difference fails.
const SCHEDULES: u64 = 4;
const ALL_SCHEDULES: u64 = 8;
const STEPS: usize = 20;

/// Runs Crossplane and the model that replaces it in other tests, and compares their results.
struct Compared<'a> {
    crossplane: Crossplane,
    model: InProcess,
    reconciles: &'a AtomicU64,
}

impl Engine for Compared<'_> {
    fn render(&mut self, call: &Call<'_>) -> Result<Rendered, String> {
        self.reconciles.fetch_add(1, Ordering::Relaxed);
        let rendered = self.crossplane.render(call)?;
        let expected = self.model.render(call)?;
        if rendered.fatal.is_some() != expected.fatal.is_some() {
            return Err(format!("{:?} is not {:?}", rendered.fatal, expected.fatal));
        }
        if rendered.fatal.is_none() {
            compare("resources", &specs(&rendered), &specs(&expected))?;
            compare("status", &rendered.status, &expected.status)?;
            compare("conditions", &told(&rendered, call), &told(&expected, call))?;
            compare("readiness", &json!(rendered.ready), &json!(expected.ready))?;
            compare("events", &json!(rendered.events), &json!(expected.events))?;
        }
        // The command prints neither the time to live nor the reason for a fatal result. So both
        // come from the model.
        Ok(Rendered {
            ttl: expected.ttl,
            conditions: expected.conditions,
            ..rendered
        })
    }
}

fn compare(what: &str, crossplane: &Value, model: &Value) -> Result<(), String> {
    let same = numbers(crossplane.clone()) == numbers(model.clone());
    same.then_some(())
        .ok_or_else(|| format!("{what} by Crossplane: {crossplane}\nhere: {model}"))
}

/// Turns all numbers into floating-point numbers, because a Struct has no others.
fn numbers(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, numbers(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(numbers).collect()),
        Value::Number(number) => json!(number.as_f64()),
        other => other,
    }
}

fn specs(rendered: &Rendered) -> Value {
    let specs: BTreeMap<&String, [&Value; 2]> = rendered
        .desired
        .iter()
        .map(|(key, object)| (key, [&object["spec"], &object["data"]]))
        .collect();
    json!(specs)
}

/// The XR's own conditions. A condition that the function does not mention keeps its value.
fn told(rendered: &Rendered, call: &Call<'_>) -> Value {
    let types = ["ConfigResolved", "ComputeReady", "HomeReady"];
    let status = json!({"status": {"conditions": rendered.conditions}});
    json!(types.map(|type_| condition(&status, type_).or(condition(&call.xr, type_))))
}

#[test]
fn crossplane_itself_keeps_the_home_safe_and_brings_the_workspace_to_rest() {
    let number = |key| std::env::var(key).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("SIMULATION_SEED").unwrap_or(1);
    let is_thorough = std::env::var_os("THOROUGH").is_some();
    let usual = if is_thorough {
        ALL_SCHEDULES
    } else {
        SCHEDULES
    };
    let schedules = number("SIMULATION_SCHEDULES").unwrap_or(usual);
    let binaries = crossplane::build();
    let begun = Instant::now();
    let reconciles = AtomicU64::new(0);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let function = runtime.block_on(Running::insecure());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let run = |offset: usize| -> Vec<String> {
        let seeds = (first..first + schedules).skip(offset).step_by(threads);
        let run = |seed| {
            let mut engine = Compared {
                crossplane: Crossplane::new(
                    binaries.clone(),
                    function.address,
                    &format!("real-engine-{offset}"),
                ),
                model: InProcess::default(),
                reconciles: &reconciles,
            };
            let outcome = schedule::run(seed, STEPS, &mut engine, true);
            outcome.err().map(|(what, log)| {
                let log = log.join("\n");
                format!("{log}\nSIMULATION_SEED={seed} SIMULATION_SCHEDULES=1: {what}")
            })
        };
        seeds.filter_map(run).collect()
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let run = &run;
        let workers: Vec<_> = (0..threads).map(|n| scope.spawn(move || run(n))).collect();
        let joined = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.flat_map(Result::unwrap).collect()
    });
    println!(
        "seeds from {first}: {schedules} schedules, {} reconciles, in {:.1?}",
        reconciles.load(Ordering::Relaxed),
        begun.elapsed()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
