//! A simulated naive provider that does the same work, in the way that tutorials show. Each pool
//! lists its own instances every 40 seconds, and launches each missing instance by a call of its
//! own. Pools share no calls.
//!
//! The simulation runs in virtual time against the same token buckets. The naive provider has less
//! work than a real one: it never waits for a worker, it creates no security groups and no launch
//! templates, and it launches by `CreateFleet`, which has a larger bucket than `RunInstances`. It
//! repeats a throttled call as AWS's SDK does: at most twice, after a random part of one second and
//! then of two seconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use memory_ec2::{Buckets, Limits, SplitMix64};

use crate::account::Count;

/// The time between two lists of a pool, in milliseconds.
const INTERVAL: u64 = 40_000;
/// The time that a call takes, in milliseconds. A pool makes its next call after that.
const LATENCY: u64 = 100;
/// How often the SDK tries an operation.
const ATTEMPTS: u32 = 3;
/// How long the calls at rest are counted, in milliseconds.
const WINDOW: u64 = 30 * 60_000;

/// The result of the simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naive {
    /// The time until every instance was launched.
    pub(crate) filled: Duration,
    /// The calls until every instance was launched.
    pub(crate) filling: Count,
    /// The calls at rest, in a time of [`Naive::window`].
    pub(crate) resting: Count,
}

impl Naive {
    /// How long the calls at rest were counted.
    pub(crate) fn window() -> Duration {
        Duration::from_millis(WINDOW)
    }
}

/// A pool's next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    /// The time of the call, in milliseconds.
    at: u64,
    pool: usize,
    /// How often AWS has throttled this call so far.
    attempt: u32,
    is_launch: bool,
}

/// Fills pools of these sizes, and counts their calls during the fill and at rest.
pub(crate) fn run(sizes: &[usize]) -> Naive {
    let mut buckets = Buckets::new(Limits::AWS);
    let mut dice = SplitMix64(1);
    let mut missing = sizes.to_vec();
    let mut left: usize = sizes.iter().sum();
    let mut turns: BinaryHeap<Reverse<Turn>> = (0..sizes.len())
        .map(|pool| {
            let at = dice.below(INTERVAL);
            Reverse(Turn {
                at,
                pool,
                attempt: 0,
                is_launch: false,
            })
        })
        .collect();
    let mut naive = Naive {
        filled: Duration::ZERO,
        filling: Count::default(),
        resting: Count::default(),
    };
    // The time at which the fill ended. The buckets are emptier then than at rest, so the
    // simulation counts no calls in the two intervals after the fill.
    let mut rest = None;
    while let Some(Reverse(turn)) = turns.pop() {
        let begins = rest.map_or(u64::MAX, |filled: u64| filled + 2 * INTERVAL);
        if turn.at >= begins.saturating_add(WINDOW) {
            break;
        }
        let operation = if turn.is_launch {
            "CreateFleet"
        } else {
            "DescribeInstances"
        };
        let granted = buckets.take(operation, moment(turn.at));
        let count = if turn.at >= begins {
            &mut naive.resting
        } else {
            &mut naive.filling
        };
        if rest.is_none() || turn.at >= begins {
            count.all += 1;
            count.throttled += u64::from(!granted);
        }
        if granted && turn.is_launch {
            missing[turn.pool] -= 1;
            left -= 1;
        }
        if left == 0 && rest.is_none() {
            naive.filled = Duration::from_millis(turn.at);
            rest = Some(turn.at);
        }
        turns.push(Reverse(next(turn, granted, missing[turn.pool], &mut dice)));
    }
    naive
}

fn next(turn: Turn, granted: bool, missing: usize, dice: &mut SplitMix64) -> Turn {
    let Turn { at, attempt, .. } = turn;
    if !granted && attempt + 1 < ATTEMPTS {
        let pause = dice.below(1000 << attempt);
        return Turn {
            at: at + LATENCY + pause,
            attempt: attempt + 1,
            ..turn
        };
    }
    let goes_on = granted && missing > 0;
    let pause = if goes_on { LATENCY } else { INTERVAL };
    Turn {
        at: at + pause,
        attempt: 0,
        is_launch: goes_on,
        ..turn
    }
}

fn moment(milliseconds: u64) -> Timestamp {
    let passed = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    Timestamp::UNIX_EPOCH
        .saturating_add(SignedDuration::from_millis(passed))
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_pools_are_filled_at_once_and_list_at_rest_without_being_throttled() {
        let naive = run(&[5; 4]);
        assert!(naive.filled < Duration::from_secs(45), "{naive:?}");
        assert_eq!((naive.filling.throttled, naive.resting.throttled), (0, 0));
        let lists = naive.resting.all;
        assert!(
            (170..=180).contains(&lists),
            "4 pools list every 40 s: {lists}"
        );
    }

    #[test]
    fn a_thousand_pools_list_more_than_aws_grants() {
        let naive = run(&[10; 1000]);
        // AWS grants five fleets a second, and there are 10,000.
        assert!(naive.filled > Duration::from_secs(1900), "{naive:?}");
        assert!(naive.resting.all > 25 * 1700, "{naive:?}");
        assert!(
            naive.resting.throttled * 10 > naive.resting.all,
            "{naive:?}"
        );
    }
}
