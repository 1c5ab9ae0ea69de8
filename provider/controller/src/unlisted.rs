//! The launched instances that no look has shown.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use provider_core::Launched;

/// How long a launched instance is kept that no look shows. EC2 lists instances within minutes.
const UNLISTED_LIFE: SignedDuration = SignedDuration::from_hours(1);

/// The launched instances that no look has shown, with their zones.
#[derive(Debug, Default)]
pub struct Unlisted(BTreeMap<String, (String, Timestamp)>);

impl Unlisted {
    /// Notes the instances of a launch.
    pub fn note(&mut self, launched: &[Launched], now: Timestamp) {
        self.0
            .retain(|_, (_, since)| now.duration_since(*since) < UNLISTED_LIFE);
        let launched = launched.iter();
        self.0
            .extend(launched.map(|one| (one.id.clone(), (one.offering.zone.clone(), now))));
    }

    /// Forgets the instances that a look shows.
    pub fn forget<'a>(&mut self, listed: impl Iterator<Item = &'a str>) {
        if !self.0.is_empty() {
            listed.for_each(|id| drop(self.0.remove(id)));
        }
    }

    /// The zones by id.
    pub fn zones(&self) -> BTreeMap<String, String> {
        let zones = self.0.iter();
        zones
            .map(|(id, (zone, _))| (id.clone(), zone.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::instance_for_tests;

    #[test]
    fn a_launched_instance_is_kept_until_a_look_shows_it_or_an_hour_has_passed() {
        let launched = |id: &str| Launched {
            id: id.to_owned(),
            offering: instance_for_tests(id).offering,
        };
        let now = Timestamp::UNIX_EPOCH;
        let mut unlisted = Unlisted::default();
        unlisted.note(&[launched("i-1"), launched("i-2")], now);
        unlisted.forget(["i-1", "i-9"].into_iter());
        assert_eq!(unlisted.zones().into_keys().collect::<Vec<_>>(), ["i-2"]);
        let later = now.checked_add(UNLISTED_LIFE).unwrap();
        unlisted.note(&[launched("i-3")], later);
        assert_eq!(unlisted.zones().into_keys().collect::<Vec<_>>(), ["i-3"]);
    }
}
