//! Hundreds of pools with random faults.
//!
//! A schedule is a random sequence of events. Users edit, widen, stop and delete; AWS reclaims,
//! refuses and loses answers; and the provider crashes or works with old data. Then all of that
//! ends, and the pool has to come to rest.
//!
//! `SIMULATION_SEED` and `SIMULATION_SCHEDULES` repeat one schedule, or run more of them.
//! `THOROUGH` runs all.

use std::iter::StepBy;
use std::ops::Range;
use std::time::Instant;

use memory_ec2::{Buckets, Habits, Limits, Rate, YoungGroups};

use super::luck::Luck;

/// A third of them finds every defect of `cargo xtask planted`.
const SCHEDULES: u64 = 300;
const ALL_SCHEDULES: u64 = 600;
const STEPS: u64 = 30;

/// One in this many schedules uses an account that EC2 grants hardly any calls.
const THROTTLED_EACH: u64 = 3;
/// Limits that throttle a pool in most of its reconciles. The pool still comes to rest.
const TIGHT: Limits = Limits {
    describe: Rate::new(8.0, 2.0),
    mutate: Rate::new(1.0, 0.05),
    run: Rate::new(1.0, 0.1),
    terminate: Rate::new(1.0, 0.1),
    tag: Rate::new(1.0, 0.1),
    launched: Some(Rate::new(8.0, 0.1)),
    ended: Some(Rate::new(8.0, 0.1)),
};

/// The schedules of a run.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    pub first: u64,
    pub schedules: u64,
}

impl Seeds {
    /// As many schedules as the environment says: `usual` ones, or `all` of them.
    pub fn of(usual: u64, all: u64) -> Self {
        let number = |key| std::env::var(key).ok().and_then(|text| text.parse().ok());
        let is_thorough = std::env::var_os("THOROUGH").is_some();
        let usual = if is_thorough { all } else { usual };
        Self {
            first: number("SIMULATION_SEED").unwrap_or(1),
            schedules: number("SIMULATION_SCHEDULES").unwrap_or(usual),
        }
    }

    /// Divides the seeds among the processors. Returns the result of each one.
    pub fn play<T: Send>(self, play: impl Fn(StepBy<Range<u64>>) -> T + Sync) -> Vec<T> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let play = &play;
        std::thread::scope(|scope| {
            let begins = self.first..self.first + threads as u64;
            let workers: Vec<_> = begins
                .map(|begin| {
                    let seeds = (begin..self.first + self.schedules).step_by(threads);
                    scope.spawn(move || play(seeds))
                })
                .collect();
            let joined = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined
                .map(|played| played.unwrap_or_else(|failure| std::panic::resume_unwind(failure)))
                .collect()
        })
    }
}

/// Counts what the schedules contain, so that a run shows that every kind of event occurred.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    schedules: u64,
    reconciles: usize,
    calls: usize,
    throttled: usize,
    launched: usize,
    deleted: u64,
    most_turns_to_rest: usize,
}

#[test]
fn whatever_happens_nothing_is_leaked_doubled_or_taken_from_others() {
    let Seeds { first, schedules } = Seeds::of(SCHEDULES, ALL_SCHEDULES);
    let begun = Instant::now();
    let tallies = Seeds { first, schedules }.play(run_all);
    let tally = tallies.into_iter().fold(Tally::default(), Tally::and);
    println!("seeds from {first}: {tally:?} in {:.1?}", begun.elapsed());
    assert_eq!(tally.schedules, schedules);
    assert!(
        schedules < THROTTLED_EACH || tally.throttled > 0,
        "the buckets never ran dry"
    );
}

fn run_all(seeds: StepBy<Range<u64>>) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        if let Err(what) = run(&mut begin(seed, false), &mut tally) {
            let mut again = begin(seed, true);
            drop(run(&mut again, &mut Tally::default()));
            let log = again.log.unwrap_or_default().join("\n");
            panic!("{log}\nSIMULATION_SEED={seed}: {what}");
        }
        tally.schedules += 1;
    }
    tally
}

impl Tally {
    fn and(self, other: Self) -> Self {
        Self {
            schedules: self.schedules + other.schedules,
            reconciles: self.reconciles + other.reconciles,
            calls: self.calls + other.calls,
            throttled: self.throttled + other.throttled,
            launched: self.launched + other.launched,
            deleted: self.deleted + other.deleted,
            most_turns_to_rest: self.most_turns_to_rest.max(other.most_turns_to_rest),
        }
    }
}

fn begin(seed: u64, is_logged: bool) -> Luck {
    let luck = Luck::new(seed, is_logged);
    let mut earth = luck.world.earth.lock();
    if seed.is_multiple_of(THROTTLED_EACH) {
        earth.cloud.buckets = Buckets::new(TIGHT);
    }
    earth.cloud.habits = Habits {
        refuses_ended_tokens: seed.is_multiple_of(2),
        looks_for_limits_first: seed.is_multiple_of(5),
        young_groups: match seed % 14 {
            0 => YoungGroups::RefusedInFront,
            7 => YoungGroups::RefusedInside,
            _ => YoungGroups::Found,
        },
    };
    drop(earth);
    luck
}

fn run(luck: &mut Luck, tally: &mut Tally) -> Result<(), String> {
    for _ in 0..STEPS {
        luck.step();
        luck.check()?;
        tally.reconciles += 1;
    }
    luck.mend();
    // Earlier calls used EC2's burst. The settling phase must not be throttled for that.
    luck.world.wait(10);
    let settled = luck.world.settle();
    luck.check()?;
    let turns = settled?;
    let earth = luck.world.earth.lock();
    tally.reconciles += turns;
    tally.most_turns_to_rest = tally.most_turns_to_rest.max(turns);
    tally.calls += earth.calls.len();
    tally.throttled += earth.cloud.buckets.refused();
    tally.launched += earth.cloud.machines.len();
    tally.deleted += u64::from(earth.store.is_deleted());
    Ok(())
}
