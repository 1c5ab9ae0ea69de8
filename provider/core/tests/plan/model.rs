//! A test that goes through every small pool. It checks that a plan keeps the pool's size within
//! its bounds, terminates only the pool's own instances and respects leases. It also checks that
//! nothing is left to do after EC2 has carried out the plans. Pools have up to two instances, and
//! up to three if the environment variable `THOROUGH` is set.

use super::world::{DIGEST, NOW, World, desired, instance, launch, lease, notice};
use jiff::SignedDuration;
use provider_core::{
    Desired, Instance, InstanceState, Market, NoticeKind, Rebalance, Replace, Size,
};

/// The states that an instance can have.
const KINDS: [&str; 16] = [
    "none",
    "pending",
    "running",
    "stopped",
    "shutting-down",
    "terminated",
    "on-demand",
    "drifted",
    "other-image",
    "impaired",
    "rebalance",
    "interrupted",
    "leased",
    "promised",
    "lease-over",
    "orphaned",
];
/// The numbers of open launches, and whether EC2 has answered them.
const OPEN: [(u64, bool); 4] = [(0, false), (1, false), (1, true), (2, false)];

#[test]
fn every_small_pool_reaches_its_size_and_then_rests() {
    let is_thorough = std::env::var_os("THOROUGH").is_some();
    let instances = if is_thorough { 3 } else { 2 };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let checked: u32 = std::thread::scope(|scope| {
        let share = |n: usize| {
            combinations(instances)
                .skip(n)
                .step_by(threads)
                .map(check)
                .sum::<u32>()
        };
        let workers: Vec<_> = (0..threads)
            .map(|n| scope.spawn(move || share(n)))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum()
    });
    println!("{checked} pools");
    let least = if is_thorough { 250_000 } else { 50_000 };
    assert!(checked > least, "{checked} pools are not all of them");
}

/// Checks every pool of these instances, and returns how many pools there are.
fn check(kinds: [usize; 3]) -> u32 {
    let mut checked = 0;
    let disrupted = everything_is_replaced();
    let at_once = Replace {
        at_once: 2,
        ..disrupted
    };
    for open in OPEN {
        for size in sizes() {
            for (waiting, replace) in [0, 1]
                .into_iter()
                .flat_map(|waiting| [Replace::default(), disrupted, at_once].map(|r| (waiting, r)))
            {
                checked += u32::from(run(kinds, open, size, waiting, replace));
            }
        }
        for force in [false, true] {
            let (mut world, mut desired) = pool(kinds, open);
            desired.deleted = true;
            desired.force = force;
            world.run_to_rest(&desired);
            checked += 1;
        }
    }
    checked
}

fn everything_is_replaced() -> Replace {
    Replace {
        drifted: true,
        not_set_up: true,
        other_image: true,
        impaired: true,
        rebalance: Rebalance::Replace,
        on_demand_after: Some(SignedDuration::from_mins(10)),
        at_once: 1,
    }
}

fn run(kinds: [usize; 3], open: (u64, bool), size: Size, waiting: usize, replace: Replace) -> bool {
    let (mut world, mut desired) = pool(kinds, open);
    desired.size = size;
    desired.replace = replace;
    // These leases have no instance yet.
    desired
        .leases
        .extend((0..waiting).map(|n| lease(&format!("waiting-{n}"), false)));
    let leases = desired.open_leases().count();
    let orphans = kinds
        .iter()
        .filter(|kind| KINDS[**kind] == "orphaned")
        .count();
    if leases + orphans > usize::try_from(size.maximum).unwrap() {
        // The maximum is too small for an instance of each lease beside the orphaned instances.
        return false;
    }
    world.run_to_rest(&desired);
    let bound = desired
        .open_leases()
        .filter(|l| world.observed.bindings.contains_key(&l.uid));
    assert_eq!(
        bound.count(),
        leases,
        "a lease without an instance: {:?}",
        world.observed
    );
    true
}

/// Every combination of kinds for up to this many instances. Their order does not matter.
fn combinations(instances: usize) -> impl Iterator<Item = [usize; 3]> {
    // The kind 0 is `none`. If the first kind is always 0, at most two instances are left.
    let first = if instances < 3 { 1 } else { KINDS.len() };
    (0..first)
        .flat_map(|a| (a..KINDS.len()).flat_map(move |b| (b..KINDS.len()).map(move |c| [a, b, c])))
}

fn sizes() -> impl Iterator<Item = Size> {
    let bounds =
        (0..4_u32).flat_map(|maximum| (0..=maximum).map(move |minimum| (minimum, maximum)));
    bounds.flat_map(|(minimum, maximum)| {
        [0, 1].map(|idle| Size {
            minimum,
            maximum,
            idle,
        })
    })
}

fn pool(kinds: [usize; 3], open: (u64, bool)) -> (World, Desired) {
    let mut world = World::default();
    let mut desired = desired(0);
    for (number, kind) in kinds.into_iter().enumerate() {
        let id = format!("i-{number}");
        if let Some(instance) = member(KINDS[kind], &id, &mut world, &mut desired) {
            world.observed.instances.push(instance);
        }
    }
    for number in 0..open.0 {
        let answered = open.1.then_some("i-open");
        world.observed.launches.push(launch(10 + number, answered));
    }
    world.observed.settle();
    (world, desired)
}

fn member(kind: &str, id: &str, world: &mut World, desired: &mut Desired) -> Option<Instance> {
    let number = u64::from(id.as_bytes()[2] - b'0') + 1;
    let state = match kind {
        "none" => return None,
        "pending" => InstanceState::Pending,
        "stopped" => InstanceState::Stopped,
        "shutting-down" => InstanceState::ShuttingDown,
        "terminated" => InstanceState::Terminated,
        _ => InstanceState::Running,
    };
    let mut instance = instance(id, number, state);
    let observed = &mut world.observed;
    let mut notify = |kind| observed.notices.insert(id.to_owned(), notice(kind));
    match kind {
        "on-demand" => instance.offering.market = Market::OnDemand,
        "drifted" => instance.generation = Some("another".into()),
        "other-image" => {
            instance.generation = Some("another".into());
            instance.image_id = "ami-another".into();
        }
        "impaired" => drop(observed.impaired.insert(id.to_owned())),
        "rebalance" => drop(notify(NoticeKind::Rebalance)),
        "interrupted" => drop(notify(NoticeKind::Interruption)),
        "leased" | "lease-over" => {
            desired.leases.push(lease(id, kind == "lease-over"));
            instance.lease = Some(id.to_owned());
            instance.lease_digest = Some(DIGEST.into());
        }
        "promised" => {
            desired.leases.push(lease(id, false));
            observed.bindings.insert(id.to_owned(), id.to_owned());
        }
        "orphaned" => instance.lease = Some(format!("nobody-{id}")),
        _ => {}
    }
    assert_eq!(instance.launched_at, Some(NOW));
    Some(instance)
}
