//! Two pools of one provider: what happens to one pool changes nothing of the other one.
//!
//! The pools have one configuration, two configurations of one account, or two configurations of two
//! accounts. Two accounts stand for two regions, too: their EC2 has nothing in common. In the random
//! schedules, the rules of `schedules` hold for both pools. To change what belongs to the other pool
//! violates them.

use std::iter::StepBy;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use api::home::HomeOnDelete;
use api::pool::SpotPool;
use memory_ec2::SplitMix64;
use provider_aws::Event;

use super::homes::with_home;
use super::lending::Lending;
use super::luck::Luck;
use super::ours::{ACCOUNT, Instances as _, POOL_UID, put_under_test};
use super::provider::Provider;
use super::schedules::Seeds;
use super::store::{Edit, Store};
use super::world::{World, pool, size};
use super::{accounts, leases};

const SCHEDULES: u64 = 150;
const ALL_SCHEDULES: u64 = 300;
const STEPS: u64 = 40;

/// The second pool.
const SECOND_UID: &str = "second-pool-uid";
/// The account of the second pool, if it is another one.
const SECOND_ACCOUNT: &str = "333333333333";
/// The leases of the second pool have higher numbers than this.
const LEASES_OF_FIRST: usize = 1_000;

/// What the configurations of the pools have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Configurations {
    /// Both pools use one configuration.
    Same,
    /// There are two, with credentials of one account.
    OfOneAccount,
    /// There are two, with credentials of different accounts.
    OfTwoAccounts,
}

const ALL: [Configurations; 3] = [
    Configurations::Same,
    Configurations::OfOneAccount,
    Configurations::OfTwoAccounts,
];

/// The pool whose turn it is not.
struct Neighbour {
    configurations: Configurations,
    uid: &'static str,
    account: &'static str,
    store: Store,
    lending: Lending,
    /// The instances that had the pool's home.
    written: Vec<String>,
    /// The events of this pool's account that its provider has not read yet.
    queue: Vec<Event>,
    provider: Provider,
}

impl Neighbour {
    /// Puts a second pool into the world.
    fn join(world: &mut World, mut second: SpotPool, configurations: Configurations) -> Self {
        second.metadata.name = Some("bob".into());
        second.metadata.uid = Some(SECOND_UID.into());
        let account = match configurations {
            Configurations::OfTwoAccounts => SECOND_ACCOUNT,
            Configurations::Same | Configurations::OfOneAccount => ACCOUNT,
        };
        let mut second = Self {
            configurations,
            uid: SECOND_UID,
            account,
            store: Store::new(second),
            lending: Lending::after(LEASES_OF_FIRST),
            written: Vec::new(),
            queue: Vec::new(),
            provider: Provider::new(&world.earth),
        };
        second.restart(world);
        second
    }

    /// Gives this pool the turn. The other pool is the neighbour then.
    fn swap(&mut self, world: &mut World) {
        let mut earth = world.earth.lock();
        std::mem::swap(&mut earth.store, &mut self.store);
        std::mem::swap(&mut earth.lending, &mut self.lending);
        std::mem::swap(&mut earth.written, &mut self.written);
        if self.configurations == Configurations::OfTwoAccounts {
            std::mem::swap(&mut earth.queue, &mut self.queue);
        }
        self.account = earth.enter(self.account);
        drop(earth);
        self.uid = put_under_test(self.uid);
        std::mem::swap(&mut world.provider, &mut self.provider);
    }

    /// Gives this pool the provider of a process that has just started.
    fn restart(&mut self, world: &mut World) {
        self.swap(world);
        let (earth, other) = (&world.earth, &self.provider);
        let account = earth.lock().account;
        world.provider = match self.configurations {
            Configurations::Same => Provider::beside(earth, other),
            Configurations::OfOneAccount => Provider::sharing(earth, account, other.share()),
            Configurations::OfTwoAccounts => Provider::signed_for(earth, account),
        };
        self.swap(world);
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        put_under_test(POOL_UID);
    }
}

/// A world at rest with two pools of two instances.
fn two_pools(configurations: Configurations) -> (World, Neighbour) {
    let mut world = World::new(pool(2));
    let mut neighbour = Neighbour::join(&mut world, pool(2), configurations);
    settle(&mut world, &mut neighbour);
    (world, neighbour)
}

/// Lets each pool come to rest.
fn settle(world: &mut World, neighbour: &mut Neighbour) {
    for _ in 0..2 {
        world.settle().unwrap();
        neighbour.swap(world);
    }
    world.assert_lawful();
}

/// Lets both pools work for this long.
fn work_for(world: &mut World, neighbour: &mut Neighbour, seconds: i64) {
    for _ in 0..seconds {
        for _ in 0..2 {
            world.turn();
            neighbour.swap(world);
        }
        world.wait(1);
    }
}

/// The ids of the pool's live instances.
fn live(world: &World) -> Vec<String> {
    let earth = world.earth.lock();
    earth.cloud.live().iter().map(|m| m.id.clone()).collect()
}

#[test]
fn the_deletion_of_a_pool_ends_nothing_of_its_neighbour() {
    for configurations in ALL {
        let (mut world, mut neighbour) = two_pools(configurations);
        world.edit(Edit::Delete);
        work_for(&mut world, &mut neighbour, 180);
        assert!(world.earth.lock().store.released_at.is_some());
        assert_eq!(live(&world), [""; 0]);
        neighbour.swap(&mut world);
        assert_eq!(live(&world).len(), 2, "{configurations:?}");
        world.settle().unwrap();
        world.assert_lawful();
    }
}

/// EC2 terminates no instance in a call that names a protected one.
#[test]
fn an_instance_that_cannot_end_keeps_no_instance_of_the_neighbour_running() {
    for configurations in ALL {
        let (mut world, mut neighbour) = two_pools(configurations);
        let protected = live(&world).remove(0);
        world.earth.lock().cloud.machine(&protected).is_protected = true;
        for _ in 0..2 {
            world.edit(Edit::Size(size(0)));
            neighbour.swap(&mut world);
        }
        work_for(&mut world, &mut neighbour, 60);
        assert_eq!(live(&world), [protected], "{configurations:?}");
        neighbour.swap(&mut world);
        assert_eq!(live(&world), [""; 0], "{configurations:?}");
        world.assert_lawful();
    }
}

#[test]
fn an_offering_without_capacity_is_unavailable_for_the_neighbours_in_its_account_only() {
    for configurations in ALL {
        let (mut world, mut neighbour) = two_pools(configurations);
        world.earth.lock().faults.most_each = Some(0);
        world.edit(Edit::Size(size(3)));
        world.work_for(60);
        world.earth.lock().faults.end();
        neighbour.swap(&mut world);
        let calls = world.earth.lock().calls_of("CreateFleet");
        world.edit(Edit::Size(size(3)));
        world.work_for(30);
        let asked = world.earth.lock().calls_of("CreateFleet") > calls;
        let is_apart = configurations == Configurations::OfTwoAccounts;
        assert_eq!(asked, is_apart, "{configurations:?}");
        settle(&mut world, &mut neighbour);
    }
}

/// A random schedule.
struct Schedule {
    luck: Luck,
    neighbour: Neighbour,
    dice: SplitMix64,
}

impl Schedule {
    fn new(seed: u64, is_logged: bool) -> Self {
        let mut luck = Luck::new(seed, is_logged);
        let mut dice = SplitMix64(!seed);
        let second = match dice.below(3) {
            0 => leases::warm(3),
            1 => with_home(HomeOnDelete::Retain, dice.percent(50)),
            _ => pool(2),
        };
        let configurations = *dice.pick(&ALL);
        Self {
            neighbour: Neighbour::join(&mut luck.world, second, configurations),
            luck,
            dice,
        }
    }

    fn play(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            self.step();
            self.check()?;
        }
        for _ in 0..2 {
            self.luck.mend();
            // Earlier calls used EC2's burst.
            self.luck.world.wait(10);
            let settled = self.luck.world.settle();
            self.check()?;
            settled?;
            self.swap();
        }
        Ok(())
    }

    /// One of the pools has its turn. If its provider crashes, the other pool's provider is lost
    /// with it.
    fn step(&mut self) {
        if self.dice.percent(50) {
            self.swap();
        }
        let process = self.luck.world.provider.process();
        self.luck.step();
        if !Arc::ptr_eq(&process, &self.luck.world.provider.process()) {
            self.neighbour.restart(&mut self.luck.world);
        }
    }

    /// Gives the other pool the turn. A provider that exists during an upgrade is for one pool.
    fn swap(&mut self) {
        self.luck.second = None;
        self.neighbour.swap(&mut self.luck.world);
        if let Some(log) = &mut self.luck.log {
            log.push("it is the other pool's turn".into());
        }
    }

    fn check(&self) -> Result<(), String> {
        let earth = self.luck.world.earth.lock();
        let strange = earth.other_accounts.iter();
        let mut strange = strange.filter(|(account, _)| **account != self.neighbour.account);
        if strange.any(|(_, cloud)| accounts::has_resources(cloud)) {
            return Err("something was created in another account".into());
        }
        match &earth.violations[..] {
            [] => Ok(()),
            violations => Err(violations.join("; ")),
        }
    }
}

fn play_all(seeds: StepBy<Range<u64>>) {
    for seed in seeds {
        let played = Schedule::new(seed, false).play();
        if let Err(what) = played {
            let mut again = Schedule::new(seed, true);
            drop(again.play());
            let log = again.luck.log.take().unwrap_or_default().join("\n");
            let configurations = again.neighbour.configurations;
            panic!("{log}\n{configurations:?} SIMULATION_SEED={seed}: {what}");
        }
    }
}

#[test]
fn whatever_happens_to_two_pools_each_rests_and_has_only_what_is_its_own() {
    let seeds = Seeds::of(SCHEDULES, ALL_SCHEDULES);
    let begun = Instant::now();
    seeds.play(play_all);
    println!("{seeds:?} in {:.1?}", begun.elapsed());
}
