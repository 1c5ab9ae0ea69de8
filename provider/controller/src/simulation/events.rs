//! The random events in the life of a pool, apart from what providers do.

use std::collections::{BTreeMap, BTreeSet};

use memory_ec2::{Fault, RECLAIMED, Rule, SplitMix64};
use provider_core::{Market, NoticeKind, Offering};

use super::earth::Earth;
use super::edits::edit;
use super::ours::{Collection as _, Instances as _};
use super::provider::Turn;
use super::store::Edit;

const OPERATIONS: [&str; 15] = [
    "GetCallerIdentity",
    "DescribeVolumes",
    "DescribeSnapshots",
    "CreateVolume",
    "AttachVolume",
    "ModifyVolume",
    "DeleteVolume",
    "CreateSnapshot",
    "DeleteSnapshot",
    "CreateFleet",
    "DescribeInstances",
    "TerminateInstances",
    "CreateSecurityGroup",
    "AuthorizeSecurityGroupIngress",
    "DeleteSecurityGroup",
];

/// An event, for the log.
#[derive(Debug)]
#[allow(dead_code, reason = "the fields are read by Debug alone")]
pub enum What {
    Edited(Edit),
    NoCapacity(BTreeSet<Offering>),
    NoQuota(BTreeSet<Market>),
    MostEach(Option<u32>),
    Impaired(String, bool),
    Announced(String, NoticeKind),
    Unreachable(bool),
    Always(BTreeMap<&'static str, Fault>),
    Flicker(u64),
    Failing(u64),
    NoFaults,
    Widened(Rule),
    Reclaimed(String),
    Terminated(String),
    Stopped(String),
    GivenAway(String),
    SecondProvider(Turn),
    Asked(String),
    Ended(String),
    Nothing,
}

/// Lets one event happen to the pool. `is_amid` says that a provider is between two effects. Then
/// no instance changes its owner: the provider cannot prevent the termination of an instance whose
/// tags change after the describe, except by a condition on tags in IAM.
pub fn happen(earth: &mut Earth, dice: &mut SplitMix64, is_amid: bool) -> What {
    let roll = dice.below(100);
    if roll < 12 && earth.store.current().spec.for_provider.leases.is_some() {
        return lend(earth, dice);
    }
    if roll < 40 {
        let home = &earth.store.current().spec.for_provider.home;
        let edit = edit(home.as_ref(), earth.store.is_deleted(), dice);
        earth.store.edit(edit.clone(), earth.now);
        return What::Edited(edit);
    }
    if roll < 65 {
        return by_hand(earth, dice, is_amid);
    }
    let faults = &mut earth.faults;
    match roll {
        65..75 => {
            let offering = Offering {
                instance_type: (*dice.pick(&["g4dn.xlarge", "g5.xlarge"])).into(),
                zone: (*dice.pick(&["us-east-1a", "us-east-1b"])).into(),
                market: *dice.pick(&[Market::Spot, Market::Spot, Market::OnDemand]),
            };
            if !faults.no_capacity.remove(&offering) {
                faults.no_capacity.insert(offering);
            }
            What::NoCapacity(faults.no_capacity.clone())
        }
        75 => {
            faults.most_each = *dice.pick(&[None, Some(0), Some(1)]);
            What::MostEach(faults.most_each)
        }
        76..78 => {
            let market = *dice.pick(&[Market::Spot, Market::OnDemand]);
            if !faults.no_quota.remove(&market) {
                faults.no_quota.insert(market);
            }
            What::NoQuota(faults.no_quota.clone())
        }
        78..82 => {
            faults.is_unreachable = !faults.is_unreachable;
            What::Unreachable(faults.is_unreachable)
        }
        82..87 => {
            let operation = *dice.pick(&OPERATIONS);
            if faults.always.remove(operation).is_none() {
                let denied = Fault::Refused("UnauthorizedOperation");
                let fault = *dice.pick(&[denied, Fault::LostReply]);
                faults.always.insert(operation, fault);
            }
            What::Always(faults.always.clone())
        }
        87..90 => {
            faults.flicker = *dice.pick(&[0, 5]);
            What::Flicker(faults.flicker)
        }
        90..97 => {
            faults.percent = *dice.pick(&[0, 10, 40]);
            What::Failing(faults.percent)
        }
        _ => {
            faults.end();
            What::NoFaults
        }
    }
}

/// Somebody creates a lease, or deletes one.
fn lend(earth: &mut Earth, dice: &mut SplitMix64) -> What {
    let now = earth.now;
    let leases = earth.lending.current().iter();
    let leases: Vec<String> = leases.filter_map(|l| l.metadata.uid.clone()).collect();
    if !leases.is_empty() && dice.percent(50) {
        let uid = dice.pick::<String>(&leases).clone();
        earth.lending.end(&uid, now);
        earth.let_leases_go();
        return What::Ended(uid);
    }
    let pool = earth.store.current().clone();
    let lifetime = *dice.pick(&[None, None, Some(120), Some(3600)]);
    What::Asked(earth.lending.ask(&pool, lifetime, now))
}

/// AWS or a person changes an instance or the group.
fn by_hand(earth: &mut Earth, dice: &mut SplitMix64, is_amid: bool) -> What {
    let now = earth.now;
    let listed: Vec<String> = earth
        .cloud
        .live()
        .iter()
        .filter(|m| m.is_listed(now))
        .map(|m| m.id.clone())
        .collect();
    let groups: Vec<String> = earth.cloud.firewall.ours().map(|g| g.id.clone()).collect();
    let roll = dice.below(14);
    if let (0..=2, false) = (roll, groups.is_empty()) {
        let rule = dice
            .pick(&[Rule::Web, Rule::Ssh("0.0.0.0/0".into())])
            .clone();
        let group = dice.pick::<String>(&groups);
        earth.cloud.firewall.widen(group, rule.clone());
        return What::Widened(rule);
    }
    if listed.is_empty() {
        return What::Nothing;
    }
    let id = dice.pick(&listed).clone();
    match roll {
        3..=6 => {
            earth.cloud.end(&id, RECLAIMED, now);
            What::Reclaimed(id)
        }
        7..=8 => {
            earth.cloud.end(&id, "Client.UserInitiatedShutdown", now);
            What::Terminated(id)
        }
        9 => {
            earth.cloud.machine(&id).is_stopped = true;
            What::Stopped(id)
        }
        10 if !is_amid => {
            earth.give_away(&id);
            What::GivenAway(id)
        }
        12..=13 if earth.cloud.machine(&id).offering.market == Market::Spot => {
            let kinds = [NoticeKind::Interruption, NoticeKind::Rebalance];
            let kind = *dice.pick(&kinds);
            earth.announce(&id, kind);
            What::Announced(id, kind)
        }
        11 => {
            let machine = earth.cloud.machine(&id);
            machine.is_impaired = !machine.is_impaired;
            What::Impaired(id, machine.is_impaired)
        }
        _ => What::Nothing,
    }
}
