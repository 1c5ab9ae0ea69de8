//! A cache of facts about a region that hardly change.
//!
//! The provider makes one call at a time for each fact. Reconciles that need the same fact wait for
//! that answer, and reconciles that need another fact do not. The time is an argument, so that a
//! simulation can pass it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use provider_aws::Ec2Error;

use crate::locking::lock;

/// How long a fact is cached.
const LIFE: SignedDuration = SignedDuration::from_hours(1);
/// How long it is cached that there is no such thing. It may be created at any moment.
const LIFE_OF_NOTHING: SignedDuration = SignedDuration::from_mins(1);
/// How long an error answers all who wait for the fact. EC2 may take most of a minute to fail, and
/// they must not wait one after the other.
const LIFE_OF_ERROR: SignedDuration = SignedDuration::from_secs(1);
/// How long a fact serves that EC2 refuses to tell again.
const LIFE_WITHOUT_EC2: SignedDuration = SignedDuration::from_hours(24);

/// Facts by key.
#[derive(Debug)]
pub struct Facts<K, V>(Mutex<BTreeMap<K, Arc<Entry<V>>>>);

#[derive(Debug)]
struct Entry<V>(tokio::sync::Mutex<Known<V>>);

/// What is known about one key.
#[derive(Debug)]
struct Known<V> {
    value: Option<(V, Timestamp)>,
    error: Option<(Ec2Error, Timestamp)>,
}

/// A fact that may say that there is nothing.
pub trait Fact: Clone {
    /// Whether there is nothing.
    fn is_nothing(&self) -> bool;
}

impl<T: Clone> Fact for Option<T> {
    fn is_nothing(&self) -> bool {
        self.is_none()
    }
}

impl<T: Clone> Fact for Vec<T> {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl<K: Clone, T: Clone> Fact for BTreeMap<K, T> {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl<K, V> Default for Facts<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Fact> Facts<K, V> {
    /// The fact about `key`, from the cache or by `ask`.
    pub async fn get(
        &self,
        key: K,
        now: Timestamp,
        ask: impl Future<Output = Result<V, Ec2Error>>,
    ) -> Result<V, Ec2Error> {
        let entry = lock(&self.0).entry(key).or_default().clone();
        let mut known = entry.0.lock().await;
        if let Some(answer) = known.fresh(now) {
            return answer;
        }
        match ask.await {
            Ok(value) => {
                *known = Known {
                    value: Some((value.clone(), now)),
                    error: None,
                };
                Ok(value)
            }
            Err(error) => {
                known.error = Some((error.clone(), now));
                known.usable(now).ok_or(error)
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }
}

impl<V> Default for Entry<V> {
    fn default() -> Self {
        Self(tokio::sync::Mutex::new(Known {
            value: None,
            error: None,
        }))
    }
}

impl<V: Fact> Known<V> {
    /// The answer, if EC2 need not be asked.
    fn fresh(&self, now: Timestamp) -> Option<Result<V, Ec2Error>> {
        if let Some((error, since)) = &self.error
            && now.duration_since(*since) < LIFE_OF_ERROR
        {
            return Some(self.usable(now).ok_or_else(|| error.clone()));
        }
        let (value, since) = self.value.as_ref()?;
        let life = if value.is_nothing() {
            LIFE_OF_NOTHING
        } else {
            LIFE
        };
        (now.duration_since(*since) < life).then(|| Ok(value.clone()))
    }

    /// The value that serves while EC2 fails.
    fn usable(&self, now: Timestamp) -> Option<V> {
        let (value, since) = self.value.as_ref()?;
        let is_usable = !value.is_nothing() && now.duration_since(*since) < LIFE_WITHOUT_EC2;
        is_usable.then(|| value.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use futures::FutureExt as _;
    use memory_ec2::error;

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn later(duration: SignedDuration) -> Timestamp {
        NOW.saturating_add(duration).unwrap()
    }

    fn failed<T>() -> std::future::Ready<Result<T, Ec2Error>> {
        ready(Err(error("DescribeImages", "RequestLimitExceeded")))
    }

    /// Asks at a time, and panics if the answer does not come at once.
    fn get(
        facts: &Facts<&'static str, Option<u8>>,
        key: &'static str,
        now: Timestamp,
        ask: impl Future<Output = Result<Option<u8>, Ec2Error>>,
    ) -> Result<Option<u8>, Ec2Error> {
        facts.get(key, now, ask).now_or_never().unwrap()
    }

    #[test]
    fn a_call_that_hangs_delays_nobody_who_needs_another_fact() {
        let facts = Facts::default();
        let hangs = std::future::pending();
        let mut first = Box::pin(facts.get("a", NOW, hangs));
        assert!(first.as_mut().now_or_never().is_none());
        assert_eq!(get(&facts, "b", NOW, ready(Ok(Some(1)))).unwrap(), Some(1));
        let mut second =
            Box::pin(facts.get("a", NOW, async { unreachable!("one call at a time") }));
        assert!(second.as_mut().now_or_never().is_none());
    }

    #[test]
    fn those_who_waited_for_a_call_that_failed_do_not_call_one_after_the_other() {
        let facts = Facts::default();
        assert!(get(&facts, "a", NOW, failed()).is_err());
        let calls = async { unreachable!("the error is a moment old") };
        assert!(get(&facts, "a", NOW, calls).is_err());
        let then = later(LIFE_OF_ERROR);
        assert_eq!(get(&facts, "a", then, ready(Ok(Some(1)))).unwrap(), Some(1));
    }

    #[test]
    fn a_deregistered_image_of_many_pools_is_asked_for_once_a_minute() {
        let facts = Facts::default();
        assert_eq!(get(&facts, "a", NOW, ready(Ok(None))).unwrap(), None);
        let soon = later(SignedDuration::from_secs(59));
        let calls = async { unreachable!("it is known that there is none") };
        assert_eq!(get(&facts, "a", soon, calls).unwrap(), None);
        let then = later(LIFE_OF_NOTHING);
        assert_eq!(get(&facts, "a", then, ready(Ok(Some(1)))).unwrap(), Some(1));
    }

    #[test]
    fn a_known_fact_serves_while_ec2_fails_and_is_asked_for_again() {
        let facts = Facts::default();
        assert!(get(&facts, "a", NOW, ready(Ok(Some(1)))).is_ok());
        let old = later(LIFE);
        assert_eq!(get(&facts, "a", old, failed()).unwrap(), Some(1));
        let next = later(LIFE + LIFE_OF_ERROR);
        assert_eq!(get(&facts, "a", next, ready(Ok(Some(2)))).unwrap(), Some(2));
        let days_later = later(SignedDuration::from_hours(48));
        assert!(get(&facts, "a", days_later, failed()).is_err());
    }
}
