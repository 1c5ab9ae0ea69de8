//! The place where devctl's commands run behind the bastion's login: the API server by way of the
//! broker, and no programs and no files.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use bastion_core::calls::Caller;
use bastion_core::protocol::{Answer, Ask, Call, Reply};
use devctl_core::grammar::{Arguments, Command};
use devctl_core::host::{Clock, Destination, Files, Piped, Program, Programs, Ran, Reach, Refused};
use devctl_core::name;
use devctl_core::problem::{Code, Problem};
use futures::stream::BoxStream;
use jiff::Timestamp;

use super::link::Link;

/// The broker behind a session.
pub(super) struct Place<'a>(pub(super) &'a Link);

#[async_trait]
impl Caller for Place<'_> {
    fn namespace(&self) -> &str {
        &self.0.namespace
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
pub(super) fn elsewhere(arguments: &Arguments, words: &[String]) -> Option<Problem> {
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
    (!works_here(&arguments.command)).then(|| on_your_machine(words))
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

/// Whether a command works behind the bastion's login.
fn works_here(command: &Command) -> bool {
    match command {
        Command::Create(given) => given.file.is_none() && !given.git && given.key.is_empty(),
        Command::Delete(given) => !given.git,
        Command::List(_)
        | Command::Show(_)
        | Command::Why(_)
        | Command::Flavors(_)
        | Command::Whoami(_)
        | Command::Cost(_)
        | Command::Stop(_)
        | Command::Start(_)
        | Command::Extend(_) => true,
        _ => false,
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
    async fn run(&self, _: &Program) -> io::Result<i32> {
        none()
    }

    async fn capture(&self, _: &Program) -> io::Result<Ran> {
        none()
    }

    async fn piped(&self, _: &Program) -> io::Result<Piped> {
        none()
    }

    fn lines(&self, _: &Program) -> io::Result<BoxStream<'static, io::Result<String>>> {
        none()
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
