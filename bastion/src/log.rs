//! The audit log on disk. A line is on disk before the event happens.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use bastion_core::audit::{self, Chain, Entry, Event};
use jiff::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use tokio::sync::oneshot;

/// The file of the log in its folder.
const FILE: &str = "audit.jsonl";

/// The audit log, to which the broker's tasks write.
#[derive(Clone)]
pub(crate) struct Log(Sender<Request>);

struct Request {
    entry: Entry,
    written: oneshot::Sender<io::Result<()>>,
}

impl Log {
    /// Opens the log in a folder. A second writer of the same folder is refused. What a killed broker
    /// left open is closed in the log, as lost.
    pub(crate) fn open(folder: &Path, replica: &str) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let (mut writer, unfinished) = Writer::open(folder)?;
        writer.begin(replica, unfinished)?;
        let (sender, receiver) = channel();
        thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || writer.serve(&receiver))?;
        Ok(Self(sender))
    }

    /// Writes an event, and returns when it is on disk.
    pub(crate) async fn write(&self, entry: Entry) -> io::Result<()> {
        let gone = || io::Error::other("the audit log has ended");
        let (written, answer) = oneshot::channel();
        let request = Request { entry, written };
        self.0.send(request).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

struct Writer {
    file: Flock<File>,
    chain: Chain,
    /// The end of the last whole line that is on disk.
    end: u64,
    open: Vec<(String, String)>,
}

impl Writer {
    fn open(folder: &Path) -> io::Result<(Self, u64)> {
        let path = folder.join(FILE);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        let locked = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let mut file = locked.map_err(|(_, error)| {
            let message = format!("{}: another broker writes it: {error}", path.display());
            io::Error::other(message)
        })?;
        let mut content = String::new();
        file.read_to_string(&mut content)?;
        let end = content.rfind('\n').map_or(0, |at| at + 1);
        let unfinished = (content.len() - end) as u64;
        let lines = content[..end].lines();
        let wrong = |why: String| io::Error::other(format!("{}: {why}", path.display()));
        let chain = audit::verify(lines.clone());
        let chain =
            chain.map_err(|broken| wrong(format!("line {}: {}", broken.line, broken.why)))?;
        let writer = Self {
            file,
            chain,
            end: end as u64,
            open: audit::open_sessions(lines),
        };
        writer.file.set_len(writer.end)?;
        Ok((writer, unfinished))
    }

    fn begin(&mut self, replica: &str, unfinished_bytes: u64) -> io::Result<()> {
        let entry = |session: Option<String>, user: Option<String>, event: Event| Entry {
            replica: replica.to_owned(),
            session,
            user,
            event,
        };
        let started = Event::Started {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            unfinished_bytes,
        };
        let lost = std::mem::take(&mut self.open).into_iter();
        let lost = lost.map(|(session, user)| entry(Some(session), Some(user), Event::SessionLost));
        let entries: Vec<Entry> = [entry(None, None, started)]
            .into_iter()
            .chain(lost)
            .collect();
        self.append(&entries)
    }

    /// Writes events until the broker ends. Events that wait together reach the disk together.
    fn serve(mut self, requests: &Receiver<Request>) {
        while let Ok(first) = requests.recv() {
            let (entries, answers): (Vec<_>, Vec<_>) = [first]
                .into_iter()
                .chain(requests.try_iter())
                .map(|request| (request.entry, request.written))
                .unzip();
            let written = self.append(&entries);
            for answer in answers {
                let result = match &written {
                    Ok(()) => Ok(()),
                    Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
                };
                // The task that asked may have ended.
                let _ = answer.send(result);
            }
        }
    }

    /// Appends lines and waits for the disk. After an error the log is as it was before.
    fn append(&mut self, entries: &[Entry]) -> io::Result<()> {
        let mut chain = self.chain.clone();
        let mut lines = String::new();
        for entry in entries {
            lines += &chain.add(entry, Timestamp::now())?;
        }
        let written = self.file.write_all(lines.as_bytes());
        if let Err(error) = written.and_then(|()| self.file.sync_data()) {
            self.file.set_len(self.end)?;
            self.file.seek(SeekFrom::End(0))?;
            return Err(error);
        }
        self.chain = chain;
        self.end += lines.len() as u64;
        // The same lines go to the platform's collector. The log on disk is what counts.
        if let Err(error) = io::stdout().lock().write_all(lines.as_bytes()) {
            tracing::warn!(%error, "cannot write the audit log to standard output");
        }
        Ok(())
    }
}

/// Checks the chain of a log's files.
pub(crate) fn verify(files: &[PathBuf]) -> ExitCode {
    let mut content = String::new();
    for file in files {
        match fs::read_to_string(file) {
            Ok(text) => content += &text,
            Err(error) => {
                eprintln!("{}: {error}", file.display());
                return ExitCode::FAILURE;
            }
        }
    }
    match audit::verify(content.lines()) {
        Ok(chain) => {
            println!("the chain is whole up to record {}", chain.seq());
            ExitCode::SUCCESS
        }
        Err(broken) => {
            eprintln!("line {}: {}", broken.line, broken.why);
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bastion-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn opened() -> Entry {
        Entry {
            replica: "bastion-0".into(),
            session: Some("s1".into()),
            user: Some("alice".into()),
            event: Event::SessionOpened {
                namespace: "dev-alice".into(),
                source: "192.0.2.1".into(),
                credential: "ssh-ed25519 AAA".into(),
            },
        }
    }

    #[test]
    fn a_session_that_a_killed_broker_left_is_lost_and_an_unfinished_line_is_cut_off() {
        let folder = folder("lost");
        let (mut writer, _) = Writer::open(&folder).unwrap();
        writer.append(&[opened()]).unwrap();
        writer.file.write_all(b"{\"v\":1,\"seq\"").unwrap();
        drop(writer);
        let (mut writer, unfinished) = Writer::open(&folder).unwrap();
        writer.begin("bastion-0", unfinished).unwrap();
        let log = fs::read_to_string(folder.join(FILE)).unwrap();
        assert_eq!(audit::verify(log.lines()).unwrap().seq(), 3);
        assert!(log.contains("\"unfinishedBytes\":12"), "{log}");
        assert_eq!(audit::open_sessions(log.lines()), []);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_second_writer_of_the_same_log_is_refused() {
        let folder = folder("second");
        let first = Writer::open(&folder).unwrap();
        let second = Writer::open(&folder).map(drop).unwrap_err();
        assert!(
            second.to_string().contains("another broker writes it"),
            "{second}"
        );
        drop(first);
        Writer::open(&folder).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_log_that_somebody_changed_is_not_continued() {
        let folder = folder("changed");
        let (mut writer, _) = Writer::open(&folder).unwrap();
        writer.append(&[opened(), opened()]).unwrap();
        drop(writer);
        let path = folder.join(FILE);
        let log = fs::read_to_string(&path).unwrap();
        fs::write(&path, log.replacen("alice", "mallory", 1)).unwrap();
        assert!(Writer::open(&folder).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
