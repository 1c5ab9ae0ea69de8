//! The observer of a region. It lists the resources of all pools at once, and wakes the pools whose
//! instances, groups or homes changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use api::pool::SpotPool;
use jiff::{SignedDuration, Timestamp};
use kube::runtime::reflector::ObjectRef;
use provider_aws::Ec2Error;
use provider_core::{Checks, Group, Instance, ScheduledEvent, Volume};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

use crate::plausible::Plausibility;
use crate::region::{Account, Failure, Homes, Look, Region, Snapshot, Taken};
use crate::spot_prices;
use crate::sweeper::{Owners, Sweeper};

/// The time between two looks while no change is expected. A look makes two or three calls, which
/// is a fiftieth of the describes that AWS grants an account.
const CALM: Duration = Duration::from_secs(15);
/// While no change is expected, the observer waits at least one second for each 400 instances of
/// the last look. So it makes less than one call a second, however many instances there are.
const LISTED_A_SECOND: usize = 400;
/// The time between two looks while a pool waits for a change.
const HURRIED: Duration = Duration::from_secs(1);
/// Between two frequent looks the observer rests for at least this many times the look's duration.
/// Reading ten thousand instances takes a processor for a second, and pools need the processor too.
const IDLE: u32 = 3;

/// The time between the wake-ups of two pools after a look that failed. Otherwise the provider would
/// write the status of a thousand pools in the same second.
const APART: Duration = Duration::from_millis(20);
/// The longest time of a sweep.
const SWEEP_DEADLINE: Duration = Duration::from_mins(2);

/// The data that observers share.
pub struct Surroundings {
    /// Receives the pools to reconcile.
    pub wake: UnboundedSender<ObjectRef<SpotPool>>,
    /// Lists the pools and leases that may own the observed resources.
    pub owners: Box<dyn Owners>,
    /// How long a resource must have had no owner before it is ended.
    pub grace: SignedDuration,
}

/// Observes until no pool uses the region any more.
pub async fn observe(region: Weak<Region>, around: Arc<Surroundings>) {
    let mut plausibility = Plausibility::default();
    let mut sweeper = Sweeper::new(around.owners.as_ref(), around.grace);
    while let Some(region) = region.upgrade() {
        let begun = Instant::now();
        // The region's data is not kept in memory while the observer rests.
        let listed = look(&region, &around, &mut plausibility, &mut sweeper).await;
        rest(&region, begun.elapsed(), listed).await;
    }
}

/// Makes one look and publishes it, wakes the affected pools, and ends orphans. Returns the number
/// of instances in the look.
async fn look(
    region: &Region,
    around: &Surroundings,
    plausibility: &mut Plausibility,
    sweeper: &mut Sweeper<'_>,
) -> usize {
    let now = Timestamp::now();
    let taken = snapshot(region, now).await;
    let taken = plausibility.check(taken);
    if let Err(error) = &taken {
        tracing::warn!(region = region.name, %error, "cannot observe");
    }
    let is_new = taken.is_ok();
    let (previous, shown) = region.publish(taken, now);
    let concerned = changed(region, &previous, &shown);
    let apart = if shown.is_err() {
        APART
    } else {
        Duration::ZERO
    };
    wake(&around.wake, concerned, apart);
    let Ok(shown) = shown else { return 0 };
    if is_new {
        sweep(region, &shown, sweeper).await;
    }
    shown.instances.values().map(Vec::len).sum()
}

/// Ends orphans. A request that is never answered must not keep the region from its next look.
async fn sweep(region: &Region, shown: &Snapshot, sweeper: &mut Sweeper<'_>) {
    match timeout(SWEEP_DEADLINE, sweeper.sweep(region, shown)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(region = region.name, %error, "cannot sweep"),
        Err(_) => tracing::error!(region = region.name, "a sweep got no answer, and was ended"),
    }
}

async fn rest(region: &Region, took: Duration, listed: usize) {
    let calm = CALM.max(Duration::from_secs((listed / LISTED_A_SECOND) as u64));
    if region.is_hurried(Timestamp::now()) {
        tokio::time::sleep(HURRIED.max(took * IDLE).min(calm)).await;
    } else {
        tokio::select! {
            () = tokio::time::sleep(calm) => {}
            () = region.hurried() => {}
        }
    }
}

/// Describes all resources of this control plane once. The look fails if EC2 refuses to describe the
/// instances; [`Region::list`] says for how long. Each other part may fail alone, because the end of an
/// instance needs none of them.
pub(crate) async fn snapshot(region: &Region, now: Timestamp) -> Result<Arc<Snapshot>, Ec2Error> {
    let number = region.expectations().begin_look();
    let before = region.last();
    let mut parts = Parts::after(&before, now);
    let checks = parts.take(region.checks(now).await);
    let listed = region.list(now).await?;
    let zones_down = listed.lacking.map(|lacking| {
        parts.take::<()>(Err(lacking.error));
        lacking.zones
    });
    let mut instances: BTreeMap<String, Vec<Arc<Instance>>> = BTreeMap::new();
    for instance in listed.instances {
        let of_pool = instances.entry(instance.pool_uid.clone());
        of_pool.or_default().push(instance);
    }
    // The account is asked after the list: credentials that change between the two answers make a
    // list of their first account look like one of their second, where no pool loses anything.
    let account = account(&mut parts, region.ec2.account().await);
    for of_pool in instances.values_mut() {
        of_pool.sort_by(|a, b| (a.launch, &a.id).cmp(&(b.launch, &b.id)));
    }
    let groups = parts.take(region.ec2.groups().await);
    // Groups of another account would look like the loss of all groups of this one.
    let is_known = matches!(account, Account::Known(_));
    let groups = groups.filter(|_| is_known).map(|listed| {
        let mut groups: BTreeMap<String, Vec<Group>> = BTreeMap::new();
        for group in listed {
            let of_pool = groups.entry(group.pool_uid.clone());
            of_pool.or_default().push(group);
        }
        the_same_or(&before.groups, groups)
    });
    let homes = homes(region, &before.homes).await;
    let spot_prices = {
        let mut read = region.spot_prices.lock().await;
        let listed = instances.values().flatten().map(Arc::as_ref);
        let (prices, error) = read.of(region.ec2.as_ref(), listed, now).await;
        if let Some(error) = error {
            tracing::warn!(region = region.name, %error, "cannot read spot prices");
        }
        prices
    };
    Ok(Arc::new(Snapshot {
        account,
        homes,
        instances: the_same_or(&before.instances, instances),
        zones_down,
        groups_at: groups.as_ref().map(|_| now).or(before.groups_at),
        groups: groups.unwrap_or_else(|| before.groups.clone()),
        checks: checks.unwrap_or_else(|| before.checks.clone()),
        failures: parts.failures,
        spot_prices,
        at: now,
        number,
    }))
}

/// The account of a look. While AWS does not tell it, it is the one of the look before: the
/// credentials of a region hardly ever change.
fn account(parts: &mut Parts<'_>, answer: Result<String, Ec2Error>) -> Account {
    let before = &parts.before.account;
    match (answer, before) {
        (Ok(id), _) => Account::Known(id),
        (Err(error), Account::Known(id)) => {
            let known = Account::Known(id.clone());
            parts.take::<String>(Err(error));
            known
        }
        (Err(error), Account::Unknown(_)) => Account::Unknown(error),
    }
}

/// The parts of a look, with the failures of the look before.
struct Parts<'a> {
    before: &'a Snapshot,
    now: Timestamp,
    failures: BTreeMap<&'static str, Failure>,
}

impl<'a> Parts<'a> {
    fn after(before: &'a Snapshot, now: Timestamp) -> Self {
        Self {
            before,
            now,
            failures: BTreeMap::new(),
        }
    }

    /// A part, or none if it failed.
    fn take<T>(&mut self, part: Result<T, Ec2Error>) -> Option<T> {
        let error = match part {
            Ok(part) => return Some(part),
            Err(error) => error,
        };
        let before = self.before.failures.get(error.operation);
        let since = before.map_or(self.now, |failure| failure.since);
        let failure = Failure { since, error };
        self.failures.insert(failure.error.operation, failure);
        None
    }
}

async fn homes(region: &Region, before: &Homes) -> Homes {
    if !region.has_homes() {
        return Homes::Unseen;
    }
    let listed = match region.ec2.volumes().await {
        Ok(listed) => listed,
        Err(error) => return Homes::Failed(error),
    };
    let mut volumes: BTreeMap<String, Vec<Volume>> = BTreeMap::new();
    for volume in listed {
        let of_pool = volumes.entry(volume.pool_uid.clone());
        of_pool.or_default().push(volume);
    }
    for of_pool in volumes.values_mut() {
        of_pool.sort_by(|a, b| (a.number, &a.id).cmp(&(b.number, &b.id)));
    }
    Homes::Seen(match before {
        Homes::Seen(before) => the_same_or(before, volumes),
        _ => Arc::new(volumes),
    })
}

/// Keeps an unchanged value at its place in memory: thousands of copies a minute would fragment it.
fn the_same_or<T: PartialEq>(before: &Arc<T>, now: T) -> Arc<T> {
    if **before == now {
        before.clone()
    } else {
        Arc::new(now)
    }
}

/// Wakes pools with this time between two of them, without waiting for it.
fn wake(
    wake: &UnboundedSender<ObjectRef<SpotPool>>,
    pools: Vec<ObjectRef<SpotPool>>,
    apart: Duration,
) {
    if apart.is_zero() {
        for pool in pools {
            // The receiver lives as long as the process.
            drop(wake.send(pool));
        }
        return;
    }
    let wake = wake.clone();
    tokio::spawn(async move {
        for pool in pools {
            drop(wake.send(pool));
            tokio::time::sleep(apart).await;
        }
    });
}

/// The pools for which two published looks differ. The first look concerns every pool, and so does
/// the first one that fails. Pools that wait for EC2 look again by themselves.
pub(crate) fn changed(region: &Region, before: &Look, after: &Taken) -> Vec<ObjectRef<SpotPool>> {
    let pools = region.pools();
    match (before, after) {
        (Some(Ok(before)), Ok(after)) if before.account != after.account => {
            pools.into_values().collect()
        }
        (Some(Ok(before)), Ok(after)) => pools
            .into_iter()
            .filter(|(uid, _)| {
                let checks = |look: &Snapshot| -> Vec<(bool, Option<ScheduledEvent>)> {
                    let instances = after.instances.get(uid).into_iter().flatten();
                    let Checks {
                        impaired,
                        scheduled,
                    } = &look.checks;
                    let of = |id| (impaired.contains(id), scheduled.get(id).cloned());
                    instances.map(|i| of(&i.id)).collect()
                };
                // Without news of EC2, looks share the prices.
                let has_new_prices = !Arc::ptr_eq(&before.spot_prices, &after.spot_prices);
                let prices = |look: &Snapshot| -> Vec<Option<f64>> {
                    let instances = after.instances.get(uid).into_iter().flatten();
                    let price = |i: &Arc<Instance>| spot_prices::of_instance(&look.spot_prices, i);
                    instances.map(price).collect()
                };
                before.instances.get(uid) != after.instances.get(uid)
                    || (has_new_prices && prices(before) != prices(after))
                    || before.groups.get(uid) != after.groups.get(uid)
                    || before.homes.of(uid) != after.homes.of(uid)
                    || (before.checks != after.checks && checks(before) != checks(after))
            })
            .map(|(_, pool)| pool)
            .collect(),
        (None, _) | (Some(Ok(_)), Err(_)) => pools.into_values().collect(),
        (Some(Err(before)), Err(after)) if before != after => pools.into_values().collect(),
        (Some(Err(_)), _) => Vec::new(),
    }
}
