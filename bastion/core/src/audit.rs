//! The audit log: one line of JSON for each event, in a chain. Each line has the SHA-256 of the line
//! before, so a line that was changed, added or removed is found.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub mod event;

pub use event::Event;

/// The version of the lines.
const VERSION: u64 = 1;
/// The hash before the first line of a log.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What every line has.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
struct Head {
    v: u64,
    seq: u64,
    prev: String,
    time: Timestamp,
}

/// A line before it is in the chain.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The replica of the bastion.
    pub replica: String,
    /// The session; none for events of the bastion itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The person; none for events of the bastion itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// The end of a log, to which lines are added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    seq: u64,
    prev: String,
    time: Timestamp,
}

/// Why a log is no chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            seq: 0,
            prev: GENESIS.to_owned(),
            time: Timestamp::UNIX_EPOCH,
        }
    }
}

impl Chain {
    /// The line of an event, with its line end. The chain then ends with it. A clock that jumped back
    /// does not bring lines out of order: such a line has the time of the one before.
    pub fn add(&mut self, entry: &Entry, now: Timestamp) -> Result<String, serde_json::Error> {
        let time = now.max(self.time);
        let head = Head {
            v: VERSION,
            seq: self.seq + 1,
            prev: self.prev.clone(),
            time,
        };
        let line = serde_json::to_string(&Line { head, entry })?;
        self.seq += 1;
        self.prev = hash(&line);
        self.time = time;
        Ok(line + "\n")
    }

    /// The number of the last line; 0 for an empty log.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Follows one more line, without its line end.
    fn follow(&mut self, line: &str) -> Result<(), String> {
        let head: Head =
            serde_json::from_str(line).map_err(|error| format!("it is no record: {error}"))?;
        if head.v != VERSION {
            return Err(format!(
                "it has version {}, which this program does not know",
                head.v
            ));
        }
        if head.prev != self.prev {
            return Err(
                "its hash of the line before is another one: a line was changed or removed".into(),
            );
        }
        if head.seq != self.seq + 1 {
            return Err(format!(
                "it has number {}, and not {}",
                head.seq,
                self.seq + 1
            ));
        }
        if head.time < self.time {
            return Err("it is older than the line before".into());
        }
        self.seq = head.seq;
        self.time = head.time;
        self.prev = hash(line);
        Ok(())
    }

    /// The chain after a line that is trusted, such as the last one of the bastion's own log.
    pub fn after(line: &str) -> Result<Self, String> {
        let head: Head = serde_json::from_str(line).map_err(|error| error.to_string())?;
        Ok(Self {
            seq: head.seq,
            prev: hash(line),
            time: head.time,
        })
    }
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    entry: &'a Entry,
}

/// Checks the lines of a log. A log that begins later than with its first line is checked from there:
/// older files may have been removed when their time was over.
pub fn verify<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Chain, Broken> {
    let mut chain: Option<Chain> = None;
    for (index, line) in lines.into_iter().enumerate() {
        let broken = |why: String| Broken {
            line: index + 1,
            why,
        };
        match &mut chain {
            Some(chain) => chain.follow(line).map_err(broken)?,
            None => chain = Some(first(line).map_err(broken)?),
        }
    }
    Ok(chain.unwrap_or_default())
}

fn first(line: &str) -> Result<Chain, String> {
    let head: Head =
        serde_json::from_str(line).map_err(|error| format!("it is no record: {error}"))?;
    let mut before = Chain {
        seq: head.seq.saturating_sub(1),
        prev: if head.seq == 1 {
            GENESIS.to_owned()
        } else {
            head.prev
        },
        time: Timestamp::UNIX_EPOCH,
    };
    before.follow(line)?;
    Ok(before)
}

/// The sessions that are open at the end of a log: the id and the person of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenSessions(Vec<(String, String)>);

impl OpenSessions {
    /// The sessions that a file of a log leaves open.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut open = Self::default();
        for line in lines {
            // An event of a newer version opens and ends no session that this one knows.
            if let Ok(entry) = serde_json::from_str(line) {
                open.follow(&entry);
            }
        }
        open
    }

    /// Follows an event.
    pub fn follow(&mut self, entry: &Entry) {
        if let Event::Continued { open } = &entry.event {
            self.0.clone_from(open);
        }
        let (Some(session), Some(user)) = (&entry.session, &entry.user) else {
            return;
        };
        match entry.event {
            Event::SessionOpened { .. } => self.0.push((session.clone(), user.clone())),
            Event::SessionClosed { .. } | Event::SessionLost => {
                self.0.retain(|(one, _)| one != session);
            }
            _ => {}
        }
    }

    /// The sessions.
    pub fn sessions(&self) -> &[(String, String)] {
        &self.0
    }
}

fn hash(line: &str) -> String {
    hex::encode(Sha256::digest(line.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn entry(words: &[&str]) -> Entry {
        Entry {
            replica: "bastion-0".into(),
            session: Some("s1".into()),
            user: Some("alice".into()),
            event: Event::Command {
                words: words.iter().map(|&word| word.to_owned()).collect(),
            },
        }
    }

    fn log() -> String {
        let mut chain = Chain::default();
        let lines = [("list", 0), ("show", 5), ("stop", 3), ("start", 9)];
        lines
            .map(|(word, second)| chain.add(&entry(&[word]), at(second)).unwrap())
            .concat()
    }

    #[test]
    fn a_log_is_a_chain_also_over_a_clock_that_jumps_back() {
        let log = log();
        let chain = verify(log.lines()).unwrap();
        assert_eq!(chain.seq(), 4);
        assert_eq!(chain.time, at(9));
        assert_eq!(Chain::after(log.lines().last().unwrap()).unwrap(), chain);
    }

    #[test]
    fn a_log_whose_oldest_files_are_gone_is_a_chain() {
        let log = log();
        assert_eq!(verify(log.lines().skip(2)).unwrap().seq(), 4);
    }

    #[test]
    fn every_line_that_is_changed_added_removed_or_moved_is_found() {
        let log = log();
        let lines: Vec<&str> = log.lines().collect();
        let changed = lines[1].replace("show", "list");
        for (lines, line) in [
            (vec![lines[0], &changed, lines[2], lines[3]], 3),
            (vec![lines[0], lines[2], lines[3]], 2),
            (vec![lines[0], lines[1], lines[1], lines[2]], 3),
            (vec![lines[1], lines[0]], 2),
            (vec![lines[0], "{}"], 2),
            (vec![lines[0], &lines[1][1..]], 2),
        ] {
            assert_eq!(
                verify(lines.iter().copied()).unwrap_err().line,
                line,
                "{lines:#?}"
            );
        }
    }

    #[test]
    fn a_first_line_that_claims_another_past_is_found() {
        let log = log();
        let line = log
            .lines()
            .next()
            .unwrap()
            .replace(GENESIS, &"1".repeat(64));
        assert_eq!(verify([line.as_str()]).unwrap_err().line, 1);
    }

    #[test]
    fn what_is_open_at_the_end_of_a_log_is_known() {
        let mut chain = Chain::default();
        let mut line = |session: &str, event: Event| {
            let entry = Entry {
                session: Some(session.into()),
                event,
                ..entry(&[])
            };
            chain.add(&entry, at(0)).unwrap()
        };
        let opened = || Event::SessionOpened {
            namespace: "dev-alice".into(),
            source: "192.0.2.1".into(),
            credential: "ssh-ed25519 AAA".into(),
        };
        let closed = Event::SessionClosed {
            reason: "ended".into(),
        };
        let log = [
            line("a", opened()),
            line("b", opened()),
            line("a", closed),
            line("c", opened()),
            line("c", Event::SessionLost),
        ];
        let open = OpenSessions::of(log.iter().map(|line| line.trim_end()));
        let left = [("b".to_owned(), "alice".to_owned())];
        assert_eq!(open.sessions(), left);
        let continued = Event::Continued {
            open: left.to_vec(),
        };
        let next = [line("", continued), line("d", opened())];
        let open = OpenSessions::of(next.iter().map(|line| line.trim_end()));
        assert_eq!(open.sessions()[..1], left);
        assert_eq!(open.sessions().len(), 2);
    }
}
