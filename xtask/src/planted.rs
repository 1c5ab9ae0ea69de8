//! `cargo xtask planted`: checks that the random simulations still find the defects of
//! `xtask/planted.yaml`, and shows after how many seeds.
//!
//! `make test` runs a part of the seeds of each simulation. If this part misses a kind of defect,
//! it misses this kind in every change, so this part must find every planted defect. Defects are
//! planted in a clone below `target/planted`, never in the working tree.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Args;
use local_cluster::command;
use local_cluster::progress::{Progress, Step};
use serde::Deserialize;

use crate::process::output;

type Outcome<T> = Result<T, Box<dyn Error>>;

const LIST: &str = "xtask/planted.yaml";
/// The variables that make a simulation run other seeds than in `make test`.
const CHOICES: [&str; 8] = [
    "THOROUGH",
    "SIMULATION_SEED",
    "SIMULATION_SCHEDULES",
    "FUZZ_SEED",
    "FUZZ_COUNT",
    "FUZZ_ALL",
    "FUZZ_REQUEST",
    "FUZZ_THOROUGH",
];

#[derive(Args)]
pub(crate) struct Arguments {
    /// This defect alone, or those of this simulation
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

/// A possible mistake in the code.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Defect {
    name: String,
    /// The effect on a user, for readers of the list.
    #[allow(dead_code, reason = "for readers of the list")]
    breaks: String,
    found_by: String,
    file: String,
    find: String,
    replace: String,
}

/// A test that runs random seeds.
#[derive(Debug)]
struct Simulation {
    name: &'static str,
    /// Cargo's arguments that choose its test target.
    target: [&'static str; 2],
    /// The filter that chooses its tests in that target.
    test: &'static str,
    /// The file with the constant for the number of seeds.
    source: &'static str,
    /// The name of that constant.
    count: &'static str,
}

static SIMULATIONS: [Simulation; 6] = [
    Simulation {
        name: "schedules",
        target: ["--test", "schedules"],
        test: "whatever_happens",
        source: "function/tests/schedules/main.rs",
        count: "SCHEDULES",
    },
    Simulation {
        name: "fuzz",
        target: ["--test", "fuzz"],
        test: "no_request",
        source: "function/tests/fuzz/main.rs",
        count: "COUNT",
    },
    Simulation {
        name: "cluster-schedules",
        target: ["--test", "cluster"],
        test: "simulation::",
        source: "function/tests/cluster/simulation.rs",
        count: "SCHEDULES",
    },
    Simulation {
        name: "cluster-fuzz",
        target: ["--test", "cluster"],
        test: "fuzz::",
        source: "function/tests/cluster/fuzz.rs",
        count: "COUNT",
    },
    Simulation {
        name: "provider-schedules",
        target: ["--bin", "provider-gpu-spot"],
        test: "simulation::schedules::",
        source: "provider/controller/src/simulation/schedules.rs",
        count: "SCHEDULES",
    },
    Simulation {
        name: "provider-neighbours",
        target: ["--bin", "provider-gpu-spot"],
        test: "whatever_happens_to_two_pools",
        source: "provider/controller/src/simulation/neighbours.rs",
        count: "SCHEDULES",
    },
];

/// The result for a defect.
struct Found<'a> {
    defect: &'a Defect,
    first_seed: Option<u64>,
    /// The number of seeds in `make test`.
    count: u64,
    took: Duration,
}

impl Found<'_> {
    fn is_soon(&self) -> bool {
        self.first_seed.is_some_and(|seed| seed <= self.count)
    }
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match planted(arguments, &Progress::to_stderr()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether the seeds of `make test` find every defect.
fn planted(arguments: &Arguments, progress: &Progress) -> Outcome<bool> {
    let root = crate::root();
    let defects = chosen(read(&root)?, arguments.only.as_deref())?;
    let place = Place::prepare(&root)?;
    let mut found = Vec::new();
    for defect in &defects {
        found.push(place.plant(defect, progress)?);
    }
    println!("{}", table(&found));
    Ok(found.iter().all(Found::is_soon))
}

fn read(root: &Path) -> Outcome<Vec<Defect>> {
    Ok(serde_yaml::from_str(&fs::read_to_string(root.join(LIST))?)?)
}

fn chosen(defects: Vec<Defect>, only: Option<&str>) -> Outcome<Vec<Defect>> {
    let Some(only) = only else { return Ok(defects) };
    let is_it = |defect: &Defect| defect.name == only || defect.found_by == only;
    let chosen: Vec<Defect> = defects.into_iter().filter(is_it).collect();
    if chosen.is_empty() {
        return Err(format!("{LIST} has neither a defect nor a simulation {only}").into());
    }
    Ok(chosen)
}

impl Defect {
    fn simulation(&self) -> Outcome<&'static Simulation> {
        let mut known = SIMULATIONS.iter();
        let known = known.find(|simulation| simulation.name == self.found_by);
        known.ok_or_else(|| {
            format!("{}: there is no simulation {}", self.name, self.found_by).into()
        })
    }

    /// Returns a file's text with the defect in it.
    fn planted_in(&self, text: &str) -> Outcome<String> {
        let times = text.matches(&self.find).count();
        if times == 1 && self.find != self.replace {
            return Ok(text.replacen(&self.find, &self.replace, 1));
        }
        let Self { name, file, .. } = self;
        Err(format!("{name}: its text to find occurs {times} times in {file}").into())
    }
}

impl Simulation {
    /// The number of seeds in `make test`, from the constant in the simulation's source.
    fn count(&self, root: &Path) -> Outcome<u64> {
        let source = fs::read_to_string(root.join(self.source))?;
        let begin = format!("const {}: u64 = ", self.count);
        let count = source.lines().find_map(|line| {
            let number = line.strip_prefix(&begin)?.strip_suffix(';')?;
            number.replace('_', "").parse().ok()
        });
        count.ok_or_else(|| format!("{} has no line {begin}…", self.source).into())
    }
}

/// The clone in which defects are planted.
struct Place {
    checkout: PathBuf,
    target: PathBuf,
    logs: PathBuf,
}

impl Place {
    /// Makes a clone of HEAD, or updates it. The clone is kept, so that later runs reuse its
    /// compiled files.
    fn prepare(root: &Path) -> Outcome<Self> {
        let folder = root.join("target/planted");
        let place = Self {
            checkout: folder.join("checkout"),
            target: folder.join("target"),
            logs: folder.join("logs"),
        };
        fs::create_dir_all(&place.logs)?;
        if !place.checkout.exists() {
            let mut clone = Command::new("git");
            output(
                clone
                    .args(["clone", "--quiet"])
                    .arg(root)
                    .arg(&place.checkout),
            )?;
        }
        let git = || {
            let mut git = Command::new("git");
            git.current_dir(&place.checkout);
            git
        };
        output(git().args(["fetch", "--quiet"]).arg(root).arg("HEAD"))?;
        output(git().args(["checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"]))?;
        Ok(place)
    }

    /// Plants a defect, runs its simulation, and removes the defect.
    fn plant<'a>(&self, defect: &'a Defect, progress: &Progress) -> Outcome<Found<'a>> {
        let simulation = defect.simulation()?;
        let count = simulation.count(&self.checkout)?;
        let file = self.checkout.join(&defect.file);
        let sound = fs::read_to_string(&file)?;
        let unsound = defect.planted_in(&sound)?;
        let step = progress.begin(&format!("planted {}", defect.name));
        fs::write(&file, unsound)?;
        let played = self.play(simulation, defect, &step);
        fs::write(&file, sound)?;
        let first_seed = played?;
        let took = step.elapsed();
        step.end(if first_seed.is_some() {
            "found"
        } else {
            "missed"
        });
        Ok(Found {
            defect,
            first_seed,
            count,
            took,
        })
    }

    /// The first seed that finds the defect.
    fn play(&self, simulation: &Simulation, defect: &Defect, step: &Step) -> Outcome<Option<u64>> {
        step.follow(|| Some("compiling".to_owned()));
        let log = self.logs.join(format!("{}-build.log", defect.name));
        let built = command::logged(self.cargo(simulation).arg("--no-run"), &log);
        built.map_err(|error| format!("{} does not compile: {error}", defect.name))?;
        let log = self.logs.join(format!("{}.log", defect.name));
        // The seeds of `make test` come first: they find most defects, and the other seeds need not
        // run then.
        for thorough in [None, Some("1")] {
            let part = thorough.map_or("its first seeds", |_| "all of its seeds");
            step.follow(move || Some(part.to_owned()));
            let mut cargo = self.cargo(simulation);
            cargo.args(["--", simulation.test]);
            cargo.envs(thorough.map(|value| ("THOROUGH", value)));
            let Err(error) = command::logged(&mut cargo, &log) else {
                continue;
            };
            let printed = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
            let seed = first_seed(&printed);
            return match seed {
                Some(_) => Ok(seed),
                None => Err(format!("{}: no seed in: {error}", defect.name).into()),
            };
        }
        Ok(None)
    }

    fn cargo(&self, simulation: &Simulation) -> Command {
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&self.checkout)
            .args(["test", "--workspace"])
            .args(simulation.target)
            .env("CARGO_TARGET_DIR", &self.target);
        for choice in CHOICES {
            cargo.env_remove(choice);
        }
        cargo
    }
}

/// The smallest seed in the output of a simulation.
fn first_seed(printed: &str) -> Option<u64> {
    let after = |name: &'static str| printed.split(name).skip(1);
    let seeds = after("SIMULATION_SEED=").chain(after("FUZZ_SEED="));
    let number = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit());
        text[..end.unwrap_or(text.len())].parse().ok()
    };
    seeds.filter_map(number).min()
}

fn table(found: &[Found<'_>]) -> String {
    let mut table = format!(
        "{:<28} {:<20} {:>10} {:>8}  MAKE TEST",
        "DEFECT", "SIMULATION", "FIRST SEED", "SECONDS"
    );
    for one in found {
        let seed = one.first_seed.map(|seed| seed.to_string());
        let _ = write!(
            table,
            "\n{:<28} {:<20} {:>10} {:>8}  {} by {} seeds",
            one.defect.name,
            one.defect.found_by,
            seed.as_deref().unwrap_or("none"),
            one.took.as_secs(),
            if one.is_soon() { "found" } else { "MISSED" },
            one.count,
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Without this test, changes of the code would make more and more entries of the list useless.
    #[test]
    fn every_planted_defect_still_fits_the_code() {
        let root = crate::root();
        let defects = read(&root).unwrap();
        let mut names = BTreeSet::new();
        for defect in &defects {
            assert!(names.insert(&defect.name), "{} is there twice", defect.name);
            let simulation = defect.simulation().unwrap();
            assert!(simulation.count(&root).unwrap() > 0);
            let text = fs::read_to_string(root.join(&defect.file)).unwrap();
            defect.planted_in(&text).unwrap();
        }
        for simulation in &SIMULATIONS {
            let mut of_it = defects.iter().filter(|d| d.found_by == simulation.name);
            assert!(of_it.next().is_some(), "{} has none", simulation.name);
        }
    }

    #[test]
    fn a_text_that_occurs_twice_is_not_replaced() {
        let defect: Defect = serde_yaml::from_str(
            "{name: a, breaks: b, found_by: fuzz, file: c.rs, find: x, replace: y}",
        )
        .unwrap();
        assert_eq!(defect.planted_in("a x b").unwrap(), "a y b");
        assert!(defect.planted_in("a x b x").is_err());
        assert!(defect.planted_in("a b").is_err());
    }

    #[test]
    fn the_smallest_seed_that_is_printed_is_the_first() {
        let printed = "SIMULATION_SEED=41: lost\nSIMULATION_SEED=7 SIMULATION_SCHEDULES=1: lost";
        assert_eq!(first_seed(printed), Some(7));
        assert_eq!(first_seed("FUZZ_SEED=12 FUZZ_COUNT=1"), Some(12));
        assert_eq!(first_seed("test result: ok"), None);
    }
}
