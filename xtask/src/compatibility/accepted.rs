//! Breaking changes that we have accepted, each with its reason.

use std::path::Path;

use serde::Deserialize;

use super::change::{Change, Rule};

/// The file with the list.
pub(super) const FILE: &str = "releases/accepted.yaml";

/// The committed list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Accepted {
    changes: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    definition: String,
    field: String,
    rule: Rule,
    /// The reason, for readers of the list. An empty reason is refused.
    reason: String,
}

impl Entry {
    fn is(&self, change: &Change) -> bool {
        self.definition == change.definition
            && self.field == change.field
            && self.rule == change.rule
    }
}

impl Accepted {
    /// Reads the list below a repository's root.
    pub(super) fn read(root: &Path) -> super::Outcome<Self> {
        let text = std::fs::read_to_string(root.join(FILE)).map_err(|e| format!("{FILE}: {e}"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> super::Outcome<Self> {
        let accepted: Self = serde_yaml::from_str(text).map_err(|e| format!("{FILE}: {e}"))?;
        let unexplained = |entry: &&Entry| entry.reason.trim().is_empty();
        match accepted.changes.iter().find(unexplained) {
            Some(entry) => Err(format!(
                "{FILE}: {} {}: has no reason; say why users are not hurt, or what they gain",
                entry.definition, entry.field
            )
            .into()),
            None => Ok(accepted),
        }
    }

    /// Returns the changes that are not accepted, and the entries that match no change.
    pub(super) fn sort(&self, changes: Vec<Change>) -> (Vec<Change>, Vec<String>) {
        let is_stale = |entry: &&Entry| !changes.iter().any(|change| entry.is(change));
        let stale = self.changes.iter().filter(is_stale);
        let stale = stale
            .map(|entry| format!("{} {}", entry.definition, entry.field))
            .collect();
        let is_refused = |change: &Change| !self.changes.iter().any(|entry| entry.is(change));
        (changes.into_iter().filter(is_refused).collect(), stale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "
changes:
  - definition: as.test
    field: v1 spec.size
    rule: cel-rule-added
    reason: Every size that it refuses was refused by EC2.
";

    fn change(rule: Rule) -> Change {
        Change {
            package: "configuration-a".into(),
            definition: "as.test".into(),
            field: "v1 spec.size".into(),
            rule,
            what: "another".into(),
        }
    }

    #[test]
    fn an_accepted_change_passes_and_its_neighbour_does_not() {
        let accepted = Accepted::parse(ENTRY).unwrap();
        let changes = vec![change(Rule::CelRuleAdded), change(Rule::TypeChanged)];
        let (refused, stale) = accepted.sort(changes);
        assert_eq!(refused, [change(Rule::TypeChanged)]);
        assert!(stale.is_empty());
    }

    #[test]
    fn an_acceptance_does_not_outlive_what_it_accepted() {
        let accepted = Accepted::parse(ENTRY).unwrap();
        let (refused, stale) = accepted.sort(Vec::new());
        assert!(refused.is_empty());
        assert_eq!(stale, ["as.test v1 spec.size"]);
    }

    #[test]
    fn nothing_is_accepted_without_a_reason() {
        let text = ENTRY.replace("Every size that it refuses was refused by EC2.", "''");
        let error = Accepted::parse(&text).unwrap_err().to_string();
        assert!(error.contains("has no reason"), "{error}");
    }
}
