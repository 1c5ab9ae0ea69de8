//! The consoles of new instances, as far as the provider has read them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use provider_aws::Ec2Error;
use provider_core::{Console, ConsoleReading};
use tokio::sync::Notify;

/// The consoles that pools want to be read, and what was read.
#[derive(Debug, Default)]
pub struct Consoles {
    of_pools: Mutex<BTreeMap<String, Pool>>,
    wanted: Notify,
}

/// The instances of a pool by id.
type Pool = BTreeMap<String, Wanted>;

#[derive(Clone, Debug)]
struct Wanted {
    launched_at: Timestamp,
    read: Option<Read>,
}

/// What was read from a console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// When the provider read it last.
    pub at: Timestamp,
    /// What the console says, or why the provider cannot read it.
    pub console: Result<Console, Ec2Error>,
}

impl Wanted {
    fn reading(&self) -> ConsoleReading {
        ConsoleReading {
            launched_at: self.launched_at,
            read_at: self.read.as_ref().map(|read| read.at),
        }
    }
}

impl Consoles {
    /// What was read of the consoles of a pool, by instance id.
    pub fn of_pool(&self, pool_uid: &str) -> BTreeMap<String, Read> {
        let of_pools = self.lock();
        let pool = of_pools.get(pool_uid).into_iter().flatten();
        pool.filter_map(|(id, wanted)| Some((id.clone(), wanted.read.clone()?)))
            .collect()
    }

    /// Says which consoles of a pool are to be read: instance ids, each with the time of its launch.
    /// Others of the pool are no longer read.
    pub fn want(&self, pool_uid: &str, instances: BTreeMap<String, Timestamp>) {
        let mut of_pools = self.lock();
        let mut before = of_pools.remove(pool_uid).unwrap_or_default();
        let wanted = |(id, launched_at)| {
            let read = before.remove(&id).and_then(|wanted: Wanted| wanted.read);
            (id, Wanted { launched_at, read })
        };
        let pool: Pool = instances.into_iter().map(wanted).collect();
        if !pool.is_empty() {
            of_pools.insert(pool_uid.to_owned(), pool);
            self.wanted.notify_one();
        }
    }

    /// Forgets a pool that is gone.
    pub fn forget(&self, pool_uid: &str) {
        self.lock().remove(pool_uid);
    }

    /// Returns when a pool wants a console.
    pub async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// The console to read next, and when: pool UID and instance id.
    pub fn next(&self) -> Option<(Timestamp, String, String)> {
        let of_pools = self.lock();
        let of_pools = of_pools.iter();
        of_pools
            .flat_map(|(uid, pool)| pool.iter().map(move |(id, wanted)| (uid, id, wanted)))
            .filter_map(|(uid, id, wanted)| {
                Some((wanted.reading().next()?, uid.clone(), id.clone()))
            })
            .min()
    }

    /// Stores what was read. Returns whether it differs from what was read before.
    pub fn store(&self, pool_uid: &str, id: &str, read: Read) -> bool {
        let mut of_pools = self.lock();
        let pool = of_pools.get_mut(pool_uid);
        let Some(wanted) = pool.and_then(|pool| pool.get_mut(id)) else {
            return false;
        };
        let before = wanted.read.as_ref();
        let is_news = before.is_none_or(|before| before.console != read.console);
        wanted.read = Some(read);
        is_news
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Pool>> {
        self.of_pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).unwrap()
    }

    fn read(minute: i64) -> Read {
        Read {
            at: at(minute),
            console: Ok(Console::default()),
        }
    }

    fn instances(ids: &[&str]) -> BTreeMap<String, Timestamp> {
        ids.iter().map(|id| ((*id).to_owned(), at(0))).collect()
    }

    #[test]
    fn a_pool_at_rest_costs_no_call() {
        let consoles = Consoles::default();
        consoles.want("pool", instances(&["i-1"]));
        assert_eq!(consoles.next(), Some((at(0), "pool".into(), "i-1".into())));
        consoles.want("pool", instances(&[]));
        assert_eq!(consoles.next(), None);
        consoles.want("pool", instances(&["i-1"]));
        consoles.forget("pool");
        assert_eq!(consoles.next(), None);
    }

    #[test]
    fn the_console_that_has_waited_longest_is_read_next() {
        let consoles = Consoles::default();
        consoles.want("pool", instances(&["i-1", "i-2"]));
        assert!(consoles.store("pool", "i-1", read(1)));
        assert_eq!(consoles.next(), Some((at(0), "pool".into(), "i-2".into())));
        consoles.store("pool", "i-2", read(2));
        assert_eq!(consoles.next(), Some((at(2), "pool".into(), "i-1".into())));
    }

    #[test]
    fn a_pool_is_woken_by_news_only() {
        let consoles = Consoles::default();
        consoles.want("pool", instances(&["i-1"]));
        assert!(consoles.store("pool", "i-1", read(1)));
        assert!(!consoles.store("pool", "i-1", read(2)));
        consoles.want("pool", instances(&["i-1"]));
        assert_eq!(consoles.of_pool("pool").get("i-1"), Some(&read(2)));
        assert!(!consoles.store("pool", "i-2", read(3)), "it is gone");
    }
}
