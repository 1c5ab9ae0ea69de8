//! Runs other programs to their end. Errors name the program and the cause.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// A program that could not be run, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program did not start.
    #[error("start {program}: {source}")]
    Start {
        /// The program with its arguments.
        program: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The program failed.
    #[error("{program} ended with {status}:\n{output}")]
    Failed {
        /// The program with its arguments.
        program: String,
        /// Its exit status.
        status: ExitStatus,
        /// The last lines of its output.
        output: String,
    },
    /// The program failed, and its output was already shown.
    #[error("{program} ended with {status}")]
    Ended {
        /// The program with its arguments.
        program: String,
        /// Its exit status.
        status: ExitStatus,
    },
    /// The program failed, and its output is in a file.
    #[error("{program} ended with {status}; its log is {log}, which ends with:\n{output}")]
    FailedWithLog {
        /// The program with its arguments.
        program: String,
        /// Its exit status.
        status: ExitStatus,
        /// The file with its output.
        log: PathBuf,
        /// The last lines of that file.
        output: String,
    },
}

/// Runs the command and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String, Error> {
    finish(command.stdin(Stdio::null()), None)
}

/// Runs the command with `input` on its standard input.
pub(crate) fn output_with_input(command: &mut Command, input: &str) -> Result<String, Error> {
    finish(command.stdin(Stdio::piped()), Some(input))
}

fn finish(command: &mut Command, input: Option<&str>) -> Result<String, Error> {
    let program = describe(command);
    let start = |source| Error::Start {
        program: program.clone(),
        source,
    };
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(start)?;
    if let (Some(text), Some(mut pipe)) = (input, child.stdin.take()) {
        pipe.write_all(text.as_bytes()).map_err(start)?;
    }
    let ended = child.wait_with_output().map_err(start)?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    let said = [ended.stdout, ended.stderr].concat();
    Err(Error::Failed {
        program,
        status: ended.status,
        output: last_lines(&String::from_utf8_lossy(&said), 20),
    })
}

/// Runs the command. Its output goes to this process's own output.
pub(crate) fn seen(command: &mut Command) -> Result<(), Error> {
    let program = describe(command);
    let status = command.status().map_err(|source| Error::Start {
        program: program.clone(),
        source,
    })?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Ended { program, status })
}

/// Runs the command. Its output goes to the file `log`.
pub fn logged(command: &mut Command, log: &Path) -> Result<(), Error> {
    let program = describe(command);
    let start = |source| Error::Start {
        program: program.clone(),
        source,
    };
    let file = std::fs::File::create(log).map_err(start)?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file.try_clone().map_err(start)?)
        .stderr(file)
        .status()
        .map_err(start)?;
    if status.success() {
        return Ok(());
    }
    Err(Error::FailedWithLog {
        program,
        status,
        log: log.to_path_buf(),
        output: tail(log, 20),
    })
}

/// The last lines of a file, or the reason why it cannot be read.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    match std::fs::read(path) {
        Ok(bytes) => last_lines(&String::from_utf8_lossy(&bytes), lines),
        Err(error) => format!("    ({}: {error})", path.display()),
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = lines.len().saturating_sub(count);
    let shown: Vec<String> = lines[from..]
        .iter()
        .map(|line| format!("    {line}"))
        .collect();
    if shown.is_empty() {
        "    (it printed nothing)".to_owned()
    } else {
        shown.join("\n")
    }
}

pub(crate) fn describe(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_is_named_with_what_it_said() {
        let error = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("sh -c"), "{text}");
        assert!(text.contains("exit status: 3"), "{text}");
        assert!(text.contains("    why"), "{text}");
    }

    #[test]
    fn only_the_last_lines_of_a_long_log_are_shown() {
        let lines: Vec<_> = (0..50).map(|number| format!("line {number}")).collect();
        let shown = last_lines(&lines.join("\n"), 2);
        assert_eq!(shown, "    line 48\n    line 49");
    }
}
