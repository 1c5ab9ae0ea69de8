//! The plan that writes the pool's public keys to the tags of its instances. sshd on an instance
//! accepts these keys.

use std::collections::BTreeMap;

use super::Action;
use crate::{Desired, Instance, Observed};

/// Writes the tags of live instances that differ from the desired ones. The provider may not remove
/// tags, so a tag without a key becomes empty.
pub(super) fn plan(desired: &Desired, observed: &Observed) -> Vec<Action> {
    let Some(wanted) = &desired.authorized_keys else {
        return Vec::new();
    };
    let live = observed.instances.iter().filter(|i| i.state.is_live());
    let live = live.filter(|i| !observed.is_out_of_reach(&i.id));
    let changed = live.map(|instance| (instance, changes(instance, wanted)));
    changed
        .filter(|(_, tags)| !tags.is_empty())
        .map(|(instance, tags)| Action::Authorize {
            instance_id: instance.id.clone(),
            tags,
        })
        .collect()
}

fn changes(instance: &Instance, wanted: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let has = &instance.authorized_keys;
    let added = wanted
        .iter()
        .filter(|(tag, key)| has.get(*tag) != Some(*key));
    let added = added.map(|(tag, key)| (tag.clone(), key.clone()));
    let removed = has.keys().filter(|tag| !wanted.contains_key(*tag));
    let removed = removed.map(|tag| (tag.clone(), String::new()));
    added.chain(removed).collect()
}
