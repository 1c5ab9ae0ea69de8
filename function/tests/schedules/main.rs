//! Hundreds of workspaces in which many things go wrong, in a simulation in memory.
//!
//! `SIMULATION_SEED` and `SIMULATION_SCHEDULES` repeat one schedule, or run more schedules.
//! `THOROUGH` runs `ALL_SCHEDULES`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../dice/mod.rs"]
mod dice;
#[path = "../simulation/mod.rs"]
mod simulation;

use std::collections::BTreeMap;
use std::time::Instant;

use simulation::engine::InProcess;
use simulation::schedule;

/// This number of schedules finds every defect of `cargo xtask planted`.
const SCHEDULES: u64 = 300;
const ALL_SCHEDULES: u64 = 400;
const STEPS: usize = 30;

/// The results of schedules.
#[derive(Default)]
struct Tally {
    schedules: u64,
    most_reconciles: usize,
    longest: u64,
    failures: BTreeMap<u64, String>,
}

#[test]
fn whatever_happens_the_home_is_safe_and_the_workspace_comes_to_rest() {
    let number = |key| std::env::var(key).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("SIMULATION_SEED").unwrap_or(1);
    let is_thorough = std::env::var_os("THOROUGH").is_some();
    let usual = if is_thorough {
        ALL_SCHEDULES
    } else {
        SCHEDULES
    };
    let schedules = number("SIMULATION_SCHEDULES").unwrap_or(usual);
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let run = |offset| {
            let seeds = (first..first + schedules).skip(offset).step_by(threads);
            run_all(seeds)
        };
        let workers: Vec<_> = (0..threads).map(|n| scope.spawn(move || run(n))).collect();
        let joined = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(Result::unwrap).collect()
    });
    let most = tallies.iter().map(|tally| tally.most_reconciles).max();
    let longest = tallies.iter().map(|tally| tally.longest).max();
    println!(
        "seeds from {first}: {} schedules in {:.1?}; to rest within {} reconciles and {} s",
        tallies.iter().map(|tally| tally.schedules).sum::<u64>(),
        begun.elapsed(),
        most.unwrap_or_default(),
        longest.unwrap_or_default(),
    );
    let failures: BTreeMap<u64, String> = tallies
        .into_iter()
        .flat_map(|tally| tally.failures)
        .collect();
    for (seed, what) in &failures {
        println!("SIMULATION_SEED={seed}: {what}");
    }
    if let Some((seed, what)) = failures.first_key_value() {
        let (_, log) = schedule::run(*seed, STEPS, &mut InProcess::default(), true).unwrap_err();
        panic!(
            "{}\nSIMULATION_SEED={seed} SIMULATION_SCHEDULES=1: {what}",
            log.join("\n")
        );
    }
}

fn run_all(seeds: impl Iterator<Item = u64>) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        match schedule::run(seed, STEPS, &mut InProcess::default(), false) {
            Ok(rest) => {
                tally.most_reconciles = tally.most_reconciles.max(rest.reconciles);
                tally.longest = tally.longest.max(rest.seconds);
            }
            Err((what, _)) => drop(tally.failures.insert(seed, what)),
        }
        tally.schedules += 1;
    }
    tally
}
