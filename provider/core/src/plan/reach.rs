//! Waits for instances that the provider cannot reach.

use super::Wait;
use crate::Observed;

/// The waits for the live instances that lack the pool's tags, and for those that EC2 does not show.
pub(super) fn waits(observed: &Observed) -> Vec<Wait> {
    let live = observed.instances.iter().filter(|i| i.state.is_live());
    let ids: Vec<String> = live.map(|i| i.id.clone()).collect();
    let untagged = ids.iter().filter(|id| observed.untagged.contains(*id));
    let untagged: Vec<String> = untagged.cloned().collect();
    let is_missing = |id: &&String| observed.missing_since.contains_key(*id);
    let missing: Vec<String> = ids.iter().filter(is_missing).cloned().collect();
    let waits = [
        Wait::Untagged { ids: untagged },
        Wait::Missing { ids: missing },
    ];
    let names_some = |wait: &Wait| match wait {
        Wait::Untagged { ids } | Wait::Missing { ids } => !ids.is_empty(),
        _ => true,
    };
    waits.into_iter().filter(names_some).collect()
}
