//! The measured phases: the provider fills the pools, is at rest, and replaces interrupted
//! instances. [`crate::ends`] is the last phase.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use memory_ec2::Machine;
use provider_core::InstanceState;

use crate::Outcome;
use crate::account::{Account, Ledger};
use crate::pools::Times;
use crate::process::{Metrics, Provider};

/// The time between two progress lines about a phase.
const LINE: Duration = Duration::from_secs(15);
/// The time between two samples of the provider.
const LOOK: Duration = Duration::from_secs(1);
/// The longest time that the fill, or coming to rest after it, may take.
const PATIENCE: Duration = Duration::from_mins(40);
/// The provider is at rest when it has written no status for this long. The time is longer than the
/// 30 seconds for which the provider watches the effects of an action closely.
const QUIET: Duration = Duration::from_secs(45);
/// The longest time that the request for a replacement may take.
const REPLACED_WITHIN: Duration = Duration::from_secs(20);
/// The time between the request for a replacement and the next interruption.
const PAUSE: Duration = Duration::from_millis(500);

/// The provider, its AWS account, and the times of its pools.
pub(crate) struct Scene {
    pub(crate) account: std::sync::Arc<Account>,
    pub(crate) provider: Provider,
    pub(crate) times: Times,
}

/// The figures of a phase.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) took: Duration,
    pub(crate) calls: Ledger,
    /// The largest resident memory in the samples, in bytes.
    pub(crate) resident: f64,
    /// The mean number of processors in use.
    pub(crate) processors: f64,
    pub(crate) requests: Requests,
}

/// The provider's reconciles of pools, and its requests to the API server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    pub(crate) reconciles: f64,
    /// The PATCH requests: the provider writes a status by PATCH, and finalizers too. Those are
    /// written while pools come and go only.
    pub(crate) status_writes: f64,
    pub(crate) all: f64,
}

impl Requests {
    fn of(metrics: &Metrics) -> Self {
        let pools = "controller=\"managed/spotpool\"";
        let requests = "rest_client_requests_total";
        Self {
            reconciles: metrics.sum("controller_runtime_reconcile_total", &[pools]),
            status_writes: metrics.sum(requests, &["method=\"PATCH\""]),
            all: metrics.sum(requests, &[]),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            reconciles: self.reconciles - before.reconciles,
            status_writes: self.status_writes - before.status_writes,
            all: self.all - before.all,
        }
    }
}

/// A phase that has not ended: the values at its begin, and the samples so far.
struct Watch {
    begun: Instant,
    calls: Ledger,
    requests: Requests,
    processor_time: f64,
    resident: f64,
}

impl Watch {
    async fn begin(scene: &Scene) -> Outcome<Self> {
        let requests = Requests::of(&scene.provider.metrics().await?);
        Ok(Self {
            begun: Instant::now(),
            calls: scene.account.lock().ledger.clone(),
            requests,
            processor_time: scene.provider.processor_time()?,
            resident: 0.0,
        })
    }

    async fn tick(&mut self, scene: &Scene) -> Outcome<()> {
        tokio::time::sleep(LOOK).await;
        self.resident = self.resident.max(scene.provider.resident()?);
        Ok(())
    }

    async fn end(self, scene: &Scene) -> Outcome<Phase> {
        let took = self.begun.elapsed();
        let calls = scene.account.lock().ledger.since(&self.calls);
        let worked = scene.provider.processor_time()? - self.processor_time;
        let requests = Requests::of(&scene.provider.metrics().await?);
        Ok(Phase {
            took,
            calls,
            resident: self.resident,
            processors: worked / took.as_secs_f64(),
            requests: requests.since(self.requests),
        })
    }
}

/// Waits until every pool has its capacity.
pub(crate) async fn fill(scene: &Scene, pools: usize, begun: Instant) -> Outcome<Phase> {
    let mut watch = Watch::begin(scene).await?;
    let mut next_line = begun + LINE;
    while scene.times.ready() < pools {
        watch.tick(scene).await?;
        if Instant::now() >= next_line {
            next_line += LINE;
            tell(scene, "filling", begun);
        }
        if begun.elapsed() > PATIENCE {
            let ready = scene.times.ready();
            return Err(format!("{ready} of {pools} pools are ready after {PATIENCE:?}").into());
        }
    }
    watch.begun = begun;
    watch.end(scene).await
}

fn tell(scene: &Scene, phase: &str, begun: Instant) {
    let state = scene.account.lock();
    let calls = state.ledger.total();
    eprintln!(
        "{phase} {:>4} s: {:>4} pools ready, {:>5} instances, {} calls, {} throttled, {:.0} MiB",
        begun.elapsed().as_secs(),
        scene.times.ready(),
        state.cloud.machines.len(),
        calls.all,
        calls.throttled,
        scene.provider.resident().unwrap_or_default() / crate::process::MIB,
    );
}

/// Waits until the provider is at rest.
pub(crate) async fn settle(scene: &Scene) -> Outcome<()> {
    let (begun, mut quiet_since, mut written) = (Instant::now(), Instant::now(), f64::NAN);
    let mut next_line = begun + LINE;
    while quiet_since.elapsed() < QUIET {
        tokio::time::sleep(LOOK).await;
        let writes = Requests::of(&scene.provider.metrics().await?).status_writes;
        if writes.to_bits() != written.to_bits() {
            (quiet_since, written) = (Instant::now(), writes);
        }
        if Instant::now() >= next_line {
            next_line += LINE;
            tell(scene, "settling", begun);
        }
        if begun.elapsed() > PATIENCE {
            return Err("the provider never comes to rest: it writes and writes".into());
        }
    }
    Ok(())
}

/// Measures the provider at rest for this long.
pub(crate) async fn rest(scene: &Scene, window: Duration) -> Outcome<Phase> {
    let mut watch = Watch::begin(scene).await?;
    while watch.begun.elapsed() < window {
        watch.tick(scene).await?;
    }
    watch.end(scene).await
}

/// Interrupts instances, one after the other. Returns the times from each interruption to the
/// provider's request for the replacement.
pub(crate) async fn interrupt(scene: &Scene, events: usize) -> Outcome<Vec<Duration>> {
    let victims = victims(scene, events);
    if victims.len() < events {
        let found = victims.len();
        return Err(format!("{found} instances can be interrupted, not {events}").into());
    }
    let mut taken = Vec::new();
    for (number, (id, pool)) in victims.into_iter().enumerate() {
        let asked = scene.account.lock().ledger.launches.len();
        let begun = Instant::now();
        scene.account.interrupt(&id);
        let replaced = loop {
            let launches = scene.account.lock().ledger.launches[asked..].to_vec();
            if let Some((at, _)) = launches.into_iter().find(|(_, uid)| *uid == pool) {
                break at;
            }
            if begun.elapsed() > REPLACED_WITHIN {
                return Err(format!("{id} is not replaced within {REPLACED_WITHIN:?}").into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        taken.push(replaced.duration_since(begun));
        if number % 10 == 9 {
            eprintln!("{} interruptions", number + 1);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(taken)
}

/// Chooses running instances to interrupt, and returns each one's id and its pool's UID. All have
/// the same offering, because AWS takes instances back by offering. As few as possible are of the
/// same pool.
fn victims(scene: &Scene, count: usize) -> Vec<(String, String)> {
    let now = jiff::Timestamp::now();
    let state = scene.account.lock();
    let uid = |machine: &Machine| machine.tags.get(api::tags::POOL_UID).cloned();
    let running = |m: &&Machine| m.state(now) == InstanceState::Running;
    let machines = || state.cloud.machines.iter().filter(running);
    let Some(offering) = machines().next().map(|m| m.offering.clone()) else {
        return Vec::new();
    };
    let mut seen = BTreeMap::<String, usize>::new();
    let of_offering = machines().filter(|m| m.offering == offering);
    let mut found: Vec<(usize, String, String)> = of_offering
        .filter_map(|machine| {
            let pool = uid(machine)?;
            let nth = seen.entry(pool.clone()).or_default();
            *nth += 1;
            Some((*nth, machine.id.clone(), pool))
        })
        .collect();
    found.sort_by_key(|(nth, ..)| *nth);
    let found = found.into_iter().take(count);
    found.map(|(_, id, pool)| (id, pool)).collect()
}
