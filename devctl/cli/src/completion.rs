//! Completion in shells: the words of the grammar, and the workspaces and flavors of the cluster.

use std::ffi::OsStr;
use std::time::Duration;

use clap::{Command, CommandFactory, Parser};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use devctl_core::grammar::{Arguments, Shell};
use devctl_core::host::{Api, Scope, Terminal};
use devctl_core::name::Name;
use devctl_core::object::{Kind, text};
use devctl_core::problem::{Code, Problem};
use devctl_core::text::printable;

use crate::cluster;
use crate::files::Disk;
use crate::settings;
use devctl_terminal::Screen;

/// The variable by which a shell's script asks for candidates.
const VARIABLE: &str = "DEVCTL_COMPLETE";
/// How long a person waits for candidates at most.
const PATIENCE: Duration = Duration::from_secs(2);
/// The options that say which cluster and namespace the candidates come from.
const SHARED: [&str; 4] = ["--namespace", "-n", "--context", "--kubeconfig"];

/// Answers a shell that asks for candidates, and ends the program then. Otherwise it does nothing.
pub(crate) fn answer() {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Prints the script that makes a shell ask devctl for candidates.
pub(crate) fn script(terminal: &Screen, shell: Shell) -> Result<u8, Problem> {
    let name = match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
    };
    let failed = |message: String| Problem::new(Code::Failed, "Completion", message);
    let shells = Shells::builtins();
    let shell = shells.completer(name);
    let shell = shell.ok_or_else(|| failed(format!("no completion for {name}")))?;
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, "devctl", "devctl", "devctl", &mut script)
        .map_err(|error| failed(error.to_string()))?;
    terminal.document(&String::from_utf8_lossy(&script))?;
    Ok(0)
}

/// The grammar with candidates from the cluster.
fn command() -> Command {
    Arguments::command().mut_subcommands(|command| {
        let (of, kind) = match command.get_name() {
            "create" => (&["flavor", "positional flavor"][..], Kind::Flavor),
            _ => (&["name"][..], Kind::Claim),
        };
        let completed = numbered(command);
        of.iter().fold(completed, |command, id| {
            if !command.get_arguments().any(|known| known.get_id() == *id) {
                return command;
            }
            let candidates = move |current: &OsStr| candidates(kind, current);
            command.mut_arg(*id, |known| known.add(ArgValueCompleter::new(candidates)))
        })
    })
}

/// The command with a number for each positional argument. Without one a changed argument becomes
/// the last.
fn numbered(command: Command) -> Command {
    let positional = command.get_positionals();
    let ids: Vec<_> = positional.map(|known| known.get_id().clone()).collect();
    ids.iter().zip(1..).fold(command, |command, (id, place)| {
        command.mut_arg(id.as_str(), |known| known.index(place))
    })
}

/// The objects of a kind whose names begin with `current`. A cluster that does not answer has none,
/// because a shell shows no errors while it completes.
fn candidates(kind: Kind, current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let listed = runtime.block_on(async { tokio::time::timeout(PATIENCE, listed(kind)).await });
    runtime.shutdown_background();
    let listed = listed.ok().flatten().unwrap_or_default();
    let names = listed.into_iter().filter_map(|(name, note)| {
        // A text that is no name of Kubernetes must not reach the shell.
        let name: Name = name.parse().ok()?;
        let begins = name.as_str().starts_with(&*current);
        begins.then(|| {
            CompletionCandidate::new(name.as_str()).help(note.map(|note| printable(&note).into()))
        })
    });
    names.collect()
}

/// The names of the objects, with a note about each.
async fn listed(kind: Kind) -> Option<Vec<(String, Option<String>)>> {
    let words = std::iter::once("devctl".to_owned()).chain(shared(std::env::args()));
    let mut arguments = Arguments::try_parse_from(words.chain(["list".to_owned()])).ok()?;
    settings::fill_in(&Disk::new().ok()?, &mut arguments).ok()?;
    let cluster = cluster::open(&arguments.shared).await.ok()?;
    let (scope, note) = match kind {
        Kind::Claim => (
            Scope::Namespace(cluster.namespace().to_owned()),
            "/status/phase",
        ),
        _ => (Scope::Cluster, "/status/gpu"),
    };
    let objects = cluster.list(kind, &scope).await.ok()?;
    let named = objects.iter().filter_map(|object| {
        let name = text(object, "/metadata/name")?.to_owned();
        Some((name, text(object, note).map(str::to_owned)))
    });
    Some(named.collect())
}

/// The options on a command line that say which cluster and namespace to ask.
fn shared(mut words: impl Iterator<Item = String>) -> Vec<String> {
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        let begins = |option: &&str| {
            let rest = word.strip_prefix(*option);
            rest.is_some_and(|rest| rest.starts_with('='))
        };
        if SHARED.iter().any(begins) {
            options.push(word);
        } else if SHARED.contains(&&*word)
            && let Some(value) = words.next()
        {
            options.extend([word, value]);
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_and_namespace_on_the_command_line_are_asked() {
        let line = "-- devctl ssh -n team --context=there --replica 1 wo";
        let words = line.split(' ').map(str::to_owned);
        assert_eq!(shared(words), ["-n", "team", "--context=there"]);
        let unfinished = ["devctl", "ssh", "--namespace"].map(str::to_owned);
        assert_eq!(shared(unfinished.into_iter()), [""; 0]);
    }

    #[test]
    fn every_command_with_a_workspace_completes_its_name() {
        let mut command = command();
        command.build();
        for name in ["ssh", "run", "logs", "stop", "delete", "why"] {
            let found = command.find_subcommand(name).unwrap();
            let argument = found.get_arguments().find(|one| one.get_id() == "name");
            let completer = argument.unwrap().get::<ArgValueCompleter>();
            assert!(completer.is_some(), "{name}");
        }
        let create = command.find_subcommand("create").unwrap();
        let flavors = create.get_arguments().filter(|one| {
            let has = one.get::<ArgValueCompleter>().is_some();
            has && one.get_id().as_str().ends_with("flavor")
        });
        assert_eq!(flavors.count(), 2);
    }
}
