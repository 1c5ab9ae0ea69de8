//! What must hold at every moment.

use std::collections::BTreeSet;

use api::pool::SpotPoolObservation;
use provider_core::GroupRules;

use super::cloud::Machine;
use super::earth::Earth;

/// The pool in EC2, as the stored status has it.
pub fn known(earth: &Earth) -> SpotPoolObservation {
    let status = earth.store.current().status.clone();
    status.unwrap_or_default().at_provider
}

/// An instance came into being.
pub fn check_birth(earth: &mut Earth, index: usize) {
    let born = &earth.cloud.machines[index];
    let id = born.id.clone();
    let mut wrong = Vec::new();
    if !born.is_ours() {
        wrong.push("lacks the pool's tags".to_owned());
    }
    let intents = known(earth).launches;
    let intended = intents.iter().find(|l| l.launch == born.launch());
    if !intended.is_some_and(|l| u32::try_from(l.slot) == Ok(born.slot())) {
        wrong.push(format!("launch {} was not persisted", born.launch()));
    }
    let others = || earth.cloud.ours().filter(|m| m.id != id);
    if others().any(|m| m.launch() == born.launch()) {
        wrong.push(format!("launch {} was used before", born.launch()));
    }
    if let Some(m) = others().find(|m| m.is_live() && m.slot() == born.slot()) {
        wrong.push(format!("{} is in slot {} already", m.id, m.slot()));
    }
    let (live, maximum) = (earth.cloud.live().len(), earth.store.promised_maximum);
    if i32::try_from(live).unwrap() > maximum {
        wrong.push(format!("{live} live instances, {maximum} allowed"));
    }
    let ours = |id: &String| earth.cloud.firewall.ours().any(|g| g.id == *id);
    if born.request.group_ids.is_empty() || !born.request.group_ids.iter().all(ours) {
        wrong.push("is not in the pool's own group".to_owned());
    }
    for what in wrong {
        earth.violate(format!("launched {id}: {what}"));
    }
}

/// A status was written: what it promises and what lives is within bounds.
pub fn check_promises(earth: &mut Earth) {
    let [.., before, _] = &earth.store.versions[..] else {
        return;
    };
    let before = before.status.clone().unwrap_or_default().at_provider;
    let after = known(earth);
    let numbers = |o: &SpotPoolObservation| -> BTreeSet<i64> {
        o.launches.iter().map(|l| l.launch).collect()
    };
    let mut promised = numbers(&after);
    if promised.is_subset(&numbers(&before)) {
        return;
    }
    promised.extend(earth.cloud.live().iter().map(|m| m.launch()));
    let maximum = earth.store.promised_maximum;
    if i32::try_from(promised.len()).unwrap() > maximum {
        earth.violate(format!("{promised:?} are promised, {maximum} are allowed"));
    }
}

/// The finalizer went: nothing of the pool may be left.
pub fn check_release(earth: &mut Earth) {
    if !earth.store.is_deleted() {
        earth.violate("a pool that nobody deleted was released");
    }
    for what in remains(earth) {
        earth.violate(format!("released with {what}"));
    }
}

/// What is left of the pool.
pub fn remains(earth: &Earth) -> Vec<String> {
    let machines = earth.cloud.live();
    let machines = machines.iter().map(|m| m.id.clone());
    let groups = earth.cloud.firewall.ours().map(|g| g.id.clone());
    machines.chain(groups).collect()
}

/// A group is changed or deleted.
pub fn check_group(earth: &mut Earth, id: &str) {
    let groups = &earth.cloud.firewall.groups;
    if groups.iter().any(|g| g.id == id && !g.is_ours()) {
        earth.violate(format!("{id} is not the pool's to change"));
    }
}

/// A group is opened: only to those whom some version of the spec names.
pub fn check_opening(earth: &mut Earth, rules: &GroupRules) {
    let pools = earth.store.versions.iter();
    let ssh = pools.filter_map(|p| p.spec.for_provider.ssh.as_ref());
    let named: BTreeSet<&String> = ssh.flat_map(|ssh| &ssh.allowed_cidrs).collect();
    let unnamed = rules.ssh_cidrs.iter().find(|cidr| !named.contains(cidr));
    if let Some(cidr) = unnamed.cloned() {
        earth.violate(format!("opened a group to {cidr}"));
    }
}

/// Between two reconciles, and after a crash: whatever lives is found again, by
/// the stored status or by its tags in EC2's lists.
pub fn check_known(earth: &mut Earth) {
    let known = known(earth);
    let intended = |m: &&Machine| known.launches.iter().any(|l| l.launch == m.launch());
    let lost = earth
        .cloud
        .live()
        .into_iter()
        .find(|m| !m.is_listed(earth.now) && !intended(m) && earth.store.released_at.is_none());
    if let Some(id) = lost.map(|m| m.id.clone()) {
        earth.violate(format!("{id} runs and nobody knows"));
    }
    let ours: Vec<&Machine> = earth.cloud.live();
    let slots: BTreeSet<u32> = ours.iter().map(|m| m.slot()).collect();
    if slots.len() != ours.len() {
        earth.violate("two live instances share a slot");
    }
}
