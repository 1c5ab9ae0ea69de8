//! Ensures that hooks run only once before a stop.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use clap::ValueEnum;
use nix::fcntl::{Flock, FlockArg};

/// The reason of a stop, for `WORKSPACE_STOP_REASON`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reason {
    /// The owner or the platform stops the machine.
    Stop,
    /// AWS takes the spot instance back.
    Interruption,
}

impl Reason {
    /// The value of the variable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Interruption => "interruption",
        }
    }
}

/// Calls `act` unless `file` shows that it was already called before this stop. /run is empty after
/// the stop. A second process waits for the first. Returns the result of `act`, or none if it was
/// not called.
pub fn once<T>(file: &Path, why: &str, act: impl FnOnce() -> T) -> io::Result<Option<T>> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let opened = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(file)?;
    let mut lock = Flock::lock(opened, FlockArg::LockExclusive).map_err(|(_, error)| error)?;
    let mut before = String::new();
    lock.read_to_string(&mut before)?;
    if !before.is_empty() {
        return Ok(None);
    }
    // The file is written before `act`, so an `act` that fails is not repeated.
    writeln!(lock, "{why}")?;
    Ok(Some(act()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_of_an_interruption_do_not_run_again_at_the_stop() {
        let folder = std::env::temp_dir().join(format!("agent-stop-{}", std::process::id()));
        let file = folder.join("run/pre-stop");
        assert_eq!(once(&file, "interruption", || 1).unwrap(), Some(1));
        assert_eq!(once(&file, "stop", || 2).unwrap(), None);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(once(&file, "stop", || 3).unwrap(), Some(3), "the next boot");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
