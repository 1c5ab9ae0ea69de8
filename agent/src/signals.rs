//! Signal masks of child processes.

use std::io;
use std::process::{Child, Command};

use nix::sys::signal::SigSet;

/// Starts a command that receives all signals. A command inherits the signal mask of the thread
/// that starts it, and a blocked SIGTERM would not end it.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let blocked = SigSet::thread_get_mask()?;
    SigSet::empty().thread_set_mask()?;
    let child = command.spawn();
    blocked.thread_set_mask()?;
    child
}
