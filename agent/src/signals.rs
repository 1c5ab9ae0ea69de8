//! Signals, and what commands inherit of them.

use std::io;
use std::process::{Child, Command};

use nix::sys::signal::SigSet;

/// Starts a command that obeys every signal. A command inherits what the thread that
/// starts it has blocked, and would not end when it is asked to.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let blocked = SigSet::thread_get_mask()?;
    SigSet::empty().thread_set_mask()?;
    let child = command.spawn();
    blocked.thread_set_mask()?;
    child
}
