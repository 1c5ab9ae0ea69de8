//! One reconcile of one pool: observe, validate, plan, act, status.

mod connect;

use std::sync::Arc;
use std::time::Duration;

use api::condition::{self, ConditionStatus, READY, SYNCED};
use api::pool::{SpotPool, SpotPoolStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::controller::Action as Requeue;
use provider_runtime::conditions::{Verdict, reason};
use provider_runtime::connection::{self as secrets, ConnectionError};
use provider_runtime::events::Happened;
use provider_runtime::policies::Permitted;
use provider_runtime::{finalizer, pause, policies, poll, requests};

use crate::context::{Context, MANAGER};
use crate::holds::Holds;
use crate::leases::{Leasing, LiveLeases};
use crate::locking::lock;
use crate::pass::{CALM, Next, Pass, Passed, Told};
use crate::replaced::Noting;
use crate::status_writer::{PoolStore, StatusWriter};
use crate::step_error::{AFTER_ERROR, StepError};
use crate::{connection, observer, status};
use connect::{Connected, connect, identify};

/// The longest time of a reconcile. kube never reconciles an object twice at once, so a request that
/// is never answered would keep the pool from everything, also from its end. AWS's calls end after 45
/// seconds by themselves, and what ends needs a few of them. A reconcile may be cut off anywhere.
pub(crate) const DEADLINE: Duration = Duration::from_mins(3);

/// The time before the next reconcile after a conflict, if the watch does not bring the newer object
/// before. A conflict says that there is one.
pub(crate) const AFTER_CONFLICT: Duration = Duration::from_secs(2);

/// Why a reconcile ended early. Only refusals of the API server, and a lack of answers, are errors
/// here. The pool's status reports everything else.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The API server refused.
    #[error(transparent)]
    Kube(#[from] kube::Error),
    /// The API server or AWS did not answer.
    #[error("no answer in time: the reconcile begins anew")]
    Deadline,
}

/// Runs a reconcile up to a deadline.
pub(crate) async fn in_time(
    deadline: Duration,
    reconcile: impl Future<Output = Result<Requeue, ReconcileError>>,
) -> Result<Requeue, ReconcileError> {
    let ended = tokio::time::timeout(deadline, reconcile).await;
    ended.unwrap_or(Err(ReconcileError::Deadline))
}

/// Reconciles a pool:
///
/// 1. pause and policies: whether anything may be done at all;
/// 2. connect: record the usage, then read the credentials;
/// 3. observe: the region's last look, and the launches of the pool's status;
/// 4. validate: the spec against the types and zones that EC2 offers;
/// 5. plan and act, until nothing is left to do now;
/// 6. write the connection Secret and the status, if they changed.
pub async fn reconcile(
    pool: Arc<SpotPool>,
    context: Arc<Context>,
) -> Result<Requeue, ReconcileError> {
    let running = Box::pin(reconcile_now(&pool, &context, Timestamp::now()));
    context.reconciles.count(in_time(DEADLINE, running)).await
}

async fn reconcile_now(
    pool: &SpotPool,
    context: &Context,
    now: Timestamp,
) -> Result<Requeue, ReconcileError> {
    let api: Api<SpotPool> = Api::namespaced(
        context.client.clone(),
        &pool.namespace().unwrap_or_default(),
    );
    let deleted = pool.metadata.deletion_timestamp.is_some();
    if deleted && !finalizer::is_present(&pool.metadata, finalizer::MANAGED) {
        context.forget(pool);
        return Ok(Requeue::await_change());
    }
    if context.replaced.is_outdated(&pool.metadata) {
        // The watch brings the version that this process wrote.
        return Ok(Requeue::requeue(AFTER_CONFLICT));
    }
    let store = Noting {
        store: api.clone(),
        replaced: &context.replaced,
    };
    let mut writer = StatusWriter::new(store, pool, now);
    let is_first = holds(writer.before(), SYNCED).is_none();
    context.lifecycle.began(&pool.metadata, is_first, now);
    let permitted = match may(context, &api, pool, &mut writer, now).await? {
        May::Act(permitted) => permitted,
        May::Rest(requeue) => return Ok(requeue),
    };
    let identity = match identify(context, pool) {
        Ok(identity) => identity,
        Err(unproven) => return fail(context, pool, &mut writer, &unproven.into()).await,
    };
    let mut told = Told::default();
    let request = pending_request(pool);
    if let Some(token) = request {
        writer.followed(token);
        let config = &pool.spec.provider_config_ref;
        let namespace = pool.namespace();
        let accesses = &context.accesses;
        accesses.forget(config.kind, namespace.as_deref(), &config.name);
        let message = format!("looking at EC2 now, as {} asks", requests::ANNOTATION);
        told.found.push(Happened::normal(requests::EVENT, message));
    }
    let Connected {
        region,
        origin,
        fingerprint,
    } = match connect(context, pool, &identity, now).await? {
        Ok(connected) => connected,
        Err(error) => return fail(context, pool, &mut writer, &error).await,
    };
    let meta = &pool.metadata;
    let is_kept = finalizer::is_present(meta, finalizer::MANAGED);
    let is_marked = is_kept && identity.is_written(meta);
    if !deleted && !is_marked {
        let annotations = [identity.annotation()];
        let kept = finalizer::add(&api, meta, finalizer::MANAGED, &annotations).await?;
        context.replaced.note(meta, &kept.metadata);
        writer.rebase(kept);
    }
    // A user asks for a reconcile after a change in AWS. The last look may not show the change. The
    // change may also be a raised quota, so EC2 may grant what it refused before.
    let look = if request.is_some() {
        context.hold(pool, fingerprint, Holds::default(), now);
        region.forget_facts();
        lock(&region.unavailable()).retry(now);
        observer::snapshot(&region, now).await
    } else {
        region.look().await
    };
    let leases = context.leases.of(pool).await;
    let leasing = Leasing::of(pool, &leases, context.regions.seals(), now);
    let registry = LiveLeases {
        client: context.client.clone(),
        namespace: pool.namespace().unwrap_or_default(),
        seals: context.regions.seals().clone(),
    };
    let pass = Pass {
        cluster: context.regions.cluster(),
        identity: &identity,
        pool,
        region: &region,
        origin: &origin,
        permitted,
        deleted,
        leasing: &leasing,
        registry: &registry,
        holds: context.holds(pool, fingerprint),
        now,
    };
    let concluded = match pass.run(&mut writer, look, &mut told).await {
        Ok(passed) => {
            context.hold(pool, fingerprint, passed.holds.clone(), now);
            conclude(context, pool, writer, passed, &mut told, now).await
        }
        Err(error) => Err(error.into()),
    };
    context.events.tell(pool, &told.done, now);
    concluded
}

/// Whether the provider may do anything for a pool.
enum May {
    /// It may do these actions in EC2.
    Act(Permitted),
    /// It may do nothing, until the pool changes or time has passed.
    Rest(Requeue),
}

/// Checks pause, policies, and the other finalizers of a deleted pool.
async fn may(
    context: &Context,
    api: &Api<SpotPool>,
    pool: &SpotPool,
    writer: &mut StatusWriter<Noting<'_, Api<SpotPool>>>,
    now: Timestamp,
) -> Result<May, ReconcileError> {
    let rest = Ok(May::Rest(Requeue::await_change()));
    if pause::is_paused(&pool.metadata, &pool.spec.management_policies) {
        writer.conclude([Verdict::paused()]);
        finish(context, pool, writer, Vec::new()).await?;
        return rest;
    }
    let permitted = match policies::permitted(&pool.spec.management_policies) {
        Ok(permitted) => permitted,
        Err(error) => return Ok(May::Rest(fail(context, pool, writer, &error.into()).await?)),
    };
    if pool.metadata.deletion_timestamp.is_none() {
        return Ok(May::Act(permitted));
    }
    if !permitted.delete {
        // Otherwise the sweeper would end the instances as orphans.
        let namespace = pool.namespace().unwrap_or_default();
        let name = format!("{namespace}/{}", pool.name_any());
        let identity = context.regions.seals().of_or_first(pool);
        let owners = context.regions.owners();
        owners.keep(&identity.value, &name).await?;
        finalizer::remove(api, &pool.metadata, finalizer::MANAGED).await?;
        context.lifecycle.deleted(&pool.metadata, now);
        context.forget(pool);
        return rest;
    }
    // The owner of another finalizer may still need the instances.
    let others = finalizer::others(&pool.metadata, finalizer::MANAGED);
    if others.is_empty() {
        writer.conclude([Verdict::ready(false, reason::DELETING, "")]);
        return Ok(May::Act(permitted));
    }
    let message = format!("waits until {} is removed", others.join(", "));
    writer.conclude([Verdict::ready(false, reason::DELETING, message)]);
    finish(context, pool, writer, Vec::new()).await?;
    rest
}

/// The token of a request to reconcile that was not handled yet.
fn pending_request(pool: &SpotPool) -> Option<&str> {
    let status = pool.status.as_ref();
    let last = status.and_then(|s| s.last_handled_reconcile_at.as_deref());
    requests::pending(&pool.metadata, last)
}

/// Stores the results of a pass and writes the status, or releases the pool. Observed changes are
/// published together with the status that records them.
async fn conclude<S: PoolStore>(
    context: &Context,
    pool: &SpotPool,
    mut writer: StatusWriter<S>,
    passed: Passed,
    told: &mut Told,
    now: Timestamp,
) -> Result<Requeue, ReconcileError> {
    let mut found = std::mem::take(&mut told.found);
    match passed.next {
        Next::Release => {
            // The namespace may be deleted with its last object, so events are published before.
            found.append(&mut told.done);
            context.events.publish(pool, &found, now).await;
            writer.release().await?;
            context.lifecycle.deleted(&pool.metadata, now);
            context.forget(pool);
            tracing::info!(pool = pool.name_any(), "released");
            Ok(Requeue::await_change())
        }
        Next::Again(after) => {
            if let Err(error) = publish(context, pool, writer.after()).await {
                if holds(writer.before(), SYNCED) != Some(false) {
                    found.push(Happened::warning(secrets::EVENT, error.to_string()));
                }
                let error = StepError::Publish(error);
                writer.conclude([Verdict::not_synced(error.step(), &error)]);
            }
            let status = writer.after().clone();
            finish(context, pool, &mut writer, found).await?;
            measure(context, pool, &status, passed.acted, now);
            Ok(Requeue::requeue(look_again(context, pool, &status, after)))
        }
    }
}

/// Writes the connection Secret of a pool that asks for one.
async fn publish(
    context: &Context,
    pool: &SpotPool,
    status: &SpotPoolStatus,
) -> Result<(), ConnectionError> {
    let Some(reference) = &pool.spec.write_connection_secret_to_ref else {
        return Ok(());
    };
    if pool.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let details = connection::details(&status.at_provider.instances);
    secrets::publish(&context.client, MANAGER, pool, reference, details).await?;
    Ok(())
}

fn measure(
    context: &Context,
    pool: &SpotPool,
    status: &SpotPoolStatus,
    acted: bool,
    now: Timestamp,
) {
    let (life, meta) = (&context.lifecycle, &pool.metadata);
    if holds(status, READY) == Some(true) {
        life.ready(meta, now);
    }
    if acted {
        life.drifted(meta, now);
    } else if holds(status, SYNCED) == Some(true) {
        life.in_sync(meta, now);
    }
}

/// The time until the pool is reconciled again. The poll interval applies to a pool at rest: it
/// does not delay a reconcile that a wait needs earlier.
fn look_again(
    context: &Context,
    pool: &SpotPool,
    status: &SpotPoolStatus,
    after: Duration,
) -> Duration {
    if after < CALM {
        return after;
    }
    let interval = context.intervals.of(&pool.metadata);
    let is_at_rest = holds(status, READY) == Some(true);
    let interval = if is_at_rest {
        interval
    } else {
        interval.min(CALM)
    };
    poll::jittered(interval, fastrand::f64())
}

fn holds(status: &SpotPoolStatus, type_: &str) -> Option<bool> {
    let found = condition::find(&status.conditions, type_)?;
    Some(found.status == ConditionStatus::True)
}

async fn fail<S: PoolStore>(
    context: &Context,
    pool: &SpotPool,
    writer: &mut StatusWriter<S>,
    error: &StepError,
) -> Result<Requeue, ReconcileError> {
    writer.conclude([Verdict::not_synced(error.step(), error)]);
    finish(context, pool, writer, Vec::new()).await?;
    Ok(Requeue::requeue(AFTER_ERROR))
}

/// Writes the status, and publishes events about its changes.
async fn finish<S: PoolStore>(
    context: &Context,
    pool: &SpotPool,
    writer: &mut StatusWriter<S>,
    mut happened: Vec<Happened>,
) -> Result<(), ReconcileError> {
    happened.extend(status::transitions(writer.before(), writer.after()));
    writer.write().await?;
    context.events.tell(pool, &happened, Timestamp::now());
    Ok(())
}

#[cfg(test)]
#[path = "reconcile_tests.rs"]
mod tests;
