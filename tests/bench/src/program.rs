//! The measured programs: functions, each built as for a release, and the bare transport.

use std::path::{Path, PathBuf};
use std::process::Command;

use local_cluster::cache::Cache;
use local_cluster::progress::Progress;
use local_cluster::python;

use crate::{Outcome, image};

/// How many programs there are.
pub(crate) const COUNT: usize = 5;

const FUNCTION: &str = "function-gpu-workspace";
const EMPTY: &str = "empty-function";
const BARE: &str = "bare-stack";

/// The kind of answer that a program gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The desired state that this function decides.
    Decision,
    /// The request's own desired state.
    Echo,
    /// The bytes that this function answered before.
    Recorded,
}

/// A program to measure.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// A single word, for file names and for the JSON output.
    pub(crate) name: &'static str,
    /// The name in the table.
    pub(crate) title: &'static str,
    /// The kind of its answer.
    pub(crate) answer: Answer,
    /// The executable.
    pub(crate) command: PathBuf,
    /// Arguments in addition to those that all programs get.
    pub(crate) arguments: Vec<PathBuf>,
    /// The compressed size of its image, in bytes.
    pub(crate) image: f64,
}

/// Builds all programs: this function, the empty function, Go's, Python's, and the bare transport,
/// which answers with the content of the file `answer`.
pub(crate) fn build(
    root: &Path,
    folder: &Path,
    cache: &Cache,
    answer: &Path,
) -> Outcome<[Program; COUNT]> {
    let progress = Progress::to_stderr();
    let step = progress.begin("compile this function, an empty one and the bare transport");
    cargo(root)?;
    step.end("");
    let function = native(root, folder, "function", "this function", FUNCTION)?;
    let empty = Program {
        answer: Answer::Echo,
        ..native(root, folder, "empty", "empty, same SDK", EMPTY)?
    };
    let bare = Program {
        answer: Answer::Recorded,
        arguments: vec![answer.to_owned()],
        ..native(root, folder, "bare", "the transport alone", BARE)?
    };

    let step = progress.begin("compile the function on Go's SDK");
    let binary = folder.join("go-function");
    go(&root.join("tests/bench/go"), &binary)?;
    step.end("");
    let go = Program {
        name: "go",
        title: "same output, Go's SDK",
        answer: Answer::Decision,
        image: image::of_binary(&binary, folder)?,
        command: binary,
        arguments: Vec::new(),
    };

    let source = root.join("tests/bench/python");
    let locked = python::Environment {
        name: "bench-function",
        title: "python environment of Python's SDK",
        lock_file: source.join("requirements.txt"),
    };
    let interpreter = python::ensure(cache, &progress, &locked)?;
    let environment = interpreter
        .ancestors()
        .nth(2)
        .ok_or("no virtual environment")?;
    let python = Program {
        name: "python",
        title: "same output, Python's SDK",
        answer: Answer::Decision,
        image: image::of_folder(environment, folder)?,
        command: interpreter,
        arguments: vec![source.join("main.py")],
    };
    Ok([function, empty, go, python, bare])
}

pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Builds the Rust programs with optimisation and static linking, as for their images. Cargo
/// compiles only their dependencies, with the features that the whole workspace enables.
fn cargo(root: &Path) -> Outcome<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(root)
        .env("RUSTC_WORKSPACE_WRAPPER", root.join("xtask/static-rustc"))
        .args(["build", "--quiet", "--release", "--workspace"])
        .args(["--bin", FUNCTION, "--bin", EMPTY, "--bin", BARE]);
    finish(&mut cargo)
}

/// Builds the Go program as Crossplane's template does: with static linking, without symbols.
fn go(source: &Path, binary: &Path) -> Outcome<()> {
    let mut go = Command::new("go");
    go.current_dir(source)
        .env("CGO_ENABLED", "0")
        .args(["build", "-trimpath", "-ldflags", "-s -w", "-o"])
        .arg(binary)
        .arg(".");
    finish(&mut go)
}

fn native(
    root: &Path,
    folder: &Path,
    name: &'static str,
    title: &'static str,
    binary: &str,
) -> Outcome<Program> {
    let command = target(root).join("release").join(binary);
    Ok(Program {
        name,
        title,
        answer: Answer::Decision,
        image: image::of_binary(&command, folder)?,
        command,
        arguments: Vec::new(),
    })
}

pub(crate) fn finish(command: &mut Command) -> Outcome<()> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {status}").into())
}
