//! Runs Cargo and shows its progress.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use local_cluster::cache::Cache;
use local_cluster::command;
use local_cluster::durations::Usual;
use local_cluster::progress::Step;

/// Runs cargo with its output in the log of that name. `step` shows its progress. `typical` is the
/// duration of a first run on two cores.
pub(crate) fn run(
    cargo: &mut Command,
    name: &str,
    typical: Duration,
    step: Option<&Step>,
) -> Result<(), Box<dyn Error>> {
    let cache = Cache::from_environment()?;
    let log = cache.log(name);
    fs::create_dir_all(cache.root().join("logs"))?;
    let usual = Usual::of(&cache, name, typical);
    if let Some(step) = step {
        step.expect(usual.duration());
        step.follow(crates_compiled(log.clone()));
    }
    // Cargo writes its progress bar into the log, because the bar contains the number of crates.
    cargo
        .env("CARGO_TERM_PROGRESS_WHEN", "always")
        .env("CARGO_TERM_PROGRESS_WIDTH", "120");
    command::logged(cargo, &log)?;
    if let Some(step) = step {
        usual.record(step.elapsed());
    }
    Ok(())
}

fn crates_compiled(log: PathBuf) -> impl Fn() -> Option<String> + Send {
    move || how_far(&read(&log)?)
}

fn read(log: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&fs::read(log).ok()?).into_owned())
}

/// The progress from cargo's output. The last `Building [=> ] 12/345: aws-sdk-ec2` becomes
/// `12 of 345 crates: aws-sdk-ec2`.
fn how_far(log: &str) -> Option<String> {
    let bar = log
        .rsplit(['\r', '\n'])
        .find(|line| line.contains("Building"))?;
    let (counts, crates) = bar.rsplit_once("] ")?.1.split_once(':')?;
    let (done, all) = counts.split_once('/')?;
    Some(format!("{done} of {all} crates:{}", crates.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_how_many_crates_are_compiled_and_which_ones_are_under_way() {
        let log = "   Compiling url v2\n\x1b[K    Building [=>    ] 3/345: url\r   Compiling tokio v1\n\
                   \x1b[K    Building [===>   ] 12/345: aws-sdk-ec2, kube(build.rs)   \r";
        let far = how_far(log);
        assert_eq!(
            far.as_deref(),
            Some("12 of 345 crates: aws-sdk-ec2, kube(build.rs)")
        );
        assert_eq!(how_far("    Blocking waiting for file lock\n"), None);
    }
}
