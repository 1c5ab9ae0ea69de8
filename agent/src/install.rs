//! `install`: copies the program to another folder.

use std::fs;
use std::io;
use std::process::ExitCode;

use crate::arguments::Install;
use crate::file;

/// The path of this program. It is valid even if the program's file was replaced.
const ITSELF: &str = "/proc/self/exe";
const NAME: &str = "gpu-workspace-agent";

/// Copies the program. A reader sees either the old file or the complete new one.
pub fn run(given: &Install) -> Result<ExitCode, String> {
    let mut to = given.destination.clone();
    if to.is_dir() {
        to.push(NAME);
    }
    let copy = || -> io::Result<()> { file::replace(&to, &fs::read(ITSELF)?, 0o755) };
    copy().map_err(|error| format!("{}: {error}", to.display()))?;
    Ok(ExitCode::SUCCESS)
}
