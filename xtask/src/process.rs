//! Runs programs to their end.

use std::error::Error;
use std::process::Command;

/// Runs a command and returns its output. An error contains what the command wrote to standard
/// error.
pub(crate) fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let ran = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    Err(format!("{command:?}: {}: {}", ran.status, said.trim()).into())
}
