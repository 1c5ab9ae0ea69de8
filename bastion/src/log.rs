//! The audit log on disk. A line is on disk before the event happens.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use bastion_core::audit::{self, Chain, Entry, Event, OpenSessions};
use clap::Args;
use jiff::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use tokio::sync::oneshot;

/// The file to which the log is written now.
const FILE: &str = "audit.jsonl";
/// The file that one broker locks.
const LOCK: &str = "lock";
/// The beginning of the names of files that have reached their size.
const FULL: &str = "audit-";

/// How much of the log is kept.
#[derive(Args, Clone, Copy)]
pub(crate) struct Retention {
    /// Size in bytes at which the audit log begins another file
    #[arg(long, default_value_t = 64 << 20)]
    audit_file_size: u64,
    /// Number of full files that are kept
    #[arg(long, default_value_t = 100)]
    audit_files: usize,
}

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
    pub(crate) fn open(folder: &Path, replica: &str, retention: Retention) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let (mut writer, unfinished) = Writer::open(folder, replica, retention)?;
        writer.begin(unfinished)?;
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
    folder: PathBuf,
    replica: String,
    retention: Retention,
    _lock: Flock<File>,
    file: File,
    chain: Chain,
    /// The end of the last whole line that is on disk.
    end: u64,
    open: OpenSessions,
}

impl Writer {
    /// Opens a log, and returns how many bytes of an unfinished line were cut off.
    fn open(folder: &Path, replica: &str, retention: Retention) -> io::Result<(Self, u64)> {
        let lock = appended(&folder.join(LOCK))?;
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|(_, error)| {
            let message = format!("{}: another broker writes it: {error}", folder.display());
            io::Error::other(message)
        })?;
        let path = folder.join(FILE);
        let mut file = appended(&path)?;
        let mut content = String::new();
        file.read_to_string(&mut content)?;
        let end = content.rfind('\n').map_or(0, |at| at + 1);
        let lines = content[..end].lines();
        let wrong = |why: String| io::Error::other(format!("{}: {why}", path.display()));
        let (chain, open) = if end == 0 {
            before(folder)?
        } else {
            let chain = audit::verify(lines.clone());
            let chain =
                chain.map_err(|broken| wrong(format!("line {}: {}", broken.line, broken.why)))?;
            (chain, OpenSessions::of(lines))
        };
        let writer = Self {
            folder: folder.to_owned(),
            replica: replica.to_owned(),
            retention,
            _lock: lock,
            file,
            chain,
            end: end as u64,
            open,
        };
        writer.file.set_len(writer.end)?;
        Ok((writer, (content.len() - end) as u64))
    }

    fn begin(&mut self, unfinished_bytes: u64) -> io::Result<()> {
        let started = Event::Started {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            unfinished_bytes,
        };
        let lost = self.open.sessions().iter();
        let lost = lost.map(|(session, user)| Entry {
            session: Some(session.clone()),
            user: Some(user.clone()),
            ..self.own(Event::SessionLost)
        });
        let entries: Vec<Entry> = [self.own(started)].into_iter().chain(lost).collect();
        self.append(&entries)
    }

    /// An event of the bastion itself.
    fn own(&self, event: Event) -> Entry {
        Entry {
            replica: self.replica.clone(),
            session: None,
            user: None,
            event,
        }
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
        if self.end >= self.retention.audit_file_size {
            self.turn()?;
        }
        self.write(entries)
    }

    fn write(&mut self, entries: &[Entry]) -> io::Result<()> {
        let mut chain = self.chain.clone();
        let mut lines = String::new();
        for entry in entries {
            lines += &chain.add(entry, Timestamp::now())?;
        }
        let written = self.file.write_all(lines.as_bytes());
        if let Err(error) = written.and_then(|()| self.file.sync_data()) {
            self.file.set_len(self.end)?;
            return Err(error);
        }
        self.chain = chain;
        self.end += lines.len() as u64;
        for entry in entries {
            self.open.follow(entry);
        }
        // The same lines go to the platform's collector. The log on disk is what counts.
        if let Err(error) = io::stdout().lock().write_all(lines.as_bytes()) {
            tracing::warn!(%error, "cannot write the audit log to standard output");
        }
        Ok(())
    }

    /// Begins another file, and removes the oldest ones.
    fn turn(&mut self) -> io::Result<()> {
        let full = format!("{FULL}{:016}.jsonl", self.chain.seq());
        let (path, full) = (self.folder.join(FILE), self.folder.join(full));
        fs::rename(&path, &full)?;
        self.file = appended(&path)?;
        self.end = 0;
        File::open(&self.folder)?.sync_all()?;
        let continued = Event::Continued {
            open: self.open.sessions().to_vec(),
        };
        self.write(&[self.own(continued)])?;
        let full = full_files(&self.folder)?;
        let surplus = full.len().saturating_sub(self.retention.audit_files);
        full.iter().take(surplus).try_for_each(fs::remove_file)
    }
}

/// Opens a file to append to it. It is for its owner only.
fn appended(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

/// The files that have reached their size, the oldest first.
fn full_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let is_full = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(FULL))
    };
    let mut full: Vec<PathBuf> = entries
        .iter()
        .map(fs::DirEntry::path)
        .filter(is_full)
        .collect();
    full.sort();
    Ok(full)
}

/// The chain at the end of the newest full file, and the sessions that are open there.
fn before(folder: &Path) -> io::Result<(Chain, OpenSessions)> {
    let Some(newest) = full_files(folder)?.pop() else {
        return Ok((Chain::default(), OpenSessions::default()));
    };
    let content = fs::read_to_string(&newest)?;
    let wrong = |why: String| io::Error::other(format!("{}: {why}", newest.display()));
    let last = content
        .lines()
        .last()
        .ok_or_else(|| wrong("it is empty".into()))?;
    let chain = Chain::after(last).map_err(wrong)?;
    Ok((chain, OpenSessions::of(content.lines())))
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

    fn open(folder: &Path) -> io::Result<(Writer, u64)> {
        let retention = Retention {
            audit_file_size: 1_000,
            audit_files: 3,
        };
        Writer::open(folder, "bastion-0", retention)
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
        let (mut writer, _) = open(&folder).unwrap();
        writer.append(&[opened()]).unwrap();
        writer.file.write_all(b"{\"v\":1,\"seq\"").unwrap();
        drop(writer);
        let (mut writer, unfinished) = open(&folder).unwrap();
        writer.begin(unfinished).unwrap();
        let log = fs::read_to_string(folder.join(FILE)).unwrap();
        assert_eq!(audit::verify(log.lines()).unwrap().seq(), 3);
        assert!(log.contains("\"unfinishedBytes\":12"), "{log}");
        assert_eq!(OpenSessions::of(log.lines()).sessions(), []);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_second_writer_of_the_same_log_is_refused() {
        let folder = folder("second");
        let first = open(&folder).unwrap();
        let second = open(&folder).map(drop).unwrap_err();
        assert!(
            second.to_string().contains("another broker writes it"),
            "{second}"
        );
        drop(first);
        open(&folder).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_log_that_somebody_changed_is_not_continued() {
        let folder = folder("changed");
        let (mut writer, _) = open(&folder).unwrap();
        writer.append(&[opened(), opened()]).unwrap();
        drop(writer);
        let path = folder.join(FILE);
        let log = fs::read_to_string(&path).unwrap();
        fs::write(&path, log.replacen("alice", "mallory", 1)).unwrap();
        assert!(open(&folder).is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn full_files_are_one_chain_and_the_oldest_ones_go() {
        let folder = folder("turn");
        let (mut writer, _) = open(&folder).unwrap();
        for _ in 0..40 {
            writer.append(&[opened()]).unwrap();
        }
        drop(writer);
        let mut files = full_files(&folder).unwrap();
        assert_eq!(files.len(), 3);
        files.push(folder.join(FILE));
        let log: String = files
            .iter()
            .map(|file| fs::read_to_string(file).unwrap())
            .collect();
        assert!(audit::verify(log.lines()).unwrap().seq() > 40);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_session_that_was_opened_in_a_full_file_is_lost_too_and_a_kill_between_two_files_breaks_nothing()
     {
        let folder = folder("between");
        let (mut writer, _) = open(&folder).unwrap();
        while full_files(&folder).unwrap().is_empty() {
            writer.append(&[opened()]).unwrap();
        }
        assert!(!writer.open.sessions().is_empty());
        drop(writer);
        let (writer, _) = open(&folder).unwrap();
        assert!(writer.open.sessions().len() > 1, "{:?}", writer.open);
        drop(writer);
        // The broker was killed after the rename.
        fs::remove_file(folder.join(FILE)).unwrap();
        let (mut writer, unfinished) = open(&folder).unwrap();
        assert!(writer.open.sessions().len() > 1, "{:?}", writer.open);
        writer.begin(unfinished).unwrap();
        let files = [full_files(&folder).unwrap(), vec![folder.join(FILE)]].concat();
        let log: String = files
            .iter()
            .map(|file| fs::read_to_string(file).unwrap())
            .collect();
        audit::verify(log.lines()).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }
}
