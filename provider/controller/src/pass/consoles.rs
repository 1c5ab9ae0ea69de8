//! The consoles of the pool's instances.

use std::collections::BTreeMap;
use std::time::Duration;

use api::pool::PoolInstance;
use provider_core::Instance;

use super::{Pass, left};
use crate::setup::{self, Shown};

impl Pass<'_> {
    /// What the consoles of instances say, by id, and asks for those that are to be read. Empty
    /// unless the spec wants it. `before` is the status that the last reconcile wrote.
    pub(super) fn consoles(
        &self,
        instances: &[Instance],
        before: &[PoolInstance],
    ) -> BTreeMap<String, Shown> {
        let is_wanted = self.pool.spec.for_provider.read_console && !self.deleted;
        let instances = if is_wanted { instances } else { &[] };
        let uid = &self.identity.value;
        let read = self.region.consoles.of_pool(uid);
        let live = instances.iter().filter(|instance| instance.state.is_live());
        let shown = live.map(|instance| {
            let shown = setup::of(instance, read.get(&instance.id), before, self.now);
            (instance.id.clone(), shown)
        });
        let shown = shown.collect();
        let wanted = setup::wanted(instances, &shown);
        self.region.consoles.want(uid, wanted);
        shown
    }

    /// How long the provider still believes that every unfinished setup goes on.
    pub(super) fn until_doubt(
        &self,
        instances: &[Instance],
        shown: &BTreeMap<String, Shown>,
    ) -> Duration {
        let doubts = instances.iter().filter_map(|instance| {
            let doubted_from = setup::doubted_from(instance, shown.get(&instance.id)?)?;
            Some(left(doubted_from, self.now))
        });
        doubts.min().unwrap_or(Duration::MAX)
    }
}
