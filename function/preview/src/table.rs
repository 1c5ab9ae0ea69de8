//! A preview as a table for people.

use std::fmt;

use crate::{Effect, Preview, Row};

impl fmt::Display for Preview {
    /// One line for each workspace that the policy touches, and a sum.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let touched = || {
            self.workspaces
                .iter()
                .filter(|row| row.effect != Effect::Unchanged)
        };
        let width = |of: fn(&Row) -> usize, heading: &str| {
            touched().map(of).max().unwrap_or(0).max(heading.len())
        };
        let namespace = width(|row| row.namespace.len(), "NAMESPACE");
        let name = width(|row| row.name.len(), "NAME");
        if touched().next().is_some() {
            writeln!(
                f,
                "{:namespace$}  {:name$}  {:9}  {:7}  {:15}  MESSAGE",
                "NAMESPACE", "NAME", "EFFECT", "MACHINE", "USD/H"
            )?;
        }
        for row in touched() {
            writeln!(
                f,
                "{:namespace$}  {:name$}  {:9}  {:7}  {:15}  {}",
                row.namespace,
                row.name,
                row.effect,
                if row.is_on { "on" } else { "off" },
                prices(row),
                row.message
            )?;
        }
        write!(f, "{}", self.sum())
    }
}

impl Preview {
    fn sum(&self) -> String {
        let effects = [
            Effect::Unchanged,
            Effect::Changed,
            Effect::Held,
            Effect::Refused,
            Effect::Replaced,
            Effect::Stopped,
        ];
        let counted = effects.into_iter().filter_map(|effect| {
            let rows = self.workspaces.iter();
            let count = rows.filter(|row| row.effect == effect).count();
            (count > 0).then(|| format!("{count} {effect}"))
        });
        let counted: Vec<_> = counted.collect();
        match self.workspaces.len() {
            0 => "no workspace of this Composition".to_owned(),
            1 => format!("1 workspace: {}", counted.join(", ")),
            all => format!("{all} workspaces: {}", counted.join(", ")),
        }
    }
}

fn prices(row: &Row) -> String {
    match (row.hourly_usd, row.proposed_hourly_usd) {
        (Some(one), Some(other)) if (one - other).abs() > f64::EPSILON => {
            format!("{one} -> {other}")
        }
        (_, Some(price)) | (Some(price), None) => price.to_string(),
        (None, None) => String::new(),
    }
}
