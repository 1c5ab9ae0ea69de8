//! Rules that must hold at every moment.

use std::collections::BTreeSet;

use api::pool::SpotPoolObservation;
use jiff::SignedDuration;
use memory_ec2::{Machine, canonical};
use provider_aws::{LaunchRequest, TemplateRequest};
use provider_core::GroupRules;

use super::earth::Earth;
use super::ours::{Collection as _, Instances as _, OfLaunch as _, Tagged as _, is_ours};
use super::storage;

/// The pool's resources in EC2 according to the stored status.
pub fn known(earth: &Earth) -> SpotPoolObservation {
    let status = earth.store.current().status.clone();
    status.unwrap_or_default().at_provider
}

/// Checks instances that EC2 just launched.
pub fn check_births(earth: &mut Earth, request: &LaunchRequest, born: &[usize]) {
    let known = known(earth);
    for index in born {
        let machine = &earth.cloud.machines[*index];
        let (id, launch) = (machine.id.clone(), machine.launch());
        let mut wrong = Vec::new();
        if !machine.is_ours() {
            wrong.push("lacks the pool's tags".to_owned());
        }
        let intended = known.launches.iter().find(|l| l.launch == launch);
        if !intended.is_some_and(|l| u32::try_from(l.count) == Ok(request.count)) {
            wrong.push(format!("launch {launch} was not persisted"));
        }
        let others = earth.cloud.machines.iter().zip(0..);
        let mut others = others.filter(|(m, at)| m.is_ours() && !born.contains(at));
        if others.any(|(m, _)| m.launch() == launch) {
            wrong.push(format!("launch {launch} was used before"));
        }
        let ours = |id: &String| earth.cloud.firewall.ours().any(|g| g.id == *id);
        if machine.group_ids.is_empty() || !machine.group_ids.iter().all(ours) {
            wrong.push("is not in the pool's own group".to_owned());
        }
        for what in wrong {
            earth.violate(format!("launched {id}: {what}"));
        }
    }
    let (live, maximum) = (staying(earth), earth.store.promised_maximum);
    if !born.is_empty() && live > maximum {
        earth.violate(format!("{live} live instances, {maximum} allowed"));
    }
}

/// The number of live instances, without those that AWS has announced to reclaim.
fn staying(earth: &Earth) -> i32 {
    let live = earth.cloud.live().into_iter();
    i32::try_from(live.filter(|m| m.ends_at.is_none()).count()).unwrap()
}

/// Checks a launch template that is created: the status must name it, so that it can be deleted.
pub fn check_template(earth: &mut Earth, request: &TemplateRequest) {
    let known = known(earth).launch_templates;
    if !known.iter().any(|one| request.name.ends_with(one)) {
        earth.violate(format!("{} was not persisted", request.name));
    }
}

/// Checks a status that was written: its promises and the live instances must be within bounds.
pub fn check_promises(earth: &mut Earth) {
    let [.., before, _] = &earth.store.versions[..] else {
        return;
    };
    let before = before.status.clone().unwrap_or_default().at_provider;
    let after = known(earth);
    let numbers = |o: &SpotPoolObservation| -> BTreeSet<i64> {
        o.launches.iter().map(|l| l.launch).collect()
    };
    if numbers(&after).is_subset(&numbers(&before)) {
        return;
    }
    // The instances of an answered launch exist, and are counted if they live.
    let unanswered = after.launches.iter().filter(|l| l.answer.is_none());
    let promised = unanswered.map(|l| {
        let born = earth.cloud.ours().filter(|m| m.launch() == l.launch);
        (l.count - i32::try_from(born.count()).unwrap()).max(0)
    });
    let all = promised.sum::<i32>() + staying(earth);
    let maximum = earth.store.promised_maximum;
    if all > maximum {
        let live: Vec<_> = earth.cloud.live().iter().map(|m| m.id.clone()).collect();
        let launches = &after.launches;
        earth.violate(format!(
            "{all} are promised, {maximum} are allowed: {launches:?} and {live:?}"
        ));
    }
}

/// Checks that a terminated instance is not one that AWS is reclaiming according to the stored
/// status. A status that another provider wrote at the same moment does not count, because this
/// provider cannot know it.
pub fn check_end(earth: &mut Earth, id: &str) {
    let versions = earth.store.versions.iter().zip(&earth.store.since);
    let mut settled = versions.rev().filter(|(_, since)| **since < earth.now);
    let known = settled.next().and_then(|(pool, _)| pool.status.clone());
    let known = known.unwrap_or_default().at_provider.instances;
    let notice = known.into_iter().find(|i| i.id == id);
    let notice = notice.and_then(|i| i.notice);
    let is_taken = notice.is_some_and(|notice| {
        notice.kind == "Interruption"
            && earth.now.duration_since(notice.at.0) < SignedDuration::from_mins(4)
    });
    if is_taken {
        earth.violate(format!("{id} is terminated while AWS takes it back"));
    }
}

/// Checks a released pool: nothing of it may be left.
pub fn check_release(earth: &mut Earth) {
    if !earth.store.is_deleted() {
        earth.violate("a pool that nobody deleted was released");
    }
    for what in remains(earth) {
        earth.violate(format!("released with {what}"));
    }
    storage::check_release(earth);
}

/// The resources that are left of the pool.
pub fn remains(earth: &Earth) -> Vec<String> {
    let machines = earth.cloud.live();
    let machines = machines.iter().map(|m| m.id.clone());
    let groups = earth.cloud.firewall.ours().map(|g| g.id.clone());
    let templates = earth.cloud.templates.values();
    let templates = templates
        .filter(|t| is_ours(&t.tags))
        .map(|t| t.name.clone());
    machines.chain(groups).chain(templates).collect()
}

/// Checks a group that is changed or deleted.
pub fn check_group(earth: &mut Earth, id: &str) {
    let groups = &earth.cloud.firewall.groups;
    if groups
        .iter()
        .any(|g| g.id == id && !earth.may_change(g.tags()))
    {
        earth.violate(format!("{id} is not the pool's to change"));
    }
}

/// Checks added rules: they may only let in networks and groups that some version of the spec names.
pub fn check_opening(earth: &mut Earth, rules: &GroupRules) {
    let pools = earth.store.versions.iter();
    let ssh = pools.filter_map(|p| p.spec.for_provider.ssh.as_ref());
    let cidrs = ssh.clone().flat_map(|ssh| &ssh.allowed_cidrs);
    let cidrs = cidrs.map(|cidr| canonical(cidr));
    let groups = ssh.flat_map(|ssh| &ssh.allowed_security_group_ids);
    let named: BTreeSet<String> = cidrs.chain(groups.cloned()).collect();
    let mut opened = rules.ssh_cidrs.iter().chain(&rules.ssh_groups);
    let unnamed = opened.find(|source| !named.contains(*source));
    if let Some(source) = unnamed.cloned() {
        earth.violate(format!("opened a group to {source}"));
    }
}

/// Checks the state between two reconciles, and after a crash: every live resource must be found
/// again, by the stored status or by its tags in EC2's lists.
pub fn check_known(earth: &mut Earth) {
    let known = known(earth);
    let intended = |m: &&Machine| {
        known.launches.iter().any(|l| l.launch == m.launch())
            || known.instances.iter().any(|i| i.id == m.id)
    };
    let lost = earth
        .cloud
        .live()
        .into_iter()
        .find(|m| !m.is_listed(earth.now) && !intended(m) && earth.store.released_at.is_none());
    if let Some(id) = lost.map(|m| m.id.clone()) {
        earth.violate(format!("{id} runs and nobody knows"));
    }
}
