//! A launch: what EC2 is asked for, once.

use jiff::{SignedDuration, Timestamp};

use crate::{Instance, Offering};

/// How long after the last call an instance may stay out of EC2's lists before
/// the launch counts as failed, whatever EC2 answered. EC2 is eventually
/// consistent: a describe right after a launch may not show the instance,
/// commonly for seconds, at worst for minutes.
const UNSEEN_LIMIT: SignedDuration = SignedDuration::from_mins(5);
/// How long after the last call a launch with no answer keeps its pool from
/// being released.
const UNANSWERED_LIMIT: SignedDuration = SignedDuration::from_mins(2);

/// A launch that was decided on. It is persisted before EC2 is called, whole: only
/// the same request may be repeated with the same token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its number, unique within the pool.
    pub launch: u64,
    /// How many instances.
    pub count: u32,
    /// The launch template.
    pub generation: String,
    /// What AWS may choose from, all of one market.
    pub offerings: Vec<Offering>,
    /// When EC2 was last asked for it, or is about to be.
    pub decided_at: Timestamp,
    /// EC2's answer, while an instance of it is not listed yet. Fewer than asked
    /// for: the rest was refused.
    pub answer: Option<Vec<Launched>>,
}

/// One instance that EC2 answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// EC2's id.
    pub id: String,
    /// What was granted.
    pub offering: Offering,
}

impl Launch {
    /// How many of its instances exist, or may exist, beside the listed ones.
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

    /// The instances that EC2 promised and does not list.
    pub fn promised<'a>(
        &'a self,
        listed: &'a [Instance],
    ) -> impl Iterator<Item = &'a Launched> + 'a {
        let answer = self.answer.iter().flatten();
        answer.filter(move |one| !listed.iter().any(|i| i.id == one.id))
    }

    /// Whether EC2 should list every instance by now, if there were one. A deleted
    /// pool asks for nothing any more and waits less for an answer.
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
