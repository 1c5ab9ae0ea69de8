//! A rate limiter that gives each pool a time to begin, so that the provider does not make more
//! calls than EC2 grants.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

/// A pool that did not ask for this long after its turn is forgotten.
const KEPT: SignedDuration = SignedDuration::from_mins(10);

/// Hands out turns: a burst at once, and then one after the other.
///
/// It is a token bucket. A pool asks, and asks again at the time of the answer, until its turn has
/// come. Tenants take turns in rounds: the first waiting pools of all tenants come before the second
/// ones (start-time fair queueing, Goyal et al. 1996). So a tenant with a thousand new pools delays
/// another tenant's first one by a round, and not by a thousand turns.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    burst: i32,
    every: SignedDuration,
    /// The time at which the bucket is full again.
    full_at: Timestamp,
    /// The round of the turn that was taken last.
    round: u64,
    /// The number of pools that ever waited.
    arrivals: u64,
    /// The last round in which each tenant has a turn.
    last: BTreeMap<String, u64>,
    /// The waiting pools, in the order of their turns.
    waiting: BTreeMap<Position, Waiting>,
    /// When pools took their turns, until they are forgotten.
    taken: BTreeMap<String, Timestamp>,
}

/// A round, and the number of the arrival.
type Position = (u64, u64);

#[derive(Clone, Debug)]
struct Waiting {
    who: String,
    /// The last answer.
    turn: Timestamp,
}

impl RateLimiter {
    /// Allows `burst` turns at once, then one every `every`. `burst` is at least 1.
    pub fn new(burst: i32, every: SignedDuration) -> Self {
        Self {
            burst,
            every,
            full_at: Timestamp::MIN,
            round: 0,
            arrivals: 0,
            last: BTreeMap::new(),
            waiting: BTreeMap::new(),
            taken: BTreeMap::new(),
        }
    }

    /// The time of the turn of `who`, a pool of `tenant`. If it is not after `now`, the turn has
    /// come and is taken. Otherwise the pool asks again at that time. The answer may be later then,
    /// if pools of other tenants came in between.
    pub fn of(&mut self, who: &str, tenant: &str, now: Timestamp) -> Timestamp {
        if let Some(turn) = self.taken.get(who) {
            return *turn;
        }
        self.forget_the_absent(now);
        let position = self.position(who, tenant);
        let before = self.waiting.range(..position).count();
        let turn = self.token(before, now);
        if turn > now {
            if let Some(waiting) = self.waiting.get_mut(&position) {
                waiting.turn = turn;
            }
            return turn;
        }
        self.waiting.remove(&position);
        self.round = self.round.max(position.0);
        self.full_at = later(self.full_at.max(now), self.every);
        self.taken.insert(who.to_owned(), now);
        now
    }

    /// Forgets the turn of `who`, who began or does not want to any more.
    pub fn forget(&mut self, who: &str) {
        self.taken.remove(who);
        self.waiting.retain(|_, waiting| waiting.who != who);
    }

    /// The position of a pool that waits. A new one gets a round after the last of its tenant.
    fn position(&mut self, who: &str, tenant: &str) -> Position {
        let mut waiting = self.waiting.iter();
        if let Some((position, _)) = waiting.find(|(_, waiting)| waiting.who == who) {
            return *position;
        }
        let last = self.last.get(tenant).copied().unwrap_or_default();
        let position = (last.max(self.round).saturating_add(1), self.arrivals);
        self.arrivals += 1;
        self.last.insert(tenant.to_owned(), position.0);
        let waiting = Waiting {
            who: who.to_owned(),
            turn: Timestamp::MAX,
        };
        self.waiting.insert(position, waiting);
        position
    }

    /// The time at which there is a token for a pool with so many pools before it.
    fn token(&self, before: usize, now: Timestamp) -> Timestamp {
        let before = i32::try_from(before).unwrap_or(i32::MAX);
        let tokens = before.saturating_add(1).saturating_sub(self.burst);
        later(self.full_at.max(now), self.every.saturating_mul(tokens)).max(now)
    }

    fn forget_the_absent(&mut self, now: Timestamp) {
        let is_recent = |turn: Timestamp| now.duration_since(turn) < KEPT;
        self.taken.retain(|_, turn| is_recent(*turn));
        self.waiting.retain(|_, waiting| is_recent(waiting.turn));
        let round = self.round;
        self.last.retain(|_, last| *last > round);
    }
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;
    const EVERY: SignedDuration = SignedDuration::from_millis(200);

    fn waits(turns: &mut RateLimiter, names: std::ops::Range<usize>, now: Timestamp) -> Vec<i64> {
        let wait = |n| {
            turns
                .of(&format!("pool-{n}"), "gpu", now)
                .duration_since(now)
        };
        names
            .map(wait)
            .map(|wait| i64::try_from(wait.as_millis()).unwrap())
            .collect()
    }

    #[test]
    fn a_burst_begins_at_once_and_the_rest_as_fast_as_ec2_grants() {
        let mut turns = RateLimiter::new(3, EVERY);
        assert_eq!(waits(&mut turns, 0..6, START), [0, 0, 0, 200, 400, 600]);
        let later = START + SignedDuration::from_secs(1);
        assert_eq!(waits(&mut turns, 3..6, later), [0, 0, 0]);
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
        assert_eq!((turns.taken.len(), turns.waiting.len()), (1, 0));
    }

    #[test]
    fn a_thousand_pools_of_one_tenant_delay_another_tenant_by_a_round() {
        let mut turns = RateLimiter::new(3, EVERY);
        waits(&mut turns, 0..1000, START);
        let own: Vec<_> = (0..3).map(|n| format!("own-{n}")).collect();
        let waited = own
            .iter()
            .map(|who| turns.of(who, "another", START).duration_since(START));
        let waited: Vec<_> = waited.map(|wait| wait.as_millis()).collect();
        assert_eq!(waited, [400, 800, 1200], "one after each of the others");
    }

    #[test]
    fn every_pool_gets_its_turn_and_ec2_gets_no_call_too_many() {
        let tenants = ["a", "b", "c"];
        let mut turns = RateLimiter::new(3, EVERY);
        let mut asks: BTreeSet<(Timestamp, usize)> = (0..300).map(|n| (START, n)).collect();
        let mut taken = Vec::new();
        while let Some((now, n)) = asks.pop_first() {
            // Tenant a has nine of ten pools.
            let tenant = if n % 10 > 0 { "a" } else { tenants[n / 10 % 3] };
            match turns.of(&format!("pool-{n}"), tenant, now) {
                turn if turn > now => drop(asks.insert((turn, n))),
                _ => taken.push((now, tenant)),
            }
        }
        assert_eq!(taken.len(), 300);
        for (number, (at, _)) in taken.iter().enumerate().skip(3) {
            let earliest = START + EVERY * i32::try_from(number - 2).unwrap();
            assert!(
                *at >= earliest,
                "turn {number} at {at}, not before {earliest}"
            );
        }
        let last_of = |wanted| taken.iter().rposition(|(_, tenant)| *tenant == wanted);
        assert!(last_of("b").unwrap() < 60 && last_of("c").unwrap() < 60);
    }
}
