//! One reconcile of one lease: it adds the finalizer, shows the instance that the pool gave, and
//! releases a deleted lease.
//!
//! The pool's reconcile gives and ends instances (`act/leases.rs`). The lease's reconcile only
//! reports that, and wakes the pool.

mod verdict;

use verdict::Known;

use std::sync::Arc;
use std::time::Duration;

use api::condition::{self, ConditionStatus, SYNCED};
use api::lease::{SpotLease, SpotLeaseStatus};
use api::pool::SpotPool;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Api;
use kube::core::DeserializeGuard;
use kube::runtime::controller::Action as Requeue;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Client, ResourceExt};
use provider_runtime::conditions::{self, Verdict, reason};
use provider_runtime::connection as secrets;
use provider_runtime::events::{Events, Happened};
use provider_runtime::metrics::lifecycle::Lifecycle;
use provider_runtime::metrics::reconciles::OfController;
use provider_runtime::poll::{self, Intervals};
use provider_runtime::unreadable::Unreadable;
use provider_runtime::{finalizer, pause, policies, requests};
use tokio::sync::SetOnce;
use tokio::sync::mpsc::UnboundedSender;

use crate::connection;
use crate::context::MANAGER;
use crate::leases::expires_at;
use crate::pass::left;
use crate::reconcile::{DEADLINE, ReconcileError, in_time};
use crate::seals::Seals;
use crate::step_error::AFTER_ERROR;

/// The time between two checks of a pool that still has a deleted lease's instance. The pool's status
/// wakes its leases, so this matters only if an event of the watch was lost.
const AFTER_WAITING: Duration = Duration::from_secs(30);

/// The data that reconciles of leases share.
pub struct Context {
    /// The client of the API server.
    pub client: Client,
    /// Every pool, as the watch shows it.
    pub pools: Pools,
    /// Tells the identities of leases.
    pub seals: Seals,
    /// Receives the pools that have something to do.
    pub wake: UnboundedSender<ObjectRef<SpotPool>>,
    /// The writer of events.
    pub events: Events,
    /// How often a lease is polled for which no event arrives.
    pub intervals: Intervals,
    /// Measures the stages of a lease's life.
    pub lifecycle: Lifecycle,
    /// Counts the reconciles of leases.
    pub reconciles: OfController,
}

/// Every pool, as the watch shows it.
pub struct Pools {
    /// The pools that can be read.
    pub store: Store<SpotPool>,
    /// Set once the store has every pool.
    pub are_known: Arc<SetOnce<()>>,
    /// The pools that cannot be read.
    pub unreadable: Unreadable<SpotPool>,
}

/// Reconciles a lease:
///
/// 1. pause and policies: whether anything may be written about it;
/// 2. the finalizer: without it the pool gives the lease no instance;
/// 3. the pool is woken if it has something to do;
/// 4. the connection Secret and the status are written if they changed, or the lease is released.
pub async fn reconcile(
    lease: Arc<SpotLease>,
    context: Arc<Context>,
) -> Result<Requeue, ReconcileError> {
    let running = Box::pin(reconcile_now(&lease, &context, Timestamp::now()));
    context.reconciles.count(in_time(DEADLINE, running)).await
}

async fn reconcile_now(
    lease: &SpotLease,
    context: &Context,
    now: Timestamp,
) -> Result<Requeue, ReconcileError> {
    let namespace = lease.namespace().unwrap_or_default();
    let api: Api<SpotLease> = Api::namespaced(context.client.clone(), &namespace);
    let meta = &lease.metadata;
    let is_deleted = meta.deletion_timestamp.is_some();
    if is_deleted && !finalizer::is_present(meta, finalizer::MANAGED) {
        context.lifecycle.forget(meta);
        return Ok(Requeue::await_change());
    }
    let before = lease.status.clone().unwrap_or_default();
    let is_first = condition::find(&before.conditions, SYNCED).is_none();
    context.lifecycle.began(meta, is_first, now);
    if pause::is_paused(meta, &lease.spec.management_policies) {
        conclude(lease, context, &api, before, vec![Verdict::paused()], now).await?;
        return Ok(Requeue::await_change());
    }
    let permitted = match policies::permitted(&lease.spec.management_policies) {
        Ok(permitted) => permitted,
        Err(error) => {
            let failed = Verdict::not_synced("update", &error);
            conclude(lease, context, &api, before, vec![failed], now).await?;
            return Ok(Requeue::requeue(AFTER_ERROR));
        }
    };
    let identity = match context.seals.of(lease) {
        // No pool has given an instance to a lease without a proven identity.
        Err(_) if is_deleted => context.seals.first(lease),
        Err(unproven) => {
            let failed = Verdict::not_synced("identify", &unproven);
            conclude(lease, context, &api, before, vec![failed], now).await?;
            return Ok(Requeue::requeue(AFTER_ERROR));
        }
        Ok(identity) => identity,
    };
    let known = Known {
        lease,
        identity: &identity,
    };
    if is_deleted {
        return leave(known, context, &api, before, permitted.delete, now).await;
    }
    let is_kept = finalizer::is_present(meta, finalizer::MANAGED);
    if !(is_kept && identity.is_written(meta)) {
        // This change itself causes the next reconcile of the lease.
        let annotations = [identity.annotation()];
        finalizer::add(&api, meta, finalizer::MANAGED, &annotations).await?;
        return Ok(Requeue::await_change());
    }
    show(known, context, &api, before, now).await
}

/// Shows the instance that the pool gave.
async fn show(
    known: Known<'_>,
    context: &Context,
    api: &Api<SpotLease>,
    mut status: SpotLeaseStatus,
    now: Timestamp,
) -> Result<Requeue, ReconcileError> {
    let lease = known.lease;
    let reference = pool_of(lease);
    context.pools.are_known.wait().await;
    if context.pools.unreadable.contains(&reference) {
        // What the lease has is not known to have changed.
        let failed = Verdict::not_synced("observe", &verdict::unreadable(&reference.name));
        conclude(lease, context, api, status, vec![failed], now).await?;
        return Ok(Requeue::requeue(AFTER_ERROR));
    }
    let pool = context.pools.store.get(&reference);
    let pool = pool.as_deref();
    if verdict::has_work_for(pool, known, now) {
        wake(context, reference);
    }
    status.at_provider = verdict::observation(known, pool);
    let end = expires_at(lease, pool);
    status.at_provider.expires_at = end.map(Time);
    let mut verdicts = vec![verdict::ready(known, pool, now), Verdict::synced()];
    if let Err(error) = publish(known, context, pool).await {
        verdicts.push(Verdict::not_synced("publish", &error));
    }
    let is_ready = verdicts[0].status == ConditionStatus::True;
    conclude(lease, context, api, status, verdicts, now).await?;
    if is_ready {
        context.lifecycle.ready(&lease.metadata, now);
    }
    let interval = context.intervals.of(&lease.metadata);
    let calm = poll::jittered(interval, fastrand::f64());
    let ahead = end.filter(|end| *end > now);
    let soonest = ahead.map_or(calm, |end| left(end, now).min(calm));
    Ok(Requeue::requeue(soonest))
}

/// Releases a deleted lease once its pool has no instance of it any more. The pool is read from the
/// API server and not from the store: see [`crate::leases::Registry`].
async fn leave(
    known: Known<'_>,
    context: &Context,
    api: &Api<SpotLease>,
    status: SpotLeaseStatus,
    ends_instance: bool,
    now: Timestamp,
) -> Result<Requeue, ReconcileError> {
    let lease = known.lease;
    let meta = &lease.metadata;
    let others = finalizer::others(meta, finalizer::MANAGED);
    let deleting = |why: String| vec![Verdict::ready(false, reason::DELETING, why)];
    if ends_instance && !others.is_empty() {
        let why = format!("waits until {} is removed", others.join(", "));
        conclude(lease, context, api, status, deleting(why), now).await?;
        return Ok(Requeue::await_change());
    }
    let namespace = lease.namespace().unwrap_or_default();
    let pools: Api<DeserializeGuard<SpotPool>> =
        Api::namespaced(context.client.clone(), &namespace);
    let name = &lease.spec.for_provider.pool_ref.name;
    let waits = match pools.get_opt(name).await? {
        None => None,
        Some(DeserializeGuard(Ok(pool))) => {
            let held = verdict::held(&pool, known);
            held.map(|held| format!("waits until {held} has ended"))
        }
        Some(DeserializeGuard(Err(_))) => Some(verdict::unreadable(name)),
    };
    if let (Some(why), true) = (waits, ends_instance) {
        wake(context, pool_of(lease));
        conclude(lease, context, api, status, deleting(why), now).await?;
        return Ok(Requeue::requeue(AFTER_WAITING));
    }
    finalizer::remove(api, meta, finalizer::MANAGED).await?;
    context.lifecycle.deleted(meta, now);
    Ok(Requeue::await_change())
}

fn pool_of(lease: &SpotLease) -> ObjectRef<SpotPool> {
    let name = &lease.spec.for_provider.pool_ref.name;
    ObjectRef::new(name).within(&lease.namespace().unwrap_or_default())
}

fn wake(context: &Context, pool: ObjectRef<SpotPool>) {
    if context.wake.send(pool).is_err() {
        tracing::error!("no controller reconciles pools any more");
    }
}

/// Writes the connection Secret of a lease that asks for one.
async fn publish(
    known: Known<'_>,
    context: &Context,
    pool: Option<&SpotPool>,
) -> Result<(), secrets::ConnectionError> {
    let lease = known.lease;
    let Some(reference) = &lease.spec.write_connection_secret_to_ref else {
        return Ok(());
    };
    let instance = pool.and_then(|pool| verdict::instance(pool, known));
    let details = connection::details(instance.map(std::slice::from_ref).unwrap_or_default());
    secrets::publish(&context.client, MANAGER, lease, reference, details).await?;
    Ok(())
}

/// Writes the status if it differs, and publishes events about the changes.
async fn conclude(
    lease: &SpotLease,
    context: &Context,
    api: &Api<SpotLease>,
    mut status: SpotLeaseStatus,
    verdicts: Vec<Verdict>,
    now: Timestamp,
) -> Result<(), ReconcileError> {
    let mut happened = Vec::new();
    let last = status.last_handled_reconcile_at.as_deref();
    if let Some(token) = requests::pending(&lease.metadata, last) {
        status.last_handled_reconcile_at = Some(token.to_owned());
        wake(context, pool_of(lease));
        let message = format!("looking at EC2 now, as {} asks", requests::ANNOTATION);
        happened.push(Happened::normal(requests::EVENT, message));
    }
    for verdict in verdicts {
        let generation = lease.metadata.generation;
        conditions::set(&mut status.conditions, verdict, generation, now);
    }
    if lease.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let before = lease.status.clone().unwrap_or_default();
    happened.extend(verdict::transition(&before, &status));
    provider_runtime::status::write(api, &lease.metadata, lease.status.as_ref(), &status).await?;
    context.events.tell(lease, &happened, now);
    Ok(())
}
