//! A program that takes the place of `gpu-bastion` where sshd starts a session. It has what a session has:
//! sshd's user id, the pod's files and processes, and a grant. It tries to get more.
//!
//! The end-to-end tests put this program into a pod of the bastion (`cargo xtask image hostile`). It knows two
//! command lines:
//!
//! - `stay` logs in as the person and waits;
//! - `attack NAME KIND KEY` logs in as the person, tries to get more, and prints the results as one line of
//!   JSON. `NAME` is another person. `KIND KEY` is the other person's public key.
//!
//! In a pod with a planted hole, this program starts the real session, and adds the hole.

mod hole;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use bastion_core::agent::sign_request;
use bastion_core::protocol::{Answer, Ask};
use serde_json::{Value, json};
use ssh_key::PublicKey;

/// The program whose place this one takes.
const REAL: &str = "/usr/bin/gpu-bastion.real";
const FOLDER: &str = "/run/gpu-bastion";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// The most bytes of a file that are read.
const MOST: u64 = 16 * 1024 * 1024;
/// What begins a private key, and a token of Kubernetes (RFC 7515, a header that begins with `alg`).
const SECRETS: [&str; 2] = ["PRIVATE KEY-----", "eyJhbGciOi"];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let grant = match words.as_slice() {
        [_, flag, line] if flag == "-c" => line.strip_prefix("gpu-bastion session --grant "),
        _ => None,
    };
    let arguments = words.get(1..).unwrap_or_default();
    let done = match (grant, hole::planted()) {
        (Some(_), Some(name)) => Err(hole::session(&name, arguments)),
        (Some(grant), None) => session(grant),
        // sshd asks for keys by this program, too.
        (None, _) => Err(Command::new(REAL).args(arguments).exec()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn session(grant: &str) -> io::Result<()> {
    let line = std::env::var("SSH_ORIGINAL_COMMAND").unwrap_or_default();
    let words: Vec<&str> = line.split(' ').collect();
    let mut own = Channel::open()?;
    let welcome = own.ask(&login(grant))?;
    match words.as_slice() {
        ["stay"] => {
            println!("here");
            io::copy(&mut io::stdin(), &mut io::sink()).map(|_| ())
        }
        ["attack", name, kind, key] => {
            let found = json!({
                "welcome": told(&Ok(welcome)),
                "grants": grants(grant),
                "keys": told(&alone(&Ask::Keys {
                    user: (*name).into(),
                    kind: (*kind).into(),
                    blob: (*key).into(),
                })),
                "second login": told(&own.ask(&login(grant))),
                "listen": told(&alone(&Ask::Listen)),
                "drain": told(&alone(&Ask::Drain)),
                "host key": signed()?,
                "files": with_secrets(Path::new("/")),
                "memory": memories(),
                "environments": environments(),
                "roots": roots(),
            });
            writeln!(io::stdout(), "{found}")
        }
        _ => Err(io::Error::other(
            "the words are: stay, or attack NAME KIND KEY",
        )),
    }
}

fn login(grant: &str) -> Ask {
    Ask::Login {
        grant: grant.to_owned(),
        source: "192.0.2.1".to_owned(),
    }
}

/// A connection to the broker.
struct Channel(BufReader<UnixStream>);

impl Channel {
    fn open() -> io::Result<Self> {
        let stream = UnixStream::connect(Path::new(FOLDER).join("broker.sock"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    fn ask(&mut self, ask: &Ask) -> io::Result<Answer> {
        let mut line = serde_json::to_vec(ask)?;
        line.push(b'\n');
        self.0.get_mut().write_all(&line)?;
        let mut answer = String::new();
        if self.0.read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&answer)?)
    }
}

/// Asks on a connection of its own.
fn alone(ask: &Ask) -> io::Result<Answer> {
    Channel::open()?.ask(ask)
}

fn told(answer: &io::Result<Answer>) -> Value {
    match answer {
        Ok(answer) => json!(answer),
        Err(error) => json!(error.kind().to_string()),
    }
}

/// What the broker says to grants of other sessions, which stand in their command lines.
fn grants(own: &str) -> Vec<Value> {
    let lines = processes().filter_map(|id| fs::read_to_string(format!("/proc/{id}/cmdline")).ok());
    let shown: BTreeSet<String> = lines
        .filter_map(|line| {
            let (_, grant) = line.split_once("--grant ")?;
            Some(grant.trim_end_matches('\0').to_owned())
        })
        .filter(|grant| grant != own)
        .collect();
    let answers = shown.iter().map(|grant| alone(&login(grant)));
    answers.map(|answer| told(&answer)).collect()
}

/// What the broker answers to a request for a signature of the host key. The first byte after the length is
/// the kind of the answer.
fn signed() -> io::Result<Value> {
    let public = Path::new(FOLDER).join("ssh_host_ed25519_key.pub");
    let public = fs::read_to_string(public)?;
    let key = PublicKey::from_openssh(&public).and_then(|key| key.to_bytes());
    let key = key.map_err(io::Error::other)?;
    let mut agent = UnixStream::connect(Path::new(FOLDER).join("host-key.sock"))?;
    agent.set_read_timeout(Some(PATIENCE))?;
    agent.write_all(&sign_request(&key, b"an exchange"))?;
    let mut answer = [0; 5];
    agent.read_exact(&mut answer)?;
    Ok(json!(answer[4]))
}

/// The files below a folder in which a secret stands.
fn with_secrets(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let is_kernel = ["/proc", "/sys", "/dev"]
            .iter()
            .any(|one| path == Path::new(one));
        if kind.is_dir() && !is_kernel {
            found.extend(with_secrets(&path));
        } else if kind.is_file() && !path.starts_with("/usr") && has_secret(&path) {
            found.push(path);
        }
    }
    found
}

fn has_secret(path: &Path) -> bool {
    let mut content = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut content));
    let text = String::from_utf8_lossy(&content);
    read.is_ok() && SECRETS.iter().any(|secret| text.contains(secret))
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn others() -> impl Iterator<Item = u32> {
    let own = std::process::id();
    processes().filter(move |id| *id != own)
}

/// The programs of other processes whose memory can be opened.
fn memories() -> Vec<String> {
    let is_open = |id: &u32| fs::File::open(format!("/proc/{id}/mem")).is_ok();
    others().filter(is_open).map(name).collect()
}

/// The programs of other processes that have a secret in their environment.
fn environments() -> Vec<String> {
    let has = |id: &u32| has_secret(Path::new(&format!("/proc/{id}/environ")));
    others().filter(has).map(name).collect()
}

/// The files with secrets below the roots of other processes.
fn roots() -> Vec<PathBuf> {
    let roots = others().map(|id| PathBuf::from(format!("/proc/{id}/root/var/run/secrets")));
    roots.flat_map(|root| with_secrets(&root)).collect()
}

fn name(id: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    name.trim().to_owned()
}
