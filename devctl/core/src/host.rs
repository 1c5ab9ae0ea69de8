//! What devctl needs of the place where it runs: a laptop, and later the bastion.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::name;
use crate::object::{Kind, Reference};
use crate::problem::{Code, Problem};
use crate::text::Line;

/// The place where devctl runs.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// The API server.
    pub api: &'a dyn Api,
    /// What the user sees and types.
    pub terminal: &'a dyn Terminal,
    /// Other programs.
    pub programs: &'a dyn Programs,
    /// The way to workspaces.
    pub reach: &'a dyn Reach,
    /// The user's files.
    pub files: &'a dyn Files,
    /// The time.
    pub clock: &'a dyn Clock,
}

/// The API server, as the user.
#[async_trait]
pub trait Api: Send + Sync {
    /// The namespace of commands that name none.
    fn namespace(&self) -> &str;
    /// Reads an object.
    async fn get(&self, object: &Reference) -> Result<Value, Refused>;
    /// Reads all objects of a kind in a namespace, or in all namespaces.
    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Value>, Refused>;
    /// Creates an object. A trial runs every check of the API server and stores nothing.
    async fn create(&self, object: &Value, effect: Effect) -> Result<Value, Refused>;
    /// Changes an object by a merge patch (RFC 7396), and returns it.
    async fn patch(
        &self,
        object: &Reference,
        patch: &Value,
        effect: Effect,
    ) -> Result<Value, Refused>;
    /// Deletes an object if it still has this UID. Kubernetes deletes the object's dependents first.
    async fn delete(&self, object: &Reference, uid: &str) -> Result<(), Refused>;
    /// Waits until the object is no longer as in `version`. An object that does not exist has an empty
    /// version.
    async fn changed(
        &self,
        object: &Reference,
        version: &str,
        longest: Duration,
    ) -> Result<Change, Refused>;
    /// Whether the user may do this in the namespace (`SelfSubjectAccessReview`).
    async fn may(&self, verb: &str, kind: Kind, namespace: &str) -> Result<bool, Refused>;
    /// The time of the API server's clock.
    async fn time(&self) -> Result<Timestamp, Refused>;
}

/// Where objects are listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// In a namespace.
    Namespace(String),
    /// In all namespaces, or of the whole cluster.
    Cluster,
}

/// Whether a request takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// It does.
    Stored,
    /// It is only checked.
    Trial,
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Change {
    /// It is this now.
    Now(Box<Value>),
    /// It does not exist any more.
    Gone,
    /// It did not change for the given time.
    None,
}

/// The answer of an API server that refuses, or does not answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The status of HTTP; none if there was no answer.
    pub status: Option<u16>,
    /// The reason in one word, for example `NotFound`.
    pub reason: String,
    /// The message for people.
    pub message: String,
    /// The fields that the API server names.
    pub fields: Vec<String>,
}

impl Refused {
    /// Whether the object does not exist.
    pub fn is_absent(&self) -> bool {
        self.status == Some(404)
    }

    /// Whether the user has no right to do it.
    pub fn is_forbidden(&self) -> bool {
        self.status == Some(403) && !self.message.contains("exceeded quota")
    }

    /// The problem for people, about an object.
    pub fn problem(self, object: &Reference) -> Problem {
        let name = object.to_string();
        let message = self.message.clone();
        let problem = match self.status {
            Some(404) => {
                Problem::new(Code::NotFound, "NotFound", "it does not exist").next("devctl list")
            }
            Some(401) => Problem::new(
                Code::NotLoggedIn,
                "Unauthorized",
                "the API server does not accept these credentials",
            )
            .next("log in to the cluster again, or choose another one with --context"),
            Some(403) if message.contains("exceeded quota") => {
                Problem::new(Code::Refused, "QuotaExceeded", message)
                    .next("delete a workspace that you do not need, or ask the platform team")
            }
            Some(403) => Problem::new(Code::Refused, "Forbidden", message)
                .next("choose your namespace with --namespace, or ask the platform team"),
            Some(409) => Problem::new(Code::Exists, &self.reason, message).next("try again"),
            Some(400 | 422) => Problem::new(Code::Refused, &self.reason, message),
            Some(_) => Problem::new(Code::Failed, &self.reason, message),
            None => Problem::new(
                Code::OutOfReach,
                "OutOfReach",
                format!("the API server does not answer: {message}"),
            )
            .next("check the network and --context, then try again"),
        };
        let problem = problem.of(name);
        match self.fields.first() {
            Some(field) => problem.field(field.as_str()),
            None => problem,
        }
    }
}

/// What the user sees and types.
pub trait Terminal: Send + Sync {
    /// Writes a line of data.
    fn data(&self, line: &Line) -> io::Result<()>;
    /// Writes text that programs read, as it is. It must have no control characters but line ends.
    fn document(&self, text: &str) -> io::Result<()>;
    /// Writes a line about what happens, beside the data.
    fn note(&self, line: &Line);
    /// Shows what is going on now. The next one replaces it.
    fn progress(&self, line: &Line);
    /// Ends the progress.
    fn settled(&self);
    /// Asks the user a question. There is no answer without a terminal.
    fn ask(&self, question: &Line) -> Option<String>;
    /// Shows these lines in place of the last ones.
    fn screen(&self, lines: &[Line]) -> io::Result<()>;
    /// What stays if the user interrupts devctl from now on.
    fn stays(&self, line: &Line);
    /// The columns of the data's terminal; none if the data goes elsewhere.
    fn width(&self) -> Option<u16>;
}

/// The end of a connection to a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// An address that this machine reaches.
    Address {
        /// The address.
        address: String,
        /// The port.
        port: u16,
    },
    /// A pod, by way of the API server.
    Pod {
        /// The namespace of the pod.
        namespace: String,
        /// The name of the pod.
        name: String,
        /// The port.
        port: u16,
    },
}

/// Settings of ssh (`ssh_config(5)`), by name.
pub type Settings = Vec<(&'static str, String)>;

/// The way to workspaces.
#[async_trait]
pub trait Reach: Send + Sync {
    /// Connects standard input and output to a workspace, until one side ends. A laptop goes to the
    /// destination itself; by way of a bastion it only names the host.
    async fn connect(&self, host: &name::Host, destination: &Destination) -> io::Result<()>;
    /// Whether something answers there.
    async fn answers(
        &self,
        host: &name::Host,
        destination: &Destination,
        longest: Duration,
    ) -> io::Result<()>;
    /// A port of this machine that no program uses now.
    fn free_port(&self) -> io::Result<u16>;
    /// The settings by which ssh reaches workspaces from here; none if its way is devctl's `proxy`.
    fn settings(&self) -> Option<Settings> {
        None
    }
}

/// A program with its arguments, which no shell reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its folder; none for the current one.
    pub folder: Option<PathBuf>,
}

impl Program {
    /// A program that runs in the current folder.
    pub fn new(name: &str, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            name: name.to_owned(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            folder: None,
        }
    }

    /// The program, in this folder.
    #[must_use]
    pub fn within(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }
}

/// The end of a program, with its output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The exit code; 128 and more for signals.
    pub code: i32,
    /// The program's standard output.
    pub stdout: String,
    /// The program's standard error.
    pub stderr: String,
}

/// The end of a program whose output went to standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piped {
    /// The exit code; 128 and more for signals.
    pub code: i32,
    /// The bytes of its output.
    pub bytes: u64,
}

/// Other programs.
#[async_trait]
pub trait Programs: Send + Sync {
    /// Runs a program with the user's terminal, and returns its exit code.
    async fn run(&self, program: &Program) -> io::Result<i32>;
    /// Runs a program and returns its exit code, standard output and standard error.
    async fn capture(&self, program: &Program) -> io::Result<Ran>;
    /// Runs a program whose output goes to standard output, and says how much that was.
    async fn piped(&self, program: &Program) -> io::Result<Piped>;
    /// Starts a program, and reads its output line by line. It ends when the stream is dropped.
    fn lines(&self, program: &Program) -> io::Result<BoxStream<'static, io::Result<String>>>;
    /// The absolute path of devctl itself.
    fn own_path(&self) -> io::Result<PathBuf>;
    /// Whether a program is installed.
    fn is_installed(&self, name: &str) -> bool;
}

/// The user's files.
pub trait Files: Send + Sync {
    /// The user's home folder.
    fn home(&self) -> &Path;
    /// The folder for what devctl remembers.
    fn state(&self) -> &Path;
    /// Reads a file; none if it does not exist.
    fn read(&self, path: &Path) -> io::Result<Option<String>>;
    /// Replaces a file at once, or leaves it as it is. A symbolic link stays, and its target is
    /// replaced. A new file is readable by its owner only.
    fn replace(&self, path: &Path, content: &str) -> io::Result<()>;
    /// Keeps others from changing a file until the lock is dropped.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send>>;
    /// The text of standard input.
    fn stdin(&self) -> io::Result<String>;
}

/// The time.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Now, by the clock of this machine.
    fn now(&self) -> Timestamp;
    /// Waits.
    async fn sleep(&self, duration: Duration);
}
