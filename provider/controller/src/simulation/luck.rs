//! Random events in the life of a pool.

use std::collections::{BTreeMap, BTreeSet};

use api::home::HomeOnDelete;
use api::pool::{PoolInstance, PoolLaunch, PoolLeases};
use jiff::SignedDuration;
use memory_ec2::{Fault, Pace, RECLAIMED, Rule, SplitMix64};
use provider_core::{Market, NoticeKind, Offering};

use super::earth::{At, Earth, How, Shared, Stop};
use super::edits::edit;
use super::homes::with_home;
use super::invariants;
use super::ours::{CLUSTER, Collection as _, Instances as _, POOL_UID};
use super::provider::{Behind, Provider, Turn};
use super::store::Edit;
use super::world::{World, pool};
use crate::regions::TAG_KEYS;

/// An image that does not exist.
pub const GONE_IMAGE: &str = "ami-00000000000000000";
pub const GOOD_IMAGE: &str = "ami-0123456789abcdef0";
const OPERATIONS: [&str; 14] = [
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

/// A world with random events.
pub struct Luck {
    pub world: World,
    dice: SplitMix64,
    /// The second provider, which exists during an upgrade.
    second: Option<Provider>,
    /// The log of events, if the test prints it.
    pub log: Option<Vec<String>>,
}

impl Luck {
    pub fn new(seed: u64, is_logged: bool) -> Self {
        let mut dice = SplitMix64(seed);
        let mut pool = pool(2);
        if dice.percent(30) {
            let policies = [
                HomeOnDelete::Retain,
                HomeOnDelete::Delete,
                HomeOnDelete::Snapshot,
            ];
            pool = with_home(*dice.pick(&policies), dice.percent(50));
        } else {
            pool.spec.for_provider.leases = dice.percent(50).then(PoolLeases::default);
        }
        let world = World::with_seed(pool, dice.next());
        world.plant("nobodys", &[]);
        for (name, cluster, uid) in [
            ("other pool", CLUSTER, "other-uid"),
            ("other cluster", "other-cluster", POOL_UID),
        ] {
            world.plant(
                name,
                &[
                    (TAG_KEYS.cluster, cluster),
                    (TAG_KEYS.pool_uid, uid),
                    (TAG_KEYS.generation, "0"),
                    (TAG_KEYS.launch, "1"),
                ],
            );
        }
        world.earth.lock().cloud.pace = Pace {
            lists_instance: seconds(dice.below(60)),
            lists_group: seconds(dice.below(20)),
            lists_volume: seconds(dice.below(20)),
            boots: seconds(dice.below(60)),
        };
        Self {
            world,
            dice,
            second: None,
            log: is_logged.then(Vec::new),
        }
    }

    /// Makes one step: events happen, time passes, and a provider reconciles.
    pub fn step(&mut self) {
        for _ in 0..self.dice.below(3) {
            self.happen();
        }
        let pause = *self
            .dice
            .pick(&[0, 200, 1_000, 5_000, 15_000, 15_000, 60_000]);
        let pause = match self.dice.below(40) {
            0 => 7_200_000,
            1..=3 => 360_000,
            _ => pause,
        };
        let mut earth = self.world.earth.lock();
        earth.pass_time(SignedDuration::from_millis(pause));
        drop(earth);
        if self.dice.percent(10) {
            self.second = match self.second.take() {
                None => Some(Provider::new(&self.world.earth)),
                Some(_) => None,
            };
        }
        let turn = self.reconcile();
        self.report(turn);
    }

    fn report(&mut self, turn: Turn) {
        let Some(log) = &mut self.log else { return };
        let mut earth = self.world.earth.lock();
        let known = invariants::known(&earth);
        let instances = known.instances.iter().map(|i| {
            let PoolInstance {
                id, launch, state, ..
            } = i;
            format!("{id} launch {launch} {state}")
        });
        let launches = known.launches.iter().map(|l| {
            let PoolLaunch {
                launch,
                count,
                answer,
                ..
            } = l;
            format!("launch {launch} of {count} {answer:?}")
        });
        let shown: Vec<String> = instances.chain(launches).collect();
        let calls = std::mem::take(&mut earth.calls);
        log.push(format!(
            "{} {turn:?} after {calls:?}; shown: {shown:?} {:?}",
            earth.now, known.home
        ));
    }

    fn reconcile(&mut self) -> Turn {
        let behind = Behind {
            versions: *self.dice.pick(&[0, 0, 0, 1, 2]),
            looks: *self.dice.pick(&[0, 0, 0, 1, 2]),
        };
        let stop = self.dice.percent(35).then(|| Stop {
            at: At::Effect(usize::try_from(self.dice.below(10)).unwrap()),
            how: *self
                .dice
                .pick(&[How::DiesBefore, How::DiesAfter, How::Pauses]),
        });
        if let Some(log) = &mut self.log {
            log.push(format!("{stop:?} {behind:?}"));
        }
        let mut dice = self.dice.clone();
        let Self {
            world, second, log, ..
        } = self;
        let mut second = second.as_mut();
        if let Some(second) = second.take_if(|_| dice.percent(30)) {
            // It is the other provider's turn. If it crashes, it is not restarted.
            second.look(&world.earth);
            let (turn, _) = second.drive(&world.earth, behind, None, |_| {});
            self.dice = dice;
            return turn;
        }
        world.provider.look(&world.earth);
        let turn = world.reconcile(behind, stop, |earth| {
            meanwhile(earth, second, &mut dice, log.as_mut());
        });
        self.dice = dice;
        turn
    }

    fn happen(&mut self) {
        let mut earth = self.world.earth.lock();
        let what = happen(&mut earth, &mut self.dice, false);
        if let Some(log) = &mut self.log {
            log.push(format!("{} {what:?}", earth.now));
        }
    }

    /// Does what users would do in the end: they correct the spec, and perhaps delete the pool.
    pub fn mend(&mut self) {
        self.second = None;
        for edit in [
            Edit::Image(GOOD_IMAGE),
            Edit::Zones(None),
            Edit::Types(vec!["g4dn.xlarge".into()]),
        ] {
            self.world.edit(edit);
        }
        let pool = self.world.earth.lock().store.current().clone();
        let home = pool.spec.for_provider.home;
        if let Some(mut home) = home {
            // The message tells users to do this if an instance runs in another zone than its home.
            home.moves = true;
            self.world.edit(Edit::Home(home));
        }
        if !self.world.earth.lock().has_ended() {
            self.world.edit(Edit::EndsIn(None));
        }
        if self.dice.percent(30) {
            self.world.edit(Edit::Delete);
        }
        let mut earth = self.world.earth.lock();
        if earth.store.is_deleted() {
            // A deleted pool waits for its leases.
            let force = self.dice.percent(50);
            earth.end_leases(force);
        }
        drop(earth);
        if let Some(log) = &mut self.log {
            log.push("everything is mended".into());
        }
    }

    pub fn check(&self) -> Result<(), String> {
        let violations = &self.world.earth.lock().violations;
        if violations.is_empty() {
            Ok(())
        } else {
            Err(violations.join("; "))
        }
    }
}

/// Lets events happen while a provider is between two effects.
fn meanwhile(
    earth: &Shared,
    second: Option<&mut Provider>,
    dice: &mut SplitMix64,
    log: Option<&mut Vec<String>>,
) {
    let what = if let Some(second) = second {
        second.look(earth);
        let (turn, _) = second.drive(earth, Behind::default(), None, |_| {});
        What::SecondProvider(turn)
    } else {
        let mut earth = earth.lock();
        let what = happen(&mut earth, dice, true);
        earth.pass_time(seconds(dice.below(10)));
        what
    };
    if let Some(log) = log {
        log.push(format!("meanwhile {what:?}"));
    }
}

/// An event, for the log.
#[derive(Debug)]
#[allow(dead_code, reason = "the fields are read by Debug alone")]
enum What {
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
fn happen(earth: &mut Earth, dice: &mut SplitMix64, is_amid: bool) -> What {
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
        12..=13 => {
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

fn seconds(number: u64) -> SignedDuration {
    SignedDuration::from_secs(i64::try_from(number).unwrap())
}
