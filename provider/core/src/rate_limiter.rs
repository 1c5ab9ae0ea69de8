//! A rate limiter that gives each pool a time to begin, so that the provider does not make more
//! calls than EC2 grants.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

/// A turn that was given longer ago than this is forgotten.
const KEPT: SignedDuration = SignedDuration::from_mins(10);

/// Hands out times: a burst at once, and then one after the other.
///
/// It is a token bucket that answers with the time of the next token instead of a refusal. A pool
/// asks once and waits until that time.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    burst: i32,
    every: SignedDuration,
    /// The time at which the bucket is full again.
    full_at: Timestamp,
    given: BTreeMap<String, Timestamp>,
}

impl RateLimiter {
    /// Allows `burst` turns at once, then one every `every`. `burst` is at least 1.
    pub fn new(burst: i32, every: SignedDuration) -> Self {
        Self {
            burst,
            every,
            full_at: Timestamp::MIN,
            given: BTreeMap::new(),
        }
    }

    /// The time of the turn of `who`. It is not after `now` if the turn has come. Later calls
    /// answer the same time, until the turn is taken or forgotten.
    pub fn of(&mut self, who: &str, now: Timestamp) -> Timestamp {
        if let Some(turn) = self.given.get(who) {
            return *turn;
        }
        self.given
            .retain(|_, turn| now.duration_since(*turn) < KEPT);
        let later = |at: Timestamp, by| at.saturating_add(by).unwrap_or(Timestamp::MAX);
        self.full_at = later(self.full_at.max(now), self.every);
        let turn = later(self.full_at, self.every * -self.burst).max(now);
        self.given.insert(who.to_owned(), turn);
        turn
    }

    /// Forgets the turn of `who`, who took it or does not want one any more.
    pub fn forget(&mut self, who: &str) {
        self.given.remove(who);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;
    const EVERY: SignedDuration = SignedDuration::from_millis(200);

    fn waits(turns: &mut RateLimiter, names: std::ops::Range<usize>, now: Timestamp) -> Vec<i64> {
        let wait = |n| turns.of(&format!("pool-{n}"), now).duration_since(now);
        names
            .map(wait)
            .map(|wait| i64::try_from(wait.as_millis()).unwrap())
            .collect()
    }

    #[test]
    fn a_burst_begins_at_once_and_the_rest_as_fast_as_ec2_grants() {
        let mut turns = RateLimiter::new(3, EVERY);
        assert_eq!(waits(&mut turns, 0..6, START), [0, 0, 0, 200, 400, 600]);
        let later = START + SignedDuration::from_mins(1);
        assert_eq!(waits(&mut turns, 6..11, later), [0, 0, 0, 200, 400]);
    }

    #[test]
    fn a_pool_that_asks_again_keeps_its_turn() {
        let mut turns = RateLimiter::new(1, EVERY);
        waits(&mut turns, 0..3, START);
        let later = START + SignedDuration::from_millis(150);
        assert_eq!(waits(&mut turns, 2..3, later), [250]);
        assert_eq!(waits(&mut turns, 3..4, later), [450]);
    }

    #[test]
    fn a_taken_turn_is_not_given_again() {
        let mut turns = RateLimiter::new(1, EVERY);
        assert_eq!(waits(&mut turns, 0..1, START), [0]);
        turns.forget("pool-0");
        assert_eq!(waits(&mut turns, 0..1, START), [200]);
    }

    #[test]
    fn turns_that_no_pool_takes_are_forgotten() {
        let mut turns = RateLimiter::new(1, EVERY);
        waits(&mut turns, 0..100, START);
        waits(&mut turns, 100..101, START + SignedDuration::from_hours(1));
        assert_eq!(turns.given.len(), 1);
    }
}
