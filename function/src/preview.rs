//! `function-gpu-workspace preview`: shows what another policy would do to the workspaces of a cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use function_gpu_workspace::kinds::{self, KINDS};
use function_preview::snapshot::{Dump, Source};
use function_preview::{Error, Preview, Proposal, preview};
use jiff::Timestamp;
use serde_json::Value;

/// The exit code if a machine that runs would end.
const ENDS_A_MACHINE: u8 = 1;
/// The exit code if there is no preview.
const FAILED: u8 = 2;
/// What kubectl says of a kind that the cluster does not have.
const UNKNOWN_KIND: &str = "the server doesn't have a resource type";

/// The command line of the preview.
#[derive(Args)]
pub struct Options {
    /// File with the proposed policy: an input of the function, or a Composition with one
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,

    /// Composition whose workspaces get the policy. Default: the one in the file, or gpudevworkspaces
    #[arg(long, value_name = "NAME")]
    composition: Option<String>,

    /// EnvironmentConfig with the platform's limits, as the function has it
    #[arg(long, env = "LIMITS", value_name = "NAME",
        value_parser = NonEmptyStringValueParser::new())]
    limits: Option<String>,

    /// Read this dump instead of the cluster of the kubeconfig
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,

    /// Write everything that was read of the cluster to this file, for --dump. It has no Secrets
    #[arg(long, value_name = "FILE", conflicts_with = "dump")]
    save: Option<PathBuf>,

    /// Format of the output
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,

    /// Decide as of this time instead of the current time
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
}

/// The format of the output.
#[derive(Clone, Copy, ValueEnum)]
enum Output {
    /// A line for each workspace that the policy touches.
    Table,
    /// All workspaces, for programs.
    Json,
}

/// Prints a preview. The exit code is 1 if a machine that runs would end, and 2 without a preview.
pub fn run(options: &Options) -> ExitCode {
    match shown(options) {
        Ok((text, ends_a_machine)) => {
            println!("{text}");
            if ends_a_machine {
                ExitCode::from(ENDS_A_MACHINE)
            } else {
                ExitCode::SUCCESS
            }
        }
        Err(error) => {
            eprintln!("function-gpu-workspace preview: {error}");
            ExitCode::from(FAILED)
        }
    }
}

fn shown(options: &Options) -> Result<(String, bool), Error> {
    let preview = if let Some(dump) = &options.dump {
        decided(options, &mut Dump::read(&read(dump)?)?)?
    } else {
        let mut kubectl = Kubectl::default();
        let preview = decided(options, &mut kubectl)?;
        if let Some(path) = &options.save {
            let text = kubectl.read.into_list().to_string();
            fs::write(path, text).map_err(|error| of_file(path, error))?;
        }
        preview
    };
    let text = match options.output {
        Output::Table => preview.to_string(),
        Output::Json => serde_json::to_string_pretty(&preview)
            .map_err(|error| Error::Source(error.to_string()))?,
    };
    Ok((text, preview.ends_a_machine()))
}

fn decided(options: &Options, source: &mut dyn Source) -> Result<Preview, Error> {
    let text = read(&options.policy)?;
    let proposal = Proposal::read(&text, options.composition.as_deref(), source)?;
    let kinds = options.limits.clone().map_or(KINDS, kinds::limited);
    let now = options.now.unwrap_or_else(Timestamp::now);
    preview(&proposal, source, kinds, now)
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| of_file(path, error))
}

fn of_file(path: &Path, error: std::io::Error) -> Error {
    Error::File {
        path: path.display().to_string(),
        error,
    }
}

/// The cluster of the kubeconfig. kubectl knows every way to log in to a cluster.
#[derive(Default)]
struct Kubectl {
    read: Dump,
}

impl Source for Kubectl {
    fn list(&mut self, api_version: &str, kind: &str) -> Result<Vec<Value>, Error> {
        let kind = kind.to_lowercase();
        let resource = match api_version.split_once('/') {
            Some((group, version)) => format!("{kind}.{version}.{group}"),
            None => kind,
        };
        let ran = Command::new("kubectl")
            .args(["get", &resource, "--all-namespaces", "--output=json"])
            .output();
        let ran = ran.map_err(|error| of_file(Path::new("kubectl"), error))?;
        let said = String::from_utf8_lossy(&ran.stderr);
        if !ran.status.success() {
            if said.contains(UNKNOWN_KIND) {
                return Ok(Vec::new());
            }
            let problem = format!("kubectl get {resource}: {}", said.trim());
            return Err(Error::Source(problem));
        }
        let list: Value = serde_json::from_slice(&ran.stdout)
            .map_err(|error| Error::Source(format!("kubectl get {resource}: {error}")))?;
        let items = list.get("items").and_then(Value::as_array);
        let items = items.cloned().unwrap_or_default();
        self.read.extend(items.iter().cloned());
        Ok(items)
    }
}
