//! How long changes take until somebody knows them, and which ones nobody was told of.

use std::collections::HashMap;
use std::time::Duration;

/// A state of a claim at a moment: when it was written, or when it was seen. Moments count from the start
/// of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// The number of the claim.
    pub(crate) claim: usize,
    pub(crate) version: u64,
    pub(crate) at: Duration,
}

/// What became of changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    /// The time from the write to the moment at which the change, or a later one of the same claim, was seen.
    pub(crate) took: Vec<Duration>,
    /// Changes of which only a later one of the same claim was seen.
    pub(crate) superseded: usize,
    /// Changes that were not seen, and no later one of the same claim either.
    pub(crate) lost: usize,
}

impl Fate {
    pub(crate) fn add(&mut self, other: Self) {
        self.took.extend(other.took);
        self.superseded += other.superseded;
        self.lost += other.lost;
    }
}

/// What became of changes for somebody who saw these states, in the order of time.
pub(crate) fn fate<'a>(changes: impl IntoIterator<Item = &'a State>, seen: &[State]) -> Fate {
    let mut by_claim: HashMap<usize, Vec<&State>> = HashMap::new();
    for state in seen {
        by_claim.entry(state.claim).or_default().push(state);
    }
    let mut fate = Fate::default();
    for change in changes {
        let of_claim = by_claim.get(&change.claim);
        let first = of_claim.and_then(|states| {
            let mut later = states.iter();
            later.find(|state| state.version >= change.version)
        });
        match first {
            Some(state) => {
                fate.took.push(state.at.saturating_sub(change.at));
                fate.superseded += usize::from(state.version != change.version);
            }
            None => fate.lost += 1,
        }
    }
    fate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(claim: usize, version: u64, at: u64) -> State {
        let at = Duration::from_millis(at);
        State { claim, version, at }
    }

    #[test]
    fn a_change_that_nobody_was_told_of_is_lost() {
        let changes = [state(0, 10, 0), state(1, 11, 100), state(0, 12, 200)];
        let seen = [state(0, 10, 5), state(1, 9, 6), state(0, 12, 207)];
        let millis = |all: &[u64]| -> Vec<Duration> {
            all.iter().copied().map(Duration::from_millis).collect()
        };
        let found = fate(&changes, &seen);
        let expected = Fate {
            took: millis(&[5, 7]),
            superseded: 0,
            lost: 1,
        };
        assert_eq!(found, expected);
        // Who only sees the last state of a claim has waited for the first one, too.
        let late = fate(&changes, &[state(0, 12, 300)]);
        let expected = Fate {
            took: millis(&[300, 100]),
            superseded: 1,
            lost: 1,
        };
        assert_eq!(late, expected);
    }
}
