//! Waits for instances that the provider cannot reach.

use super::Wait;
use crate::Observed;

/// The waits for the live instances that lack the pool's tags, and for those that EC2 does not show.
pub(super) fn waits(observed: &Observed) -> Vec<Wait> {
    let live = observed.instances.iter().filter(|i| i.state.is_live());
    let live: Vec<&String> = live.map(|i| &i.id).collect();
    let among = |is_it: &dyn Fn(&str) -> bool| -> Vec<String> {
        let ids = live.iter().filter(|id| is_it(id.as_str()));
        ids.map(|id| (*id).clone()).collect()
    };
    let mut waits = Vec::new();
    let ids = among(&|id| observed.untagged.contains(id));
    if !ids.is_empty() {
        waits.push(Wait::Untagged { ids });
    }
    let ids = among(&|id| observed.missing_since.contains_key(id));
    if !ids.is_empty() {
        waits.push(Wait::Missing { ids });
    }
    waits
}
