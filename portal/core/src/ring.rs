//! The changes of all claims, for open pages.
//!
//! Each change is encoded once. A page is a [`Cursor`]: it costs the ring nothing, and a slow page keeps
//! nobody back. A page whose next change is not in the ring any more is told to list again, so nobody
//! misses a change without being told.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use serde_json::json;

use crate::view::Row;
use crate::visible::Visible;

/// The changes of claims, the newest `most` of them.
#[derive(Debug)]
pub struct Ring {
    changes: VecDeque<Change>,
    most: usize,
    /// The number of the first change in `changes`.
    first: u64,
    /// The number of the newest change of each claim.
    newest: HashMap<Claim, u64>,
    /// Every change of a later version is in `changes`.
    floor: u64,
    /// Every change of this version or an earlier one was taken.
    head: u64,
}

/// A claim by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Claim {
    namespace: String,
    name: String,
}

#[derive(Debug)]
struct Change {
    claim: Claim,
    version: u64,
    frame: Bytes,
}

/// Where a page is in the ring: the number of the change that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(u64);

/// Where a page that knows a version goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// From here.
    At(Cursor),
    /// Nowhere: changes after its version are not in the ring any more.
    TooOld,
    /// Not yet: this ring has not taken the changes up to its version.
    Ahead,
}

/// What a page gets next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A change.
    Frame(Bytes),
    /// It has all changes.
    Idle,
    /// Its next change is not in the ring any more.
    TooOld,
}

impl Ring {
    /// A ring that has the changes after a version, at most `most` of them.
    pub fn new(version: u64, most: usize) -> Self {
        Self {
            changes: VecDeque::with_capacity(most.min(1024)),
            most: most.max(1),
            first: 0,
            newest: HashMap::new(),
            floor: version,
            head: version,
        }
    }

    /// The version up to which all changes were taken.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Takes a claim that is new or has changed.
    pub fn put(&mut self, row: &Row) {
        let claim = Claim {
            namespace: row.namespace.clone(),
            name: row.name.clone(),
        };
        self.push(claim, row.version, frame(row.version, "put", &json!(row)));
    }

    /// Takes a claim that is gone as of a version.
    pub fn gone(&mut self, namespace: &str, name: &str, version: u64) {
        let claim = Claim {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let told = json!({"namespace": namespace, "name": name});
        self.push(claim, version, frame(version, "gone", &told));
    }

    /// Takes that nothing else has changed up to a version.
    pub fn advance(&mut self, version: u64) {
        self.head = self.head.max(version);
    }

    fn push(&mut self, claim: Claim, version: u64, frame: Bytes) {
        if self.changes.len() == self.most
            && let Some(dropped) = self.changes.pop_front()
        {
            self.floor = self.floor.max(dropped.version);
            if self.newest.get(&dropped.claim) == Some(&self.first) {
                self.newest.remove(&dropped.claim);
            }
            self.first += 1;
        }
        let number = self.first + self.changes.len() as u64;
        self.newest.insert(claim.clone(), number);
        self.changes.push_back(Change {
            claim,
            version,
            frame,
        });
        self.advance(version);
    }

    /// Where a page goes on that has all changes up to a version.
    pub fn resume(&self, version: u64) -> Resumed {
        if version > self.head {
            return Resumed::Ahead;
        }
        if version < self.floor {
            return Resumed::TooOld;
        }
        // Versions rise, so the changes that the page has are the first ones.
        let known = self
            .changes
            .partition_point(|change| change.version <= version);
        Resumed::At(Cursor(self.first + known as u64))
    }

    /// What a page gets next. A change is left out if the page may not see it, or if a later one of the
    /// same claim is in the ring.
    pub fn step(&self, cursor: &mut Cursor, visible: &Visible) -> Step {
        if cursor.0 < self.first {
            return Step::TooOld;
        }
        loop {
            let place = usize::try_from(cursor.0 - self.first).unwrap_or(usize::MAX);
            let Some(change) = self.changes.get(place) else {
                return Step::Idle;
            };
            let number = cursor.0;
            cursor.0 += 1;
            let is_newest = self.newest.get(&change.claim) == Some(&number);
            if is_newest && visible.has(&change.claim.namespace) {
                return Step::Frame(change.frame.clone());
            }
        }
    }
}

/// A message of a stream of server-sent events (HTML, "Server-sent events"). JSON has no line ends.
fn frame(version: u64, event: &str, data: &serde_json::Value) -> Bytes {
    Bytes::from(format!("id: {version}\nevent: {event}\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests;
