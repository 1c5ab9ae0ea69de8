//! Finds out which resources are the pool's, and connects to the account that has them.

use std::sync::Arc;

use api::pool::SpotPool;
use api::provider_config::ProviderConfigUsage;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;

use crate::access::{Fingerprint, Origin};
use crate::account;
use crate::context::{Context, MANAGER};
use crate::region::Region;
use crate::seals::{Identity, Unproven};
use crate::step_error::StepError;

/// The identity of a pool. A deleted pool without resources needs no proof: it releases nothing.
pub(super) fn identify(context: &Context, pool: &SpotPool) -> Result<Identity, Unproven> {
    let shown = pool.status.as_ref().map(|status| &status.at_provider);
    let has_resources = shown.is_some_and(|shown| !account::is_empty(shown));
    let seals = context.regions.seals();
    match seals.of(pool) {
        Err(_) if pool.metadata.deletion_timestamp.is_some() && !has_resources => {
            Ok(seals.first(pool))
        }
        identity => identity,
    }
}

/// A pool's connection to AWS.
pub(super) struct Connected {
    pub(super) region: Arc<Region>,
    pub(super) origin: Origin,
    pub(super) fingerprint: Fingerprint,
}

/// Records the usage, then reads the credentials. The outer error is one of the API server. The
/// inner one is a configuration that cannot work.
pub(super) async fn connect(
    context: &Context,
    pool: &SpotPool,
    identity: &Identity,
    now: Timestamp,
) -> Result<Result<Connected, StepError>, kube::Error> {
    let reference = &pool.spec.provider_config_ref;
    if pool.metadata.deletion_timestamp.is_none() {
        let usages = &context.usages;
        usages
            .track::<ProviderConfigUsage, _>(&context.client, MANAGER, pool, reference, now)
            .await?;
    }
    let namespace = pool.namespace().unwrap_or_default();
    let accesses = &context.accesses;
    let resolved = accesses.resolve(&context.client, &namespace, reference, now);
    let resolved = match resolved.await {
        Ok(resolved) => resolved,
        Err(error) => return Ok(Err(error.into())),
    };
    let region = context
        .regions
        .of(
            &resolved,
            &pool.spec.for_provider.region,
            &identity.value,
            ObjectRef::from_obj(pool),
        )
        .await;
    Ok(Ok(Connected {
        region,
        origin: resolved.origin,
        fingerprint: resolved.fingerprint,
    }))
}
