//! Suites that run one by one, and lanes of suites that run at the same time.

use std::collections::VecDeque;
use std::error::Error;
use std::iter;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use super::suites::{Suite, Turn};

/// Runs one suite. It tells whether its lane goes on.
pub(super) type Run<'a> = dyn Fn(&'static Suite) -> Result<ControlFlow<()>, String> + Sync + 'a;

/// Runs suites in one first lane, so many second lanes, and the lane that no other lane helps, until
/// all have run or all lanes have stopped. Suites of another turn do not run.
///
/// # Errors
///
/// The first error of a suite that could not run. The other lanes go on until their end.
pub(super) fn side_by_side(
    suites: impl IntoIterator<Item = &'static Suite>,
    second_lanes: usize,
    run: &Run<'_>,
) -> Result<(), Box<dyn Error>> {
    let waiting = Waiting::new(suites);
    let lane = |next: fn(&Waiting) -> Option<&'static Suite>| {
        one_by_one(iter::from_fn(|| next(&waiting)), run)
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| lane(Waiting::for_first));
        let own = scope.spawn(|| lane(Waiting::for_own));
        let second = (0..second_lanes).map(|_| scope.spawn(|| lane(Waiting::for_second)));
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

/// The suites that no lane has begun.
struct Waiting {
    first: Mutex<VecDeque<&'static Suite>>,
    second: Mutex<VecDeque<&'static Suite>>,
    own: Mutex<VecDeque<&'static Suite>>,
}

impl Waiting {
    fn new(suites: impl IntoIterator<Item = &'static Suite>) -> Self {
        let (mut first, mut second, mut own) = <(VecDeque<_>, VecDeque<_>, VecDeque<_>)>::default();
        for suite in suites {
            match suite.turn {
                Turn::FirstLane => first.push_back(suite),
                Turn::SecondLane => second.push_back(suite),
                Turn::OwnLane => own.push_back(suite),
                Turn::First | Turn::Alone => {}
            }
        }
        Self {
            first: Mutex::new(first),
            second: Mutex::new(second),
            own: Mutex::new(own),
        }
    }

    /// The next suite of the first lane. After its own suites, it helps the second lanes.
    fn for_first(&self) -> Option<&'static Suite> {
        take(&self.first).or_else(|| take(&self.second))
    }

    /// The next suite of a second lane. It takes none of the first lane's: two of those would
    /// share a cluster, or the processors that the clusters need.
    fn for_second(&self) -> Option<&'static Suite> {
        take(&self.second)
    }

    /// The next suite of the lane that no other lane helps.
    fn for_own(&self) -> Option<&'static Suite> {
        take(&self.own)
    }
}

fn take(suites: &Mutex<VecDeque<&'static Suite>>) -> Option<&'static Suite> {
    suites
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .pop_front()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::suites::SUITES;
    use super::*;

    fn names(mut next: impl FnMut() -> Option<&'static Suite>) -> Vec<&'static str> {
        iter::from_fn(|| next().map(|suite| suite.name)).collect()
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
        let waiting = Waiting::new(SUITES);
        assert_eq!(names(|| waiting.for_first()), others());
    }

    #[test]
    fn the_second_lane_never_runs_a_suite_of_the_first() {
        let waiting = Waiting::new(SUITES);
        assert_eq!(names(|| waiting.for_second()), of(Turn::SecondLane));
    }

    /// `upbound` waits for three quarters of an hour. A lane of others would do nothing else then.
    #[test]
    fn the_longest_suite_keeps_no_other_suite_waiting() {
        let waiting = Waiting::new(SUITES);
        assert_eq!(names(|| waiting.for_own()), ["upbound"]);
        let waiting = Waiting::new(SUITES);
        assert!(!names(|| waiting.for_first()).contains(&"upbound"));
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
        let all_began = Barrier::new(4);
        let begun = AtomicUsize::new(0);
        side_by_side(SUITES, 2, &|_| {
            if begun.fetch_add(1, Ordering::SeqCst) < 4 {
                all_began.wait();
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
