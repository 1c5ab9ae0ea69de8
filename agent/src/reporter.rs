//! Sends reports in a thread of its own, so that a failed attempt does not delay the next reading.

use std::convert::Infallible;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use activity_report::Report;

use crate::destination::Destination;
use crate::log::Log;
use crate::schedule::{is_due, spread, wait};

/// The last report that is not sent yet.
#[derive(Debug, Default)]
pub struct Newest {
    report: Mutex<Option<Report>>,
    changed: Condvar,
}

impl Newest {
    /// Replaces the last report, whether it was sent or not.
    pub fn put(&self, report: Report) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        self.changed.notify_one();
    }

    /// Waits for a report.
    fn take(&self) -> Report {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(report) = report.take() {
                return report;
            }
            let woken = self.changed.wait(report);
            report = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Sends each report that is due, for ever.
pub fn run(newest: &Newest, to: &mut Destination, interval: Duration, log: &Log) -> Infallible {
    let mut random = fastrand::Rng::with_seed(seed());
    let mut sent: Option<Report> = None;
    let mut failures = 0;
    let mut due_in = spread(interval, random.f64());
    let mut not_before = Instant::now();
    let mut setup = Setup::default();
    loop {
        let report = newest.take();
        setup.send(to, &mut random, log);
        if Instant::now() < not_before || !is_due(sent.as_ref(), &report, due_in) {
            continue;
        }
        match to.send(&report, SystemTime::now()) {
            Ok(()) => {
                log.fine("report");
                failures = 0;
                due_in = spread(interval, random.f64());
                sent = Some(report);
            }
            Err(problem) => {
                log.problem("report", &problem.kind, &problem.text);
                failures += 1;
                not_before = Instant::now() + wait(failures, random.f64());
            }
        }
    }
}

/// Sends the result of the setup. The machine's role may not allow its tag yet, so that a failure
/// does not delay reports.
#[derive(Default)]
struct Setup {
    failures: u32,
    not_before: Option<Instant>,
}

impl Setup {
    fn send(&mut self, to: &mut Destination, random: &mut fastrand::Rng, log: &Log) {
        if self.not_before.is_some_and(|at| Instant::now() < at) {
            return;
        }
        match to.send_setup(SystemTime::now()) {
            None => {}
            Some(Ok(())) => {
                log.fine("setup");
                *self = Self::default();
            }
            Some(Err(problem)) => {
                log.problem("setup", &problem.kind, &problem.text);
                self.failures += 1;
                self.not_before = Some(Instant::now() + wait(self.failures, random.f64()));
            }
        }
    }
}

/// A random seed. Machines may start at the same time, but their hash keys differ.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
