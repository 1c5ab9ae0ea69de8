//! The place where devctl's commands run behind the bastion's login: the API server by way of the
//! broker, ssh to workspaces, and no other programs and no files.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use bastion_core::calls::Caller;
use bastion_core::protocol::{Answer, Ask, Call, Reply};
use devctl_core::grammar::{Arguments, Command};
use devctl_core::host::{
    Clock, Destination, Files, Piped, Program, Programs, Ran, Reach, Refused, Settings,
};
use devctl_core::name;
use devctl_core::problem::{Code, Problem};
use devctl_terminal::programs;
use futures::stream::BoxStream;
use jiff::Timestamp;

use super::link::Link;
use super::ssh;

/// The broker behind a session.
pub(super) struct Place<'a>(pub(super) &'a Link);

#[async_trait]
impl Caller for Place<'_> {
    fn namespace(&self) -> &str {
        &self.0.welcome.namespace
    }

    async fn call(&self, call: Call) -> Result<Reply, Refused> {
        let away = |message: String| Refused {
            message,
            ..Refused::default()
        };
        match self.0.ask(&Ask::Api(call)) {
            Ok(Answer::Api(result)) => result,
            Ok(_) => Err(away("the broker answered something else".to_owned())),
            Err(error) => Err(away(format!("the broker: {error}"))),
        }
    }
}

/// Why a command does not run here; none if it does.
pub(super) fn elsewhere(arguments: &Arguments, words: &[String], enters: bool) -> Option<Problem> {
    let shared = &arguments.shared;
    let option = [
        (shared.context.is_some(), "--context"),
        (shared.kubeconfig.is_some(), "--kubeconfig"),
        (shared.identity.is_some(), "--identity"),
        (shared.namespace.is_some(), "--namespace"),
    ];
    let given = option.into_iter().find(|(is_given, _)| *is_given);
    if let Some((_, option)) = given {
        let message = format!("{option} is not possible here: the bastion knows your namespace");
        return Some(Problem::usage(option, message));
    }
    match needs(&arguments.command) {
        Needs::Nothing => None,
        Needs::Ssh if enters => None,
        Needs::Ssh => Some(no_authority(words)),
        Needs::OwnMachine => Some(on_your_machine(words)),
    }
}

/// What a command needs beside the API server.
enum Needs {
    Nothing,
    /// A login to the workspace.
    Ssh,
    /// Files or programs of the person's own machine.
    OwnMachine,
}

/// The problem of a bastion that cannot log in to workspaces.
fn no_authority(words: &[String]) -> Problem {
    let line = words.join(" ");
    Problem::new(
        Code::Refused,
        "NoAuthority",
        "this bastion has no authority by which it logs in to workspaces",
    )
    .next(format!("run it on your own machine: devctl {line}"))
}

/// The problem of a command that needs files or programs of the person's own machine.
fn on_your_machine(words: &[String]) -> Problem {
    let line = words.join(" ");
    Problem::new(
        Code::Refused,
        "NotHere",
        "this needs files or programs of your own machine",
    )
    .next(format!("run it there: devctl {line}"))
}

fn needs(command: &Command) -> Needs {
    match command {
        Command::Create(given) if given.file.is_some() || given.git || !given.key.is_empty() => {
            Needs::OwnMachine
        }
        Command::Delete(given) if given.git => Needs::OwnMachine,
        Command::Run(given) if given.sync.is_some() => Needs::OwnMachine,
        Command::Create(_)
        | Command::Delete(_)
        | Command::List(_)
        | Command::Show(_)
        | Command::Why(_)
        | Command::Flavors(_)
        | Command::Whoami(_)
        | Command::Cost(_)
        | Command::Stop(_)
        | Command::Start(_)
        | Command::Extend(_) => Needs::Nothing,
        Command::Ssh(_)
        | Command::Run(_)
        | Command::Jobs(_)
        | Command::Logs(_)
        | Command::Cancel(_)
        | Command::Monitor(_) => Needs::Ssh,
        _ => Needs::OwnMachine,
    }
}

fn none<T>() -> io::Result<T> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "the bastion runs no programs and has no files of users",
    ))
}

#[async_trait]
impl Programs for Place<'_> {
    async fn run(&self, program: &Program) -> io::Result<i32> {
        programs::run(ssh::command(self.0, program)?).await
    }

    async fn capture(&self, program: &Program) -> io::Result<Ran> {
        programs::capture(ssh::command(self.0, program)?).await
    }

    async fn piped(&self, program: &Program) -> io::Result<Piped> {
        programs::piped(ssh::command(self.0, program)?).await
    }

    fn lines(&self, program: &Program) -> io::Result<BoxStream<'static, io::Result<String>>> {
        programs::lines(ssh::command(self.0, program)?)
    }

    fn own_path(&self) -> io::Result<PathBuf> {
        none()
    }

    fn is_installed(&self, _: &str) -> bool {
        false
    }
}

#[async_trait]
impl Reach for Place<'_> {
    async fn connect(&self, _: &name::Host, _: &Destination) -> io::Result<()> {
        none()
    }

    async fn answers(&self, _: &name::Host, _: &Destination, _: Duration) -> io::Result<()> {
        none()
    }

    fn free_port(&self) -> io::Result<u16> {
        none()
    }

    fn settings(&self) -> Option<Settings> {
        Some(ssh::settings(&self.0.run))
    }
}

impl Files for Place<'_> {
    fn home(&self) -> &Path {
        Path::new("/")
    }

    fn state(&self) -> &Path {
        Path::new("/")
    }

    fn read(&self, _: &Path) -> io::Result<Option<String>> {
        Ok(None)
    }

    fn replace(&self, _: &Path, _: &str) -> io::Result<()> {
        none()
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Send>> {
        none()
    }

    fn stdin(&self) -> io::Result<String> {
        none()
    }
}

#[async_trait]
impl Clock for Place<'_> {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
