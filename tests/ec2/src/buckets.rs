//! EC2's token buckets. They limit the calls, and the launched instances, that EC2 accepts.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

/// The size of a bucket, and the speed at which it fills again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The tokens of a full bucket.
    pub burst: f64,
    /// The tokens that the bucket gets back each second.
    pub per_second: f64,
}

/// The sizes of the buckets of an account in a region. Each operation has its own bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The bucket of each `Describe…` operation, for calls with filters or pages.
    pub describe: Rate,
    /// The bucket of each other operation.
    pub mutate: Rate,
    /// The bucket of `RunInstances`.
    pub run: Rate,
    /// The bucket of `TerminateInstances`.
    pub terminate: Rate,
    /// The bucket of `CreateTags`.
    pub tag: Rate,
    /// The bucket of launched instances, which all operations that launch share. Without it, EC2
    /// does not limit launched instances.
    pub launched: Option<Rate>,
    /// The bucket of ended instances. Without it, EC2 does not limit ended instances.
    pub ended: Option<Rate>,
}

/// The token buckets with their levels. Without limits, EC2 never refuses a call.
#[derive(Clone, Debug, Default)]
pub struct Buckets {
    limits: Option<Limits>,
    levels: BTreeMap<String, Level>,
    refused: usize,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    tokens: f64,
    at: Timestamp,
}

/// The names of the buckets of launched and of ended instances. No operation has such a name.
const LAUNCHED: &str = "launched instances";
const ENDED: &str = "ended instances";

impl Rate {
    /// A bucket of `burst` tokens that gets back `per_second` tokens each second.
    pub const fn new(burst: f64, per_second: f64) -> Self {
        Self { burst, per_second }
    }
}

impl Limits {
    /// The limits of AWS, from "Request throttling for the Amazon EC2 API". There is no bucket of
    /// launched instances: a new account has 1,000 tokens and gets back two a second, and AWS
    /// raises this limit. 1,000 instances may end at once, and then 20 a second.
    pub const AWS: Self = Self {
        describe: Rate::new(100.0, 20.0),
        mutate: Rate::new(50.0, 5.0),
        run: Rate::new(5.0, 2.0),
        terminate: Rate::new(100.0, 5.0),
        tag: Rate::new(100.0, 10.0),
        launched: None,
        ended: Some(Rate::new(1000.0, 20.0)),
    };

    fn of(&self, operation: &str) -> Rate {
        match operation {
            "RunInstances" => self.run,
            "TerminateInstances" => self.terminate,
            "CreateTags" => self.tag,
            _ if operation.starts_with("Describe") => self.describe,
            _ => self.mutate,
        }
    }
}

impl Buckets {
    /// Full buckets.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits: Some(limits),
            levels: BTreeMap::new(),
            refused: 0,
        }
    }

    /// Takes a token for a call, and returns whether there was one. A refused call takes no token.
    pub fn take(&mut self, operation: &str, now: Timestamp) -> bool {
        let rate = self.limits.map(|limits| limits.of(operation));
        rate.is_none_or(|rate| self.draw(operation, rate, 1.0, now))
    }

    /// Takes tokens for instances, and returns whether there were enough. If not, it takes none.
    pub fn take_instances(&mut self, count: u32, now: Timestamp) -> bool {
        let rate = self.limits.and_then(|limits| limits.launched);
        rate.is_none_or(|rate| self.draw(LAUNCHED, rate, f64::from(count), now))
    }

    /// Takes tokens for instances that end, and returns whether there were enough. If not, it takes
    /// none.
    pub fn take_ends(&mut self, count: usize, now: Timestamp) -> bool {
        let rate = self.limits.and_then(|limits| limits.ended);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        rate.is_none_or(|rate| self.draw(ENDED, rate, f64::from(count), now))
    }

    /// The most instances that may end in one call; none without a limit.
    pub fn most_ends(&self) -> Option<usize> {
        let rate = self.limits.and_then(|limits| limits.ended)?;
        usize::try_from(Duration::from_secs_f64(rate.burst).as_secs()).ok()
    }

    /// How often there were too few tokens.
    pub fn refused(&self) -> usize {
        self.refused
    }

    fn draw(&mut self, bucket: &str, rate: Rate, tokens: f64, now: Timestamp) -> bool {
        let full = Level {
            tokens: rate.burst,
            at: now,
        };
        let level = self.levels.entry(bucket.to_owned()).or_insert(full);
        let passed = now.duration_since(level.at).as_secs_f64().max(0.0);
        level.tokens = (level.tokens + passed * rate.per_second).min(rate.burst);
        level.at = now;
        let is_enough = level.tokens >= tokens;
        if is_enough {
            level.tokens -= tokens;
        } else {
            self.refused += 1;
        }
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn after(milliseconds: i64) -> Timestamp {
        START + SignedDuration::from_millis(milliseconds)
    }

    fn granted(buckets: &mut Buckets, operation: &str, calls: usize, now: Timestamp) -> usize {
        (0..calls).filter(|_| buckets.take(operation, now)).count()
    }

    #[test]
    fn a_burst_is_granted_and_then_only_what_comes_back() {
        let mut buckets = Buckets::new(Limits::AWS);
        assert_eq!(granted(&mut buckets, "CreateFleet", 80, START), 50);
        assert_eq!(granted(&mut buckets, "CreateFleet", 80, after(1000)), 5);
        assert_eq!(granted(&mut buckets, "CreateFleet", 80, after(1300)), 1);
        assert_eq!(granted(&mut buckets, "CreateFleet", 80, after(60_000)), 50);
    }

    #[test]
    fn no_operation_lives_at_the_cost_of_another() {
        let mut buckets = Buckets::new(Limits::AWS);
        for (operation, burst) in [
            ("DescribeInstances", 100),
            ("DescribeSubnets", 100),
            ("CreateLaunchTemplate", 50),
            ("CreateFleet", 50),
            ("RunInstances", 5),
            ("TerminateInstances", 100),
            ("CreateTags", 100),
        ] {
            let calls = granted(&mut buckets, operation, 1000, START);
            assert_eq!(calls, burst, "{operation}");
        }
    }

    #[test]
    fn a_fleet_that_is_larger_than_what_is_left_is_refused_whole() {
        let mut buckets = Buckets::new(Limits {
            launched: Some(Rate::new(10.0, 2.0)),
            ..Limits::AWS
        });
        assert!(buckets.take_instances(8, START));
        assert!(!buckets.take_instances(4, START));
        assert!(buckets.take_instances(4, after(1000)));
    }

    #[test]
    fn an_account_without_limits_is_never_refused() {
        let mut buckets = Buckets::default();
        assert_eq!(granted(&mut buckets, "RunInstances", 1000, START), 1000);
        assert!(buckets.take_instances(u32::MAX, START));
    }
}
