//! `install`: copies the program itself to where others find it.

use std::fs;
use std::io;
use std::process::ExitCode;

use crate::arguments::Install;
use crate::file;

/// This program, also where its file was replaced.
const ITSELF: &str = "/proc/self/exe";
const NAME: &str = "gpu-workspace-agent";

/// Copies it; whoever looks finds the old one or the whole new one.
pub fn run(given: &Install) -> Result<ExitCode, String> {
    let mut to = given.destination.clone();
    if to.is_dir() {
        to.push(NAME);
    }
    let copy = || -> io::Result<()> { file::replace(&to, &fs::read(ITSELF)?, 0o755) };
    copy().map_err(|error| format!("{}: {error}", to.display()))?;
    Ok(ExitCode::SUCCESS)
}
