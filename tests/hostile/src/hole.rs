//! Holes that the corpus of hostile command lines must find. Apart from its hole, a session is the real one.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::REAL;

/// The file with the name of the hole.
const FILE: &str = "/etc/gpu-bastion-hole/hole";

/// The hole that this pod has, if it has one.
pub(crate) fn planted() -> Option<String> {
    let name = std::fs::read_to_string(FILE).ok()?;
    Some(name.trim().to_owned())
}

/// Becomes the program of a session with this hole. Returns why that is not possible.
pub(crate) fn session(hole: &str, arguments: &[String]) -> io::Error {
    let line = std::env::var("SSH_ORIGINAL_COMMAND").ok();
    let mut words = line.iter().flat_map(|line| line.split(' '));
    if hole == "programs"
        && let Some(first) = words.next()
        && Path::new("/usr/bin").join(first).is_file()
    {
        return Command::new(first).args(words).exec();
    }
    let mut real = Command::new(REAL);
    if hole == "expansions"
        && let Some(line) = &line
    {
        real.env("SSH_ORIGINAL_COMMAND", expanded(line));
    }
    real.args(arguments).exec()
}

/// The line with the value of its first product in `$((…))`.
fn expanded(line: &str) -> String {
    let value = || {
        let (before, rest) = line.split_once("$((")?;
        let (product, after) = rest.split_once("))")?;
        let (left, right) = product.split_once('*')?;
        let value = left.parse::<u32>().ok()? * right.parse::<u32>().ok()?;
        Some(format!("{before}{value}{after}"))
    };
    value().unwrap_or_else(|| line.to_owned())
}
