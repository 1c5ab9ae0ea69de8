//! The same work in the naive shape, as tutorials have it: every pool lists its own
//! instances every 40 seconds, and asks for each missing one by a call of its own.
//! Nothing is shared.
//!
//! It runs in virtual time against the same buckets. It is spared much: it never
//! waits for a worker, it has no groups and no templates to make, and it launches by
//! `CreateFleet`, whose bucket is larger than that of `RunInstances`. Throttled calls are
//! repeated as AWS's SDK repeats them: twice, after a random part of one and of two
//! seconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use memory_ec2::{Buckets, Limits, SplitMix64};

use crate::account::Count;

/// Between two looks of a pool, in milliseconds.
const INTERVAL: u64 = 40_000;
/// From a call to the next one of the same pool, in milliseconds.
const LATENCY: u64 = 100;
/// Calls of the SDK at one operation.
const ATTEMPTS: u32 = 3;
/// How long it is watched at rest, in milliseconds.
const WINDOW: u64 = 30 * 60_000;

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naive {
    /// Until every instance was launched.
    pub(crate) filled: Duration,
    /// Calls until then.
    pub(crate) filling: Count,
    /// Calls in [`Naive::window`] after that.
    pub(crate) resting: Count,
}

impl Naive {
    /// How long it was watched at rest.
    pub(crate) fn window() -> Duration {
        Duration::from_millis(WINDOW)
    }
}

/// A pool's next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    /// In milliseconds.
    at: u64,
    pool: usize,
    /// Failed calls of this operation so far.
    attempt: u32,
    is_launch: bool,
}

/// Fills pools of these sizes, and watches them at rest.
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
    // The buckets are as a fill leaves them until they have come to rest.
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
        // 10,000 fleets at five a second.
        assert!(naive.filled > Duration::from_secs(1900), "{naive:?}");
        assert!(naive.resting.all > 25 * 1700, "{naive:?}");
        assert!(
            naive.resting.throttled * 10 > naive.resting.all,
            "{naive:?}"
        );
    }
}
