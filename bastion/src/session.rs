//! One login: a command line, or a prompt. Words are parsed and never run.

use std::io::{self, BufRead, Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

use bastion_core::calls::Remote;
use bastion_core::protocol::{Answer, Ask};
use bastion_core::words;
use clap::Parser;
use devctl_core::commands::{self, call::Call};
use devctl_core::grammar::Arguments;
use devctl_core::host::Host;
use devctl_core::output::Format;
use devctl_core::problem::Problem;
use devctl_terminal::Screen;
use rustix::event::{PollFd, PollFlags, poll};

use crate::channel::Channel;
use crate::exit::REFUSED;

mod confinement;
mod link;
mod place;
mod ssh;

use link::Link;
use place::Place;

/// The most bytes of calls that one login may send. A login is one command of devctl.
const LONGEST_INPUT: u64 = 64 * 1024 * 1024;

/// Runs one login.
pub(crate) fn run(run: &Path, grant: &str) -> ExitCode {
    ended(serve(run, grant))
}

/// Joins standard input and output with a workspace, for the ssh of a session.
pub(crate) fn proxy(run: &Path, host: &str) -> ExitCode {
    let grant = std::env::var(ssh::GRANT).unwrap_or_default();
    ended(enter(run, &grant).and_then(|session| session.connect(host)))
}

/// Prints the host keys that a session gave its ssh.
pub(crate) fn host_keys() -> ExitCode {
    print!("{}", std::env::var(ssh::HOST_KEYS).unwrap_or_default());
    ExitCode::SUCCESS
}

fn ended(code: io::Result<u8>) -> ExitCode {
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("the bastion cannot serve you now: {error}");
            ExitCode::from(REFUSED)
        }
    }
}

fn serve(run: &Path, grant: &str) -> io::Result<u8> {
    let session = enter(run, grant)?;
    match std::env::var_os("SSH_ORIGINAL_COMMAND") {
        Some(line) => session.line(line.as_bytes()),
        None => session.prompt(),
    }
}

/// Shows the broker the grant.
fn enter(run: &Path, grant: &str) -> io::Result<Session> {
    confinement::confine()?;
    let source = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let source = source.split(' ').next().unwrap_or_default().to_owned();
    let mut channel = Channel::open(run)?;
    let login = Ask::Login {
        grant: grant.to_owned(),
        source,
    };
    let welcome = channel.ask(&login)?;
    let broker = channel.watched()?;
    std::thread::spawn(move || end_with(&broker));
    match welcome {
        Answer::Welcome(welcome) => Ok(Session(Link {
            channel: Mutex::new(channel),
            run: run.to_owned(),
            grant: grant.to_owned(),
            welcome,
        })),
        Answer::Refused(problem) => Err(io::Error::other(problem.message)),
        _ => Err(io::Error::other("the broker answered something else")),
    }
}

/// A login that the broker knows.
struct Session(Link);

impl Session {
    /// Reads command lines until there are no more.
    fn prompt(&self) -> io::Result<u8> {
        let user = &self.0.welcome.user;
        let mut out = io::stdout();
        writeln!(
            out,
            "Welcome, {user}. Commands are devctl's: list, create, why, stop, help."
        )?;
        let run = self.0.run.clone();
        std::thread::spawn(move || notice(&run));
        loop {
            write!(out, "devctl> ")?;
            out.flush()?;
            let mut line = Vec::new();
            if io::stdin().lock().read_until(b'\n', &mut line)? == 0 {
                return Ok(0);
            }
            match line.trim_ascii() {
                b"" => {}
                b"exit" | b"logout" | b"quit" => return Ok(0),
                line => {
                    self.line(line)?;
                }
            }
        }
    }

    /// Runs one command line, and returns its exit code.
    fn line(&self, line: &[u8]) -> io::Result<u8> {
        let words = match words::split(line) {
            Ok(words) => words,
            Err(why) => {
                self.0.recorded(&Ask::Refuse {
                    reason: why.to_string(),
                })?;
                let problem = Problem::usage("COMMAND", why.to_string());
                return Ok(Screen::default().report(Format::Table, &problem));
            }
        };
        self.0.recorded(&Ask::Command {
            words: words.clone(),
        })?;
        let words = match words.split_first() {
            Some((first, rest)) if first == "devctl" => rest,
            _ => &words,
        };
        match words {
            [first, host] if first == "connect" => self.connect(host),
            [only] if only == "api" => self.calls(),
            _ => self.command(words),
        }
    }

    /// Joins the session's streams with a workspace.
    fn connect(&self, host: &str) -> io::Result<u8> {
        let ask = Ask::Connect {
            host: host.to_owned(),
        };
        let mut channel = self.0.channel()?;
        let stream = match channel.ask_for(&ask)? {
            (Answer::Connected, Some(socket)) => TcpStream::from(socket),
            (Answer::Refused(problem), _) => {
                return Ok(Screen::default().report(Format::Table, &problem));
            }
            _ => return Err(io::Error::other("the broker gave no connection")),
        };
        let carried = streams::join(&stream)?;
        let closed = Ask::Closed {
            up: carried.up,
            down: carried.down,
        };
        channel.ask(&closed).map(|_| 0)
    }

    /// Answers the calls of a devctl on the person's own machine, one line each.
    fn calls(&self) -> io::Result<u8> {
        let mut out = io::stdout().lock();
        let mut tell = |answer: &Answer| -> io::Result<()> {
            serde_json::to_writer(&mut out, answer)?;
            out.write_all(b"\n")?;
            out.flush()
        };
        tell(&Answer::Welcome(self.0.welcome.clone()))?;
        let mut calls = io::BufReader::new(io::stdin().lock().take(LONGEST_INPUT));
        loop {
            let mut line = Vec::new();
            if calls.read_until(b'\n', &mut line)? == 0 {
                return Ok(0);
            }
            let call = serde_json::from_slice(&line)?;
            let answer = self.0.ask(&Ask::Api(call))?;
            tell(&answer)?;
            if let Answer::Refused(problem) = answer {
                return Err(io::Error::other(problem.message));
            }
        }
    }

    fn command(&self, words: &[String]) -> io::Result<u8> {
        let all = std::iter::once("devctl").chain(words.iter().map(String::as_str));
        let arguments = match Arguments::try_parse_from(all) {
            Ok(arguments) => arguments,
            Err(error) => {
                tell(&error)?;
                return Ok(u8::try_from(error.exit_code()).unwrap_or(REFUSED));
            }
        };
        let screen = Screen::default();
        let format = arguments.command.format();
        if let Some(problem) = place::elsewhere(&arguments, words, self.0.welcome.enters) {
            return Ok(screen.report(format, &problem));
        }
        let place = Place(&self.0);
        let host = Host {
            api: &Remote(Place(&self.0)),
            terminal: &screen,
            programs: &place,
            reach: &place,
            files: &place,
            clock: &place,
        };
        let call = Call {
            host,
            shared: &arguments.shared,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        match runtime.block_on(commands::run(call, &arguments.command)) {
            Ok(code) => Ok(code),
            Err(problem) => Ok(screen.report(format, &problem)),
        }
    }
}

/// Writes what is wrong with the words, or the help that they ask for, in one piece. ssh carries the two
/// streams of a session that has no terminal by themselves, so the next prompt could come between pieces.
fn tell(error: &clap::Error) -> io::Result<()> {
    let text = error.render().to_string();
    if error.use_stderr() {
        io::stderr().write_all(text.as_bytes())
    } else {
        io::stdout().write_all(text.as_bytes())
    }
}

/// Tells a person at the prompt when the replica is about to end.
fn notice(run: &Path) {
    let told = Channel::open(run).and_then(|mut channel| channel.ask(&Ask::Notice));
    if matches!(told, Ok(Answer::Recorded)) {
        eprintln!(
            "\r\nThis bastion is about to be replaced. What runs goes on until you leave, for an hour at \
             most; a new login reaches the next one."
        );
    }
}

/// Ends this process when the broker closes the session: the person may not be here any longer.
fn end_with(broker: &UnixStream) {
    let mut ends = [PollFd::new(broker, PollFlags::RDHUP)];
    while poll(&mut ends, None) == Err(rustix::io::Errno::INTR) {}
    eprintln!("the bastion ended this session");
    std::process::exit(i32::from(REFUSED));
}
