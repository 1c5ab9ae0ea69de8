//! One reconcile of one pool: observe, validate, plan, act, status.

use std::sync::Arc;
use std::time::Duration;

use api::pool::SpotPool;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::controller::Action as Requeue;
use kube::runtime::reflector::ObjectRef;
use provider_runtime::conditions::Verdict;
use provider_runtime::events::Happened;
use provider_runtime::{finalizer, pause, policies, usage};

use crate::access::{self, ConnectError};
use crate::context::{Context, MANAGER};
use crate::pass::{Next, Pass, Passed};
use crate::region::Region;
use crate::status;
use crate::status_writer::{PoolStore, StatusWriter};

/// After an error that a person has to mend, or AWS.
pub(crate) const AFTER_ERROR: Duration = Duration::from_secs(20);

/// Why a reconcile ended early. Only the API server's refusals are errors here:
/// everything else is said in the pool's status.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The API server refused.
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

/// What a step could not do; becomes `Synced=False`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Observe(provider_aws::Ec2Error),
    #[error(transparent)]
    Policies(#[from] policies::Unsupported),
}

impl StepError {
    /// crossplane-runtime's prefix.
    pub(crate) fn step(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::Observe(_) => "observe",
            Self::Policies(_) => "update",
        }
    }
}

/// Reconciles a pool:
///
/// 1. pause and policies: may anything be done at all?
/// 2. connect: the usage is recorded, then credentials are read;
/// 3. observe: the region's last look, and the launches of the pool's status;
/// 4. validate: the spec against what EC2 sells;
/// 5. plan and act, until nothing is left to do now;
/// 6. status, when it changed.
pub async fn reconcile(
    pool: Arc<SpotPool>,
    context: Arc<Context>,
) -> Result<Requeue, ReconcileError> {
    let now = Timestamp::now();
    let api: Api<SpotPool> = Api::namespaced(
        context.client.clone(),
        &pool.namespace().unwrap_or_default(),
    );
    let deleted = pool.metadata.deletion_timestamp.is_some();
    if deleted && !finalizer::is_present(&pool.metadata) {
        context.forget(&pool);
        return Ok(Requeue::await_change());
    }
    let mut writer = StatusWriter::new(api.clone(), &pool, now);
    if pause::is_paused(&pool.metadata, &pool.spec.management_policies) {
        writer.conclude([Verdict::paused()]);
        writer.write().await?;
        return Ok(Requeue::await_change());
    }
    let permitted = match policies::permitted(&pool.spec.management_policies) {
        Ok(permitted) => permitted,
        Err(error) => return fail(&context, &pool, writer, &error.into()).await,
    };
    if deleted && !permitted.delete {
        finalizer::remove(&api, &pool.metadata).await?;
        context.forget(&pool);
        return Ok(Requeue::await_change());
    }
    let region = match connect(&context, &pool).await? {
        Ok(region) => region,
        Err(error) => return fail(&context, &pool, writer, &error).await,
    };
    if !finalizer::is_present(&pool.metadata) {
        writer.rebase(finalizer::add(&api, &pool.metadata).await?);
    }
    let pass = Pass {
        cluster: context.regions.cluster(),
        pool: &pool,
        region: &region,
        permitted,
        deleted,
        launches_held_until: context.launches_held_until(&pool),
        now,
    };
    let passed = pass.run(&mut writer, region.look().await).await?;
    conclude(&context, &pool, writer, passed, now).await
}

/// Remembers what a pass learnt, writes the status, or lets the pool go.
async fn conclude<S: PoolStore>(
    context: &Context,
    pool: &SpotPool,
    writer: StatusWriter<S>,
    passed: Passed,
    now: Timestamp,
) -> Result<Requeue, ReconcileError> {
    context.hold_launches(pool, passed.launches_held_until);
    match passed.next {
        Next::Release => {
            context.events.publish(pool, &passed.happened, now).await;
            writer.release().await?;
            context.forget(pool);
            tracing::info!(pool = pool.name_any(), "released");
            Ok(Requeue::await_change())
        }
        Next::Again(after) => {
            finish(context, pool, writer, passed.happened).await?;
            Ok(Requeue::requeue(after))
        }
    }
}

/// Records the usage, then reads the credentials. An unreachable API server is
/// the outer error, a configuration that cannot work the inner one.
async fn connect(
    context: &Context,
    pool: &SpotPool,
) -> Result<Result<Arc<Region>, StepError>, ReconcileError> {
    let reference = &pool.spec.provider_config_ref;
    if pool.metadata.deletion_timestamp.is_none() {
        usage::track(&context.client, MANAGER, pool, reference).await?;
    }
    let namespace = pool.namespace().unwrap_or_default();
    let resolved = match access::resolve(&context.client, &namespace, reference).await {
        Ok(resolved) => resolved,
        Err(error) => return Ok(Err(error.into())),
    };
    let region = context
        .regions
        .of(
            &resolved,
            &pool.spec.for_provider.region,
            &pool.uid().unwrap_or_default(),
            ObjectRef::from_obj(pool),
        )
        .await;
    Ok(Ok(region))
}

async fn fail<S: PoolStore>(
    context: &Context,
    pool: &SpotPool,
    mut writer: StatusWriter<S>,
    error: &StepError,
) -> Result<Requeue, ReconcileError> {
    writer.conclude([Verdict::not_synced(error.step(), error)]);
    finish(context, pool, writer, Vec::new()).await?;
    Ok(Requeue::requeue(AFTER_ERROR))
}

/// Writes the status and tells of what changed.
async fn finish<S: PoolStore>(
    context: &Context,
    pool: &SpotPool,
    mut writer: StatusWriter<S>,
    mut happened: Vec<Happened>,
) -> Result<(), ReconcileError> {
    happened.extend(status::transitions(writer.before(), writer.after()));
    writer.write().await?;
    context
        .events
        .publish(pool, &happened, Timestamp::now())
        .await;
    Ok(())
}
