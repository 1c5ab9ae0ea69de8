//! Tests of budgets. Crossplane reconciles the workspaces and their owner at the same time, and its
//! reads may be behind the last writes.
//!
//! `SIMULATION_SEED` and `SIMULATION_SCHEDULES` repeat one schedule, or run more schedules.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../dice/mod.rs"]
mod dice;
mod world;

use jiff::SignedDuration;
use serde_json::json;
use world::World;

const SCHEDULES: u64 = 40;
const STEPS: usize = 220;
/// US dollars that a run costs while its machine starts and stops. The function cannot count them
/// in advance.
const MARGIN: f64 = 0.05;

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

/// Makes one random event happen.
fn step(world: &mut World, may_lower: bool) {
    let count = world.workspaces.len();
    let which = world.dice.below(count);
    let now = world.now;
    match world.dice.below(100) {
        0..=1 if count < 5 => {
            let hours = 1 + world.dice.below(3);
            world.claim(hours);
        }
        2 if count > 0 => world.workspaces[which].deleted = true,
        3..=5 if count > 0 => {
            let state = *world.dice.pick(&["Stopped", "Running", "Running"]);
            world.workspaces[which].xr.change(now, |xr| {
                xr["spec"]["parameters"]["lifecycle"]["state"] = json!(state);
            });
        }
        6 if count > 0 => {
            let until = (now + SignedDuration::from_hours(3)).to_string();
            world.workspaces[which].xr.change(now, |xr| {
                xr["metadata"]["annotations"]["platform.acme.io/extend-until"] = json!(until);
            });
        }
        7 if count > 0 => world.workspaces[which].xr.change(now, |xr| {
            xr["metadata"]["annotations"]["platform.acme.io/resume"] = json!(now.to_string());
        }),
        8 => {
            let change = if may_lower {
                *world.dice.pick(&[-1.5, -1.0, 1.0, 1.5])
            } else {
                1.0
            };
            let budget = (world.budget() + change).max(0.0);
            if world.dice.percent(30) {
                world.set_budget(budget);
            }
        }
        9 => {
            let minutes = *world.dice.pick(&[1, 4, 16]);
            world.wait(minutes);
        }
        10..=30 => world.reconcile_user(),
        31..=70 if count > 0 => world.reconcile(which),
        _ => {
            let passed = *world.dice.pick(&[1, 1, 2, 5]);
            world.pass(seconds(passed));
        }
    }
}

fn run(seed: u64, may_lower: bool) -> Result<u32, String> {
    let budget = 2.0 + f64::from(u32::try_from(seed % 3).unwrap());
    let mut world = World::new(seed, budget);
    world.claim(1 + usize::try_from(seed % 3).unwrap());
    world.claim(2);
    for number in 0..STEPS {
        let launches = world.launches;
        step(&mut world, may_lower);
        let committed = world.committed();
        if world.launches > launches && committed > world.highest + 0.01 + MARGIN {
            return Err(format!(
                "seed {seed}, step {number}: a launch commits {committed} of {}: {}",
                world.highest,
                world.shown()
            ));
        }
    }
    world.settle();
    let margin = MARGIN * f64::from(world.launches);
    if world.spent() > world.highest + margin {
        let spent = world.spent();
        let highest = world.highest;
        return Err(format!(
            "seed {seed}: spent {spent} of {highest}: {}",
            world.shown()
        ));
    }
    Ok(world.launches)
}

fn schedules(may_lower: bool) {
    let number = |key| std::env::var(key).ok().and_then(|text| text.parse().ok());
    let first: u64 = number("SIMULATION_SEED").unwrap_or(1);
    let schedules = number("SIMULATION_SCHEDULES").unwrap_or(SCHEDULES);
    let results: Vec<_> = (first..first + schedules)
        .map(|seed| run(seed, may_lower))
        .collect();
    let launches: u32 = results.iter().flatten().sum();
    println!(
        "seeds {first} to {}: {launches} launches",
        first + schedules - 1
    );
    let failures: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(u64::from(launches) > schedules, "{launches} launches");
}

#[test]
fn no_launch_overspends_whatever_is_reconciled_at_once() {
    schedules(false);
}

#[test]
fn a_budget_that_is_lowered_and_raised_is_never_overspent_beyond_its_highest() {
    schedules(true);
}

#[test]
fn a_budget_is_used_to_its_last_dollar_and_what_waits_goes_when_it_is_raised() {
    let mut world = World::new(7, 4.0);
    for _ in 0..3 {
        world.claim(2);
    }
    world.settle();
    let on = |world: &World| world.workspaces.iter().filter(|w| w.is_on()).count();
    assert_eq!(on(&world), 2);
    let waits = world.workspaces.iter().find(|w| !w.is_on()).unwrap();
    let message = waits.message();
    assert!(
        message.starts_with("needs 2.00 USD until 2026-11-20T"),
        "{message}"
    );
    assert!(
        message.contains(" of 4.00 USD are left this month: "),
        "{message}"
    );
    world.set_budget(6.0);
    world.settle();
    assert_eq!(on(&world), 3);
}

#[test]
fn a_lowered_budget_stops_nothing_that_runs_and_refuses_what_comes_then() {
    let mut world = World::new(3, 10.0);
    world.claim(3);
    world.settle();
    assert!(world.workspaces[0].is_on());
    world.set_budget(0.5);
    world.claim(1);
    world.settle();
    assert!(
        world.workspaces[0].is_on(),
        "{}",
        world.workspaces[0].message()
    );
    assert!(!world.workspaces[1].is_on());
    // The run ends at its original time: an extension counts as a launch, and the budget does not
    // grant this one.
    let until = (world.now + SignedDuration::from_hours(5)).to_string();
    let now = world.now;
    world.workspaces[0].xr.change(now, |xr| {
        xr["metadata"]["annotations"]["platform.acme.io/extend-until"] = json!(until);
    });
    world.settle();
    world.pass(SignedDuration::from_hours(3));
    world.settle();
    assert!(!world.workspaces[0].is_on());
    let now = world.now;
    world.workspaces[0].xr.change(now, |xr| {
        xr["metadata"]["annotations"]["platform.acme.io/extend-until"] = json!(null);
    });
    world.settle();
    // A resume counts as a launch too, and the budget does not grant it either.
    let now = world.now;
    world.workspaces[0].xr.change(now, |xr| {
        xr["metadata"]["annotations"]["platform.acme.io/resume"] = json!("please");
    });
    world.settle();
    assert!(!world.workspaces[0].is_on());
    let message = world.workspaces[0].message();
    let shown = world.shown();
    assert!(message.starts_with("needs 3.00 USD until "), "{shown}");
    world.set_budget(20.0);
    world.settle();
    assert!(world.workspaces[0].is_on(), "{}", world.shown());
}

#[test]
fn a_granted_extension_counts_and_what_it_costs_is_reserved() {
    let mut world = World::new(5, 3.0);
    world.claim(1);
    world.settle();
    let until = (world.now + SignedDuration::from_mins(118)).to_string();
    let now = world.now;
    world.workspaces[0].xr.change(now, |xr| {
        xr["metadata"]["annotations"]["platform.acme.io/extend-until"] = json!(until);
    });
    world.settle();
    world.claim(2);
    world.settle();
    assert!(
        !world.workspaces[1].is_on(),
        "two of three dollars are reserved"
    );
    world.pass(SignedDuration::from_mins(80));
    world.settle();
    assert!(
        world.workspaces[0].is_on(),
        "{}",
        world.workspaces[0].message()
    );
}

#[test]
fn what_a_deleted_workspace_spent_stays_spent_and_the_next_month_begins_with_nothing() {
    let mut world = World::new(9, 3.0);
    world.claim(2);
    world.settle();
    world.pass(SignedDuration::from_mins(100));
    world.settle();
    let spent = world.spent();
    world.workspaces[0].deleted = true;
    while !world.workspaces.is_empty() {
        world.pass(seconds(1));
    }
    world.settle();
    let budget = world.user.latest()["status"]["budget"].clone();
    let counted = budget["spentUsd"].as_f64().unwrap();
    assert!(counted >= spent - MARGIN, "{budget} of {spent}");
    world.claim(3);
    world.settle();
    assert!(!world.workspaces[0].is_on(), "{budget}");
    world.pass(SignedDuration::from_hours(24 * 12));
    world.settle();
    assert!(
        world.workspaces[0].is_on(),
        "{}",
        world.workspaces[0].message()
    );
    assert_eq!(world.user.latest()["status"]["budget"]["month"], "2026-12");
}

#[test]
fn what_has_settled_is_written_no_more() {
    let mut world = World::new(11, 3.0);
    for _ in 0..3 {
        world.claim(1);
    }
    world.settle();
    let before: Vec<_> = world
        .workspaces
        .iter()
        .map(|w| w.xr.latest().clone())
        .collect();
    let user = world.user.latest().clone();
    for _ in 0..4 {
        world.reconcile_user();
        for which in 0..world.workspaces.len() {
            world.reconcile(which);
        }
    }
    let after: Vec<_> = world
        .workspaces
        .iter()
        .map(|w| w.xr.latest().clone())
        .collect();
    assert_eq!(before, after);
    assert_eq!(&user, world.user.latest());
}
