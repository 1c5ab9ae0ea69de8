//! Checks many requests on all cores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::corpus::Corpus;
use crate::dice::Dice;
use crate::minimise::minimise;
use crate::mutation;
use crate::oracle::{self, Kind, Violation};

const REPORT: Duration = Duration::from_secs(15);

/// The number of requests for each kind of outcome.
pub type Tally = BTreeMap<Kind, u64>;

/// A run over consecutive seeds.
pub struct Campaign {
    /// The first seed.
    pub first: u64,
    /// The number of seeds.
    pub count: u64,
    /// Whether the run continues after a broken rule.
    pub finds_all: bool,
    /// One seed in this many gets the expensive checks.
    pub thorough_every: u64,
    /// Whether the run prints each seed before its turn.
    pub is_traced: bool,
}

/// The violations of a run by label: the lowest seed, one violation, and the number of requests.
pub type Found = BTreeMap<String, (u64, Violation, u64)>;

impl Campaign {
    /// Checks the request of every seed.
    pub fn run(&self, corpus: &Corpus) -> (Tally, Found) {
        let begun = Instant::now();
        let done = AtomicU64::new(0);
        let found = Mutex::new(Found::new());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let tally = std::thread::scope(|scope| {
            let (found, done) = (&found, &done);
            let workers: Vec<_> = (0..threads)
                .map(|n| scope.spawn(move || self.work(n, threads, corpus, found, done)))
                .collect();
            let mut reported = begun;
            while workers.iter().any(|worker| !worker.is_finished()) {
                std::thread::sleep(Duration::from_millis(50));
                if reported.elapsed() > REPORT {
                    reported = Instant::now();
                    let done = done.load(Ordering::Relaxed);
                    println!(
                        "{done} of {} requests in {:.0?}",
                        self.count,
                        begun.elapsed()
                    );
                }
            }
            let mut whole = Tally::new();
            for worker in workers {
                for (kind, number) in worker.join().unwrap() {
                    *whole.entry(kind).or_default() += number;
                }
            }
            whole
        });
        let seconds = begun.elapsed().as_secs_f64();
        let found = found.into_inner().unwrap();
        let broken: u64 = found.values().map(|(_, _, times)| times).sum();
        println!(
            "{} requests, seeds from {}, in {seconds:.0} s: {tally:?}, {broken} break a rule",
            done.load(Ordering::Relaxed),
            self.first,
        );
        (tally, found)
    }

    fn work(
        &self,
        offset: usize,
        threads: usize,
        corpus: &Corpus,
        found: &Mutex<Found>,
        done: &AtomicU64,
    ) -> Tally {
        let mut tally = Tally::new();
        for seed in (self.first..self.first + self.count)
            .skip(offset)
            .step_by(threads)
        {
            if self.is_traced {
                println!("FUZZ_SEED={seed}");
            }
            let request = mutation::request(&mut Dice::new(seed), corpus);
            match oracle::check(&request, seed.is_multiple_of(self.thorough_every)) {
                Ok(kind) => *tally.entry(kind).or_default() += 1,
                Err(violation) => {
                    let mut found = found.lock().unwrap();
                    let entry = found.entry(label(&violation));
                    let (first, _, number) = entry.or_insert((seed, violation, 0));
                    (*first, *number) = (seed.min(*first), *number + 1);
                }
            }
            done.fetch_add(1, Ordering::Relaxed);
            if !self.finds_all && !found.lock().unwrap().is_empty() {
                break;
            }
        }
        tally
    }
}

/// A label for a violation. Violations that differ only in ids and numbers get the same label.
fn label(violation: &Violation) -> String {
    let what = violation.what.chars().take(120);
    let what: String = what.filter(|c| !c.is_ascii_digit()).collect();
    format!("{}: {what}", violation.rule)
}

/// Minimises the request of a violation and writes it to a file. Returns a description with the
/// file and the ways to repeat the request.
pub fn describe(seed: u64, violation: &Violation, corpus: &Corpus) -> String {
    let request = mutation::request(&mut Dice::new(seed), corpus);
    let small = minimise(&request, violation.rule);
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).into();
    let path = folder.join(format!("fuzz-{seed}.json"));
    std::fs::write(&path, serde_json::to_string_pretty(&small).unwrap()).unwrap();
    let made_small = match oracle::check(&small, true) {
        Err(violation) => violation.what,
        Ok(kind) => format!("{kind:?}"),
    };
    format!(
        "{}: {}\n  made small: {made_small}\n  FUZZ_SEED={seed} FUZZ_COUNT=1 FUZZ_THOROUGH=1, or FUZZ_REQUEST={}",
        violation.rule,
        violation.what,
        path.display()
    )
}
