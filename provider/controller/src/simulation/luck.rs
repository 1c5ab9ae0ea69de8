//! Random events in the life of a pool.

use api::home::HomeOnDelete;
use api::pool::{PoolInstance, PoolLaunch, PoolLeases};
use jiff::SignedDuration;
use memory_ec2::{Pace, SplitMix64};

use super::accounts;
use super::earth::{At, How, Shared, Stop};
use super::events::{What, happen};
use super::homes::with_home;
use super::invariants;
use super::ours::{CLUSTER, POOL_UID};
use super::provider::{Behind, Provider, Turn};
use super::store::Edit;
use super::world::{World, pool};
use crate::regions::TAG_KEYS;

/// An image that does not exist.
pub const GONE_IMAGE: &str = "ami-00000000000000000";
pub const GOOD_IMAGE: &str = "ami-0123456789abcdef0";
/// Another image that exists.
pub const OTHER_IMAGE: &str = "ami-0fedcba9876543210";

/// A world with random events.
pub struct Luck {
    pub world: World,
    dice: SplitMix64,
    /// The second provider, which exists during an upgrade.
    pub second: Option<Provider>,
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
                None => Some(self.another_provider()),
                Some(_) => None,
            };
        }
        let turn = self.reconcile();
        self.report(turn);
    }

    /// A second provider. It may have credentials of another account once the pool has something
    /// that binds it to its own.
    fn another_provider(&mut self) -> Provider {
        let known = self.world.observation();
        let is_bound = known.account.is_some() && known.security_group_id.is_some();
        let own = self.world.earth.lock().account;
        let account = if is_bound && self.dice.percent(20) {
            accounts::OTHER
        } else {
            own
        };
        if let Some(log) = &mut self.log {
            log.push(format!(
                "a second provider begins, with the account {account}"
            ));
        }
        Provider::signed_for(&self.world.earth, account)
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
            "{} {turn:?} after {calls:?}; shown: {shown:?} {:?} {:?} in {:?}",
            earth.now, known.home, known.security_group_id, known.account
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
            if let Some(log) = log {
                log.push("the second provider's turn".into());
            }
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
        let earth = self.world.earth.lock();
        if earth.other_accounts.values().any(accounts::has_resources) {
            return Err("something was created in another account".into());
        }
        let violations = &earth.violations;
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

fn seconds(number: u64) -> SignedDuration {
    SignedDuration::from_secs(i64::try_from(number).unwrap())
}
