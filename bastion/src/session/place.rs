//! The place where devctl's commands run behind the bastion's login: the API server by way of the
//! broker, and no programs and no files.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use bastion_core::protocol::{Answer, Ask, Call, Reply};
use devctl_core::grammar::Arguments;
use devctl_core::host::{
    Api, Change, Clock, Destination, Effect, Files, Piped, Program, Programs, Ran, Reach, Refused,
    Scope,
};
use devctl_core::object::{Kind, Reference};
use devctl_core::problem::Problem;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde_json::Value;

use super::{Session, on_your_machine, works_here};

/// The broker behind a session.
pub(super) struct Place<'a>(&'a Session);

impl<'a> Place<'a> {
    pub(super) fn new(session: &'a Session) -> Self {
        Self(session)
    }

    fn call(&self, call: Call) -> Result<Reply, Refused> {
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

/// The answer to something that the broker never answers to this question.
fn unexpected() -> Refused {
    Refused {
        message: "the broker answered another question".to_owned(),
        ..Refused::default()
    }
}

#[async_trait]
impl Api for Place<'_> {
    fn namespace(&self) -> &str {
        &self.0.namespace
    }

    async fn get(&self, object: &Reference) -> Result<Value, Refused> {
        match self.call(Call::Get(object.clone()))? {
            Reply::Object(object) => Ok(object),
            _ => Err(unexpected()),
        }
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Value>, Refused> {
        match self.call(Call::List(kind, scope.clone()))? {
            Reply::Objects(objects) => Ok(objects),
            _ => Err(unexpected()),
        }
    }

    async fn create(&self, object: &Value, effect: Effect) -> Result<Value, Refused> {
        match self.call(Call::Create(object.clone(), effect))? {
            Reply::Object(object) => Ok(object),
            _ => Err(unexpected()),
        }
    }

    async fn patch(
        &self,
        object: &Reference,
        patch: &Value,
        effect: Effect,
    ) -> Result<Value, Refused> {
        match self.call(Call::Patch(object.clone(), patch.clone(), effect))? {
            Reply::Object(object) => Ok(object),
            _ => Err(unexpected()),
        }
    }

    async fn delete(&self, object: &Reference, uid: &str) -> Result<(), Refused> {
        self.call(Call::Delete(object.clone(), uid.to_owned()))
            .map(drop)
    }

    async fn changed(
        &self,
        object: &Reference,
        version: &str,
        longest: Duration,
    ) -> Result<Change, Refused> {
        match self.call(Call::Changed(object.clone(), version.to_owned(), longest))? {
            Reply::Change(change) => Ok(change),
            _ => Err(unexpected()),
        }
    }

    async fn may(&self, verb: &str, kind: Kind, namespace: &str) -> Result<bool, Refused> {
        match self.call(Call::May(verb.to_owned(), kind, namespace.to_owned()))? {
            Reply::Flag(may) => Ok(may),
            _ => Err(unexpected()),
        }
    }

    async fn time(&self) -> Result<Timestamp, Refused> {
        match self.call(Call::Time)? {
            Reply::Time(time) => Ok(time),
            _ => Err(unexpected()),
        }
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
    async fn connect(&self, _: &Destination) -> io::Result<()> {
        none()
    }

    async fn answers(&self, _: &Destination, _: Duration) -> io::Result<()> {
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
