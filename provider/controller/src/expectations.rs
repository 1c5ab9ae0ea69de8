//! The terminations that this process expects to see. A look that began before EC2 answered does
//! not show them. This is the EC2 form of client-go's controller expectations.
//!
//! When a thousand instances end in a minute, a look is seconds old. Without expectations each pool
//! would terminate the same instance again and again, with a write and two calls each time, and its
//! status would report the instance as running in between.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use provider_core::{Instance, InstanceState};

/// The `StateReason.Code` that EC2 shows a moment later for an instance that a caller terminated.
/// The provider sets it at once, so the status changes once and not twice.
const ENDED_BY_CALL: &str = "Client.UserInitiatedShutdown";
/// How long a termination is kept. EC2 lists terminated instances for a shorter time ("Terminate
/// Amazon EC2 instances" in the Amazon EC2 User Guide).
const LIFE: SignedDuration = SignedDuration::from_hours(1);

/// The expected terminations.
#[derive(Debug, Default)]
pub struct Expectations {
    looks: u64,
    ended: BTreeMap<String, Ending>,
}

#[derive(Debug)]
struct Ending {
    /// The number of the last look that began before EC2 answered.
    look: u64,
    at: Timestamp,
}

impl Expectations {
    /// Registers the start of a look, and returns its number.
    pub fn begin_look(&mut self) -> u64 {
        self.looks += 1;
        self.looks
    }

    /// Records that EC2 granted these terminations.
    pub fn note(&mut self, ids: &[String], now: Timestamp) {
        self.ended
            .retain(|_, ending| now.duration_since(ending.at) < LIFE);
        let look = self.looks;
        let ended = ids.iter().map(|id| (id.clone(), Ending { look, at: now }));
        self.ended.extend(ended);
    }

    /// Whether this process terminated the instance.
    pub fn knows(&self, id: &str) -> bool {
        self.ended.contains_key(id)
    }

    /// Applies the expected terminations to the instances of a look.
    pub fn correct(&self, look: u64, instances: &mut [Instance]) {
        for instance in instances.iter_mut().filter(|i| i.state.is_live()) {
            let ending = self.ended.get(&instance.id);
            if ending.is_some_and(|ending| look <= ending.look) {
                ends(instance);
            }
        }
    }
}

/// Marks the instance as terminating, as EC2 will show it.
pub fn ends(instance: &mut Instance) {
    instance.state = InstanceState::ShuttingDown;
    instance.state_reason = Some(ENDED_BY_CALL.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::instance_for_tests;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn running() -> Vec<Instance> {
        vec![instance_for_tests("i-1")]
    }

    #[test]
    fn a_look_that_began_before_a_termination_does_not_show_a_running_instance() {
        let mut expectations = Expectations::default();
        let before = expectations.begin_look();
        let meanwhile = expectations.begin_look();
        expectations.note(&["i-1".to_owned()], NOW);
        let after = expectations.begin_look();
        for (look, state) in [
            (before, InstanceState::ShuttingDown),
            (meanwhile, InstanceState::ShuttingDown),
            // The look began after EC2's answer, so EC2's state counts: it may even have refused in
            // the end.
            (after, InstanceState::Running),
        ] {
            let mut instances = running();
            expectations.correct(look, &mut instances);
            assert_eq!(instances[0].state, state, "look {look}");
        }
    }

    #[test]
    fn an_instance_that_this_process_did_not_end_is_as_ec2_shows_it() {
        let mut expectations = Expectations::default();
        let look = expectations.begin_look();
        expectations.note(&["i-2".to_owned()], NOW);
        let mut instances = running();
        expectations.correct(look, &mut instances);
        assert_eq!(instances, running());
        assert!(expectations.knows("i-2") && !expectations.knows("i-1"));
    }

    #[test]
    fn an_expected_termination_is_forgotten_when_ec2_stops_listing_it() {
        let mut expectations = Expectations::default();
        expectations.note(&["i-1".to_owned()], NOW);
        let later = NOW.checked_add(LIFE).unwrap();
        expectations.note(&["i-2".to_owned()], later);
        assert!(expectations.knows("i-2") && !expectations.knows("i-1"));
    }
}
