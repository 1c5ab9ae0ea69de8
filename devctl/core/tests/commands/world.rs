//! A host for commands: an API server in memory, a terminal that remembers, a folder for files, real
//! git, and an ssh whose answers the test gives.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use clap::Parser;
use devctl_core::commands::{self, call::Call};
use devctl_core::grammar::Arguments;
use devctl_core::host::{
    Api, Change, Clock, Destination, Effect, Files, Host, Piped, Program, Programs, Ran, Reach,
    Refused, Scope, Terminal,
};
use devctl_core::name;
use devctl_core::object::{self, Kind, Reference, text};
use devctl_core::problem::Problem;
use devctl_core::text::Line;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde_json::Value;

#[derive(Clone, Copy, Default)]
pub enum Homes {
    /// A home goes when it is deleted.
    #[default]
    Go,
    /// A deleted home stays, because a pod uses it.
    Stay,
    /// All homes go when any object is deleted.
    GoWithTheirWorkspace,
}

pub struct World {
    pub objects: Mutex<Vec<(Reference, Value)>>,
    pub said: Mutex<String>,
    /// The answers of ssh, in order; the last line of each call is kept.
    pub ssh: Mutex<VecDeque<Ran>>,
    pub lines: Mutex<Vec<String>>,
    /// Whether no workspace answers at its port.
    pub is_silent: Mutex<bool>,
    /// What Kubernetes does with homes.
    pub homes: Mutex<Homes>,
    /// How long commands have waited.
    waited: Mutex<Duration>,
    pub folder: PathBuf,
    home: PathBuf,
    state: PathBuf,
}

impl World {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("devctl-{name}-{}", std::process::id()));
        // A test that was killed may have left it.
        let _ = std::fs::remove_dir_all(&folder);
        let home = folder.join("home");
        std::fs::create_dir_all(&home).unwrap();
        Self {
            objects: Mutex::default(),
            said: Mutex::default(),
            ssh: Mutex::default(),
            lines: Mutex::default(),
            is_silent: Mutex::default(),
            homes: Mutex::default(),
            waited: Mutex::default(),
            state: home.join("state"),
            home,
            folder,
        }
    }

    pub fn put(&self, kind: Kind, name: &str, object: Value) {
        let reference = Reference::new(kind, "team", name);
        self.objects.lock().unwrap().push((reference, object));
    }

    pub fn answers(&self, code: i32, stdout: &str) {
        let ran = Ran {
            code,
            stdout: stdout.to_owned(),
            stderr: String::new(),
        };
        self.ssh.lock().unwrap().push_back(ran);
    }

    pub fn run(&self, line: &str) -> Result<u8, Problem> {
        let arguments = Arguments::try_parse_from(format!("devctl {line}").split(' ')).unwrap();
        let host = Host {
            api: self,
            terminal: self,
            programs: self,
            reach: self,
            files: self,
            clock: self,
        };
        let call = Call {
            host,
            shared: &arguments.shared,
        };
        futures::executor::block_on(commands::run(call, &arguments.command))
    }

    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    fn write(&self, line: &Line) {
        writeln!(self.said.lock().unwrap(), "{}", line.text()).unwrap();
    }

    fn find(&self, object: &Reference) -> Option<Value> {
        let objects = self.objects.lock().unwrap();
        let is_it = |one: &Reference| one.kind == object.kind && one.name == object.name;
        let found = objects.iter().find(|(one, _)| is_it(one));
        found.map(|(_, value)| value.clone())
    }

    fn next(&self, program: &Program) -> Ran {
        let line = program.arguments.last().cloned().unwrap_or_default();
        self.lines.lock().unwrap().push(line.clone());
        let answer = self.ssh.lock().unwrap().pop_front();
        answer.unwrap_or_else(|| panic!("the test has no answer for: {line}"))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn absent() -> Refused {
    Refused {
        status: Some(404),
        reason: "NotFound".into(),
        ..Refused::default()
    }
}

#[async_trait]
impl Api for World {
    fn namespace(&self) -> &'static str {
        "team"
    }

    async fn get(&self, object: &Reference) -> Result<Value, Refused> {
        self.find(object).ok_or_else(absent)
    }

    async fn list(&self, kind: Kind, _: &Scope) -> Result<Vec<Value>, Refused> {
        let objects = self.objects.lock().unwrap();
        let of_kind = objects.iter().filter(|(one, _)| one.kind == kind);
        Ok(of_kind.map(|(_, value)| value.clone()).collect())
    }

    async fn create(&self, object: &Value, effect: Effect) -> Result<Value, Refused> {
        if effect == Effect::Stored {
            self.write(&"stored".into());
            let name = text(object, "/metadata/name").unwrap();
            self.put(Kind::Claim, name, object.clone());
        }
        Ok(object.clone())
    }

    async fn patch(&self, object: &Reference, _: &Value, _: Effect) -> Result<Value, Refused> {
        self.find(object).ok_or_else(absent)
    }

    async fn delete(&self, object: &Reference, _: &str) -> Result<(), Refused> {
        self.find(object).ok_or_else(absent)?;
        let homes = *self.homes.lock().unwrap();
        let mut objects = self.objects.lock().unwrap();
        objects.retain(|(one, _)| match (one.kind, homes) {
            (Kind::Home, Homes::Stay) => true,
            (Kind::Home, Homes::GoWithTheirWorkspace) => false,
            _ => one != object,
        });
        Ok(())
    }

    async fn changed(
        &self,
        object: &Reference,
        version: &str,
        longest: Duration,
    ) -> Result<Change, Refused> {
        let found = self.find(object);
        if version == found.as_ref().map_or("", object::version) {
            *self.waited.lock().unwrap() += longest;
            return Ok(Change::None);
        }
        Ok(found.map_or(Change::Gone, |now| Change::Now(Box::new(now))))
    }

    async fn may(&self, _: &str, _: Kind, _: &str) -> Result<bool, Refused> {
        Ok(true)
    }

    async fn time(&self) -> Result<Timestamp, Refused> {
        Ok(self.now())
    }
}

impl Terminal for World {
    fn data(&self, line: &Line) -> io::Result<()> {
        self.write(line);
        Ok(())
    }

    fn document(&self, text: &str) -> io::Result<()> {
        self.said.lock().unwrap().push_str(text);
        Ok(())
    }

    fn note(&self, line: &Line) {
        self.write(line);
    }

    fn progress(&self, _: &Line) {}

    fn settled(&self) {}

    fn ask(&self, _: &Line) -> Option<String> {
        None
    }

    fn screen(&self, _: &[Line]) -> io::Result<()> {
        Ok(())
    }

    fn stays(&self, _: &Line) {}

    fn width(&self) -> Option<u16> {
        None
    }
}

#[async_trait]
impl Programs for World {
    async fn run(&self, program: &Program) -> io::Result<i32> {
        self.write(&program.arguments.join(" ").as_str().into());
        Ok(self.next(program).code)
    }

    async fn capture(&self, program: &Program) -> io::Result<Ran> {
        if program.name != "git" {
            return Ok(self.next(program));
        }
        let folder = program
            .folder
            .clone()
            .unwrap_or_else(|| self.folder.join("clone"));
        let output = std::process::Command::new("git")
            .args([
                "-c",
                "user.name=alice",
                "-c",
                "user.email=alice@example.org",
            ])
            .args(&program.arguments)
            .current_dir(folder)
            .output()?;
        Ok(Ran {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        })
    }

    async fn piped(&self, program: &Program) -> io::Result<Piped> {
        let ran = self.next(program);
        self.said.lock().unwrap().push_str(&ran.stdout);
        Ok(Piped {
            code: ran.code,
            bytes: ran.stdout.len() as u64,
        })
    }

    fn lines(&self, _: &Program) -> io::Result<BoxStream<'static, io::Result<String>>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn own_path(&self) -> io::Result<PathBuf> {
        Ok("/usr/bin/devctl".into())
    }

    fn is_installed(&self, name: &str) -> bool {
        name == "xdg-open"
    }
}

#[async_trait]
impl Reach for World {
    async fn connect(&self, _: &name::Host, _: &Destination) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn answers(&self, _: &name::Host, _: &Destination, _: Duration) -> io::Result<()> {
        if *self.is_silent.lock().unwrap() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    fn free_port(&self) -> io::Result<u16> {
        Ok(41_000)
    }
}

impl Files for World {
    fn home(&self) -> &Path {
        &self.home
    }

    fn state(&self) -> &Path {
        &self.state
    }

    fn read(&self, path: &Path) -> io::Result<Option<String>> {
        match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn replace(&self, path: &Path, content: &str) -> io::Result<()> {
        std::fs::create_dir_all(path.parent().unwrap())?;
        std::fs::write(path, content)
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Send>> {
        Ok(Box::new(()))
    }

    fn stdin(&self) -> io::Result<String> {
        Ok(String::new())
    }
}

#[async_trait]
impl Clock for World {
    fn now(&self) -> Timestamp {
        let began: Timestamp = "2026-11-27T12:00:00Z".parse().unwrap();
        began + *self.waited.lock().unwrap()
    }

    async fn sleep(&self, _: Duration) {}
}
