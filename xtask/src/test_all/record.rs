//! The results of suites, recorded by commit in the cache folder.

use std::error::Error;
use std::fmt::{self, Display, Formatter, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;
use local_cluster::cache::{self, Cache};
use serde::{Deserialize, Serialize};

use super::suites::{SUITES, Suite};
use crate::process::output;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The tested code: a commit, and a digest of the changes since the commit, if there are any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Revision(String);

impl Revision {
    pub(super) fn of(root: &Path) -> Outcome<Self> {
        let git =
            |arguments: &[&str]| output(Command::new("git").current_dir(root).args(arguments));
        let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
        let changed = git(&["diff", "--binary", "HEAD"])?;
        let untracked = git(&["ls-files", "--others", "--exclude-standard"])?;
        if changed.is_empty() && untracked.is_empty() {
            return Ok(Self(commit));
        }
        let mut contents = vec![("changed".to_owned(), changed.into_bytes())];
        for file in untracked.lines() {
            contents.push((file.to_owned(), fs::read(root.join(file))?));
        }
        let digest = cache::key(
            contents
                .iter()
                .map(|(name, text)| (name.as_str(), text.as_slice())),
        );
        Ok(Self(format!("{commit}+{}", &digest[..8])))
    }
}

impl Display for Revision {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

/// The result of one suite.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    suite: String,
    /// Whether its command succeeded, and at least one test passed if the suite has tests.
    passed: bool,
    tests_passed: u64,
    tests_failed: u64,
    seconds: u64,
    ended: Timestamp,
}

impl Record {
    pub(super) fn new(
        suite: &Suite,
        succeeded: bool,
        printed: &str,
        took: Duration,
        ended: Timestamp,
    ) -> Self {
        let (tests_passed, tests_failed) = (count(printed, "passed"), count(printed, "failed"));
        Self {
            suite: suite.name.to_owned(),
            passed: succeeded && (tests_passed > 0 || !suite.counts),
            tests_passed,
            tests_failed,
            seconds: took.as_secs(),
            ended,
        }
    }

    pub(super) fn passed(&self) -> bool {
        self.passed
    }

    pub(super) fn is_of(&self, suite: &Suite) -> bool {
        self.suite == suite.name
    }

    pub(super) fn write(&self, cache: &Cache, revision: &Revision) -> Outcome<()> {
        let folder = folder(cache, revision);
        fs::create_dir_all(&folder)?;
        let text = serde_json::to_string_pretty(self)?;
        Ok(fs::write(
            folder.join(format!("{}.json", self.suite)),
            text,
        )?)
    }
}

/// The folder with the records and logs of a revision.
pub(super) fn folder(cache: &Cache, revision: &Revision) -> PathBuf {
    cache.root().join("test-all").join(&revision.0)
}

pub(super) fn read(cache: &Cache, revision: &Revision, suite: &Suite) -> Outcome<Option<Record>> {
    let file = folder(cache, revision).join(format!("{}.json", suite.name));
    if !file.exists() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&fs::read_to_string(file)?)?))
}

/// All records of a revision, in the order of the suites.
pub(super) fn read_all(cache: &Cache, revision: &Revision) -> Outcome<Vec<Record>> {
    let records = SUITES.iter().map(|suite| read(cache, revision, suite));
    Ok(records
        .collect::<Outcome<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect())
}

/// Adds up the numbers before `word` in the summaries of pytest and Cargo.
fn count(printed: &str, word: &str) -> u64 {
    let summaries = printed.lines().filter(|line| {
        line.starts_with("test result: ") || line.contains(" in ") || line.starts_with('=')
    });
    summaries
        .flat_map(|line| line.split([',', ';', '.', '=']))
        .filter_map(|part| {
            let (number, said) = part.trim().split_once(' ')?;
            let said = said.split_whitespace().next()?;
            (said == word).then(|| number.parse::<u64>().ok())?
        })
        .sum()
}

/// The records of these suites as a table for people.
pub(super) fn table<'a>(
    revision: &Revision,
    suites: impl IntoIterator<Item = &'a Suite>,
    records: &[Record],
) -> String {
    let mut table = format!(
        "{:<12} {:<8} {:>6} {:>6} {:>9}  {}\n",
        "SUITE", "RESULT", "PASSED", "FAILED", "TIME", "WHAT"
    );
    let mut seconds = 0;
    for suite in suites {
        let record = records.iter().find(|record| record.is_of(suite));
        let line = match record {
            None => format!(
                "{:<12} {:<8} {:>6} {:>6} {:>9}",
                suite.name, "not run", "", "", ""
            ),
            Some(record) => {
                seconds += record.seconds;
                let result = if record.passed { "passed" } else { "FAILED" };
                format!(
                    "{:<12} {result:<8} {:>6} {:>6} {:>9}",
                    suite.name,
                    record.tests_passed,
                    record.tests_failed,
                    clock(record.seconds)
                )
            }
        };
        let _ = writeln!(table, "{line}  {}", suite.proves);
    }
    let _ = write!(table, "at {revision}, {} in all", clock(seconds));
    table
}

/// Minutes and seconds.
fn clock(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(name: &str) -> &'static Suite {
        SUITES.iter().find(|suite| suite.name == name).unwrap()
    }

    fn recorded(name: &str, succeeded: bool, printed: &str) -> Record {
        let took = Duration::from_secs(61);
        Record::new(suite(name), succeeded, printed, took, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn tests_of_pytest_and_of_cargo_are_counted() {
        let pytest = "98 passed, 2 failed in 780.12s (0:13:00)\n";
        assert_eq!((count(pytest, "passed"), count(pytest, "failed")), (98, 2));
        let framed = "===== 3 passed, 1 deselected in 0.10s =====\n";
        assert_eq!(count(framed, "passed"), 3);
        let cargo = "test result: ok. 42 passed; 0 failed; 0 ignored; finished in 1.02s\n\
                     test result: ok. 7 passed; 0 failed; 0 ignored\n";
        assert_eq!((count(cargo, "passed"), count(cargo, "failed")), (49, 0));
        assert_eq!(count("test a_claim_that_passed ... ok\n", "passed"), 0);
    }

    #[test]
    fn a_suite_that_ran_no_test_did_not_pass() {
        assert!(!recorded("main", true, "no tests ran in 0.01s\n").passed());
        assert!(recorded("main", true, "1 passed in 0.01s\n").passed());
        assert!(!recorded("main", false, "1 passed in 0.01s\n").passed());
        assert!(recorded("check", true, "").passed());
    }

    #[test]
    fn the_table_shows_what_failed_and_what_was_not_run() {
        let records = [recorded(
            "unit",
            false,
            "test result: FAILED. 9 passed; 1 failed;\n",
        )];
        let table = table(&Revision("abc".into()), SUITES, &records);
        let line = |name: &str| {
            let found = table.lines().find(|line| line.starts_with(name)).unwrap();
            found
                .split_whitespace()
                .take(5)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(line("unit"), ["unit", "FAILED", "9", "1", "1:01"]);
        assert_eq!(line("main")[1..3], ["not", "run"]);
        assert!(table.ends_with("at abc, 1:01 in all"), "{table}");
    }
}
