//! Suites that run one by one, and lanes of suites that run at the same time.

use std::error::Error;
use std::iter;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use super::suites::{Suite, Turn};

/// Runs one suite. It tells whether its lane goes on.
pub(super) type Run<'a> = dyn Fn(&'static Suite) -> Result<ControlFlow<()>, String> + Sync + 'a;

/// Runs suites in one first lane, so many second lanes, and a lane of its own for the one that lasts
/// longest, until all have run or all lanes have stopped. Suites of another turn do not run.
///
/// # Errors
///
/// The first error of a suite that could not run. The other lanes go on until their end.
pub(super) fn side_by_side(
    suites: impl IntoIterator<Item = &'static Suite>,
    second_lanes: usize,
    run: &Run<'_>,
) -> Result<(), Box<dyn Error>> {
    let waiting = Waiting::of(suites);
    let lane = |turns| one_by_one(iter::from_fn(|| waiting.take(turns)), run);
    thread::scope(|scope| {
        let first = scope.spawn(|| lane(FIRST));
        let own = scope.spawn(|| lane(OWN));
        let second = (0..second_lanes).map(|_| scope.spawn(|| lane(SECOND)));
        let lanes: Vec<_> = [first, own].into_iter().chain(second).collect();
        let ended: Vec<_> = lanes.into_iter().map(ScopedJoinHandle::join).collect();
        ended
            .into_iter()
            .try_for_each(|lane| Ok(lane.map_err(|_| "a lane panicked")??))
    })
}

/// Runs suites in their order, until all have run or one stops the others.
///
/// # Errors
///
/// The error of a suite that could not run. Later suites do not run.
pub(super) fn one_by_one(
    suites: impl IntoIterator<Item = &'static Suite>,
    run: &Run<'_>,
) -> Result<(), String> {
    for suite in suites {
        if run(suite)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// The first lane's own suites. After them, it helps the second lanes.
const FIRST: &[Turn] = &[Turn::FirstLane, Turn::SecondLane];

/// A second lane takes none of the first lane's suites: two of those would share a cluster, or the
/// processors that the clusters need.
const SECOND: &[Turn] = &[Turn::SecondLane];

/// The longest suite begins at once, so that all others run beside it. After it, this lane helps the
/// second lanes, too.
const OWN: &[Turn] = &[Turn::OwnLane, Turn::SecondLane];

/// The suites that no lane has begun, in their order.
struct Waiting(Mutex<Vec<&'static Suite>>);

impl Waiting {
    fn of(suites: impl IntoIterator<Item = &'static Suite>) -> Self {
        Self(Mutex::new(suites.into_iter().collect()))
    }

    /// Takes the next suite of the first of these turns that still has one.
    fn take(&self, turns: &[Turn]) -> Option<&'static Suite> {
        let mut suites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = turns
            .iter()
            .find_map(|turn| suites.iter().position(|suite| suite.turn == *turn))?;
        Some(suites.remove(next))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;
    use std::time::Duration;

    use super::super::suites::SUITES;
    use super::*;

    fn names(turns: &[Turn]) -> Vec<&'static str> {
        let waiting = Waiting::of(SUITES);
        iter::from_fn(|| waiting.take(turns).map(|suite| suite.name)).collect()
    }

    fn of(turn: Turn) -> Vec<&'static str> {
        let suites = SUITES.iter().filter(|suite| suite.turn == turn);
        suites.map(|suite| suite.name).collect()
    }

    fn others() -> Vec<&'static str> {
        [of(Turn::FirstLane), of(Turn::SecondLane)].concat()
    }

    #[test]
    fn the_first_lane_helps_the_second_one_after_its_own_suites() {
        assert_eq!(names(FIRST), others());
    }

    #[test]
    fn the_second_lane_never_runs_a_suite_of_the_first() {
        assert_eq!(names(SECOND), of(Turn::SecondLane));
    }

    #[test]
    fn the_longest_suite_keeps_no_other_suite_waiting() {
        let lanes = SUITES.iter().filter(|suite| suite.turn != Turn::Alone);
        let longest = lanes.max_by_key(|suite| suite.minutes).unwrap().name;
        assert_eq!(of(Turn::OwnLane), [longest]);
        let others = [names(FIRST), names(SECOND)].concat();
        assert!(!others.contains(&longest));
    }

    #[test]
    fn the_lane_of_the_longest_suite_helps_after_it() {
        assert_eq!(
            names(OWN),
            [of(Turn::OwnLane), of(Turn::SecondLane)].concat()
        );
    }

    #[test]
    fn every_suite_of_the_lanes_runs_once() {
        for second_lanes in [1, 2] {
            let ran = Mutex::new(Vec::new());
            side_by_side(SUITES, second_lanes, &|suite| {
                ran.lock().unwrap().push(suite.name);
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
            let mut ran = ran.into_inner().unwrap();
            let mut expected = [others(), of(Turn::OwnLane)].concat();
            ran.sort_unstable();
            expected.sort_unstable();
            assert_eq!(ran, expected);
        }
    }

    /// Otherwise each lane would wait for the one before.
    #[test]
    fn all_lanes_run_at_the_same_time() {
        let begun = Mutex::new(0);
        let one_began = Condvar::new();
        side_by_side(SUITES, 2, &|_| {
            let mut begun = begun.lock().unwrap();
            *begun += 1;
            one_began.notify_all();
            let (begun, wait) = one_began
                .wait_timeout_while(begun, Duration::from_secs(10), |begun| *begun < 4)
                .unwrap();
            if wait.timed_out() {
                return Err(format!("only {begun} of 4 lanes began"));
            }
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    }

    #[test]
    fn a_failed_suite_stops_its_lane_only() {
        let ran = Mutex::new(Vec::new());
        side_by_side(SUITES, 1, &|suite| {
            ran.lock().unwrap().push(suite.name);
            Ok(match suite.turn {
                Turn::FirstLane => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        })
        .unwrap();
        let ran = ran.into_inner().unwrap();
        let of_first = of(Turn::FirstLane);
        assert_eq!(ran.iter().filter(|name| of_first.contains(name)).count(), 1);
        assert_eq!(
            ran.len(),
            1 + of(Turn::SecondLane).len() + of(Turn::OwnLane).len()
        );
    }

    #[test]
    fn a_suite_that_could_not_run_is_an_error() {
        let error = side_by_side(SUITES, 1, &|suite| match suite.name {
            "docs" => Err("no make".to_owned()),
            _ => Ok(ControlFlow::Continue(())),
        });
        assert_eq!(error.unwrap_err().to_string(), "no make");
    }
}
