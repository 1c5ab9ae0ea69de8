//! A launch: one request to EC2 for instances.

use jiff::{SignedDuration, Timestamp};

use crate::{Instance, Offering};

/// How long after the last call an instance may be missing from EC2's lists before the launch
/// counts as failed, whatever EC2 answered. EC2 is eventually consistent: a describe right after a
/// launch may not show the instance, commonly for seconds, at worst for minutes.
const UNSEEN_LIMIT: SignedDuration = SignedDuration::from_mins(5);
/// How long after the last call a launch without an answer prevents the release of its pool.
const UNANSWERED_LIMIT: SignedDuration = SignedDuration::from_mins(2);

/// After this many failed calls EC2 is not asked for the launch again. With the back-off between
/// them, these are about ten minutes. Either EC2 lists its instances later, or it is forgotten, and
/// another launch follows: EC2 may never accept the token again.
const GIVE_UP: u32 = 8;

/// A launch that the planner decided on. The provider persists all of it before it calls EC2: only
/// the same request may be repeated with the same token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The number of the launch, unique within the pool.
    pub launch: u64,
    /// How many instances EC2 is asked for.
    pub count: u32,
    /// The launch template: see [`crate::Desired::generation`].
    pub generation: String,
    /// The offerings that AWS may choose from, all of one market.
    pub offerings: Vec<Offering>,
    /// The time at which EC2 was last asked for the launch, or is about to be.
    pub decided_at: Timestamp,
    /// How many calls for the launch failed without an answer.
    pub failures: u32,
    /// EC2's answer, kept until EC2 lists all instances of it. If it has fewer instances than
    /// `count`, EC2 refused the others.
    pub answer: Option<Vec<Launched>>,
}

/// One instance of EC2's answer to a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// EC2's id.
    pub id: String,
    /// The offering that EC2 granted.
    pub offering: Offering,
}

impl Launch {
    /// Whether EC2 is not asked for the launch again.
    pub fn is_given_up(&self) -> bool {
        self.failures >= GIVE_UP
    }

    /// Notes that a call failed. EC2 throttles a call before it looks at it, so another token would
    /// not help then.
    pub fn failed(&mut self, is_throttled: bool) {
        let most = if is_throttled { GIVE_UP - 1 } else { GIVE_UP };
        self.failures = self.failures.max((self.failures + 1).min(most));
    }

    /// Notes that EC2 does not accept the token, because it knows the token with other parameters.
    pub fn give_up(&mut self) {
        self.failures = GIVE_UP;
    }

    /// How many instances of the launch exist, or may exist, in addition to the listed ones.
    pub fn unlisted(&self, listed: &[Instance]) -> u32 {
        let number = match &self.answer {
            Some(answer) => {
                let is_listed = |one: &&Launched| listed.iter().any(|i| i.id == one.id);
                return count(answer.iter().filter(|one| !is_listed(one)).count());
            }
            None => listed.iter().filter(|i| i.launch == self.launch).count(),
        };
        self.count.saturating_sub(count(number))
    }

    /// The instances that EC2 answered with and does not list.
    pub fn promised<'a>(
        &'a self,
        listed: &'a [Instance],
    ) -> impl Iterator<Item = &'a Launched> + 'a {
        let answer = self.answer.iter().flatten();
        answer.filter(move |one| !listed.iter().any(|i| i.id == one.id))
    }

    /// Whether EC2 should list every instance of the launch by now. A deleted pool does not ask
    /// again, and waits less for an answer.
    pub fn is_overdue(&self, deleted: bool, now: Timestamp) -> bool {
        let limit = if deleted && self.answer.is_none() {
            UNANSWERED_LIMIT
        } else {
            UNSEEN_LIMIT
        };
        now.duration_since(self.decided_at) >= limit
    }
}

pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
