//! Starts the controller and stops it in order.

use std::sync::Arc;
use std::time::Duration;

use api::managed::{ProviderConfigKind, ProviderConfigReference};
use api::pool::SpotPool;
use api::provider_config::{ClusterProviderConfig, ProviderConfig};
use futures::StreamExt as _;
use kube::api::Api;
use kube::runtime::controller::{Action as Requeue, Config, Error as ControllerError};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Controller, watcher};
use kube::{Client, ResourceExt};
use tokio::sync::mpsc;

use crate::context::Context;
use crate::identity;
use crate::reconcile::{ReconcileError, reconcile};
use crate::regions::Regions;

/// After a write that another one preceded.
const AFTER_CONFLICT: Duration = Duration::from_millis(200);
/// After another refusal of the API server.
const AFTER_REFUSAL: Duration = Duration::from_secs(5);

/// Why the provider cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No API server.
    #[error("no Kubernetes API server: {0}")]
    Client(#[from] kube::Error),
    /// No identity.
    #[error(transparent)]
    Identity(#[from] identity::IdentityError),
}

/// Reconciles pools until SIGTERM.
pub async fn run(namespace: &str, concurrency: u16) -> Result<(), RunError> {
    let client = Client::try_default().await?;
    let cluster = identity::of_control_plane(&client, namespace).await?;
    tracing::info!(cluster, "starting");
    let (wake, mut woken) = mpsc::unbounded_channel();
    let context = Arc::new(Context::new(client.clone(), Regions::new(cluster, wake)));
    let woken = futures::stream::poll_fn(move |cx| woken.poll_recv(cx));

    let all = watcher::Config::default();
    let controller = Controller::new(Api::<SpotPool>::all(client.clone()), all.clone());
    let (of_cluster, of_namespace) = (controller.store(), controller.store());
    controller
        .with_config(Config::default().concurrency(concurrency))
        .watches(
            Api::<ClusterProviderConfig>::all(client.clone()),
            all.clone(),
            move |config| {
                let kind = ProviderConfigKind::ClusterProviderConfig;
                users(&of_cluster, kind, &config.name_any(), None)
            },
        )
        .watches(Api::<ProviderConfig>::all(client), all, move |config| {
            let kind = ProviderConfigKind::ProviderConfig;
            let namespace = config.namespace();
            users(
                &of_namespace,
                kind,
                &config.name_any(),
                namespace.as_deref(),
            )
        })
        .reconcile_on(woken)
        .shutdown_on_signal()
        .run(reconcile, requeue_after, context)
        .for_each(|result| async {
            // Conflicts and objects that are gone by now are everyday business.
            if let Err(ControllerError::ReconcilerFailed(error, pool)) = result {
                tracing::debug!(%pool, %error, "reconciling again");
            }
        })
        .await;
    Ok(())
}

/// The pools that use a configuration.
fn users(
    pools: &Store<SpotPool>,
    kind: ProviderConfigKind,
    name: &str,
    namespace: Option<&str>,
) -> Vec<ObjectRef<SpotPool>> {
    let wanted = ProviderConfigReference {
        kind,
        name: name.to_owned(),
    };
    pools
        .state()
        .iter()
        .filter(|pool| pool.spec.provider_config_ref == wanted)
        .filter(|pool| namespace.is_none() || pool.namespace().as_deref() == namespace)
        .map(|pool| ObjectRef::from_obj(pool.as_ref()))
        .collect()
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "kube calls it with its own handles"
)]
fn requeue_after(pool: Arc<SpotPool>, error: &ReconcileError, _: Arc<Context>) -> Requeue {
    let ReconcileError::Kube(error) = error;
    if let kube::Error::Api(status) = error
        && status.is_conflict()
    {
        return Requeue::requeue(AFTER_CONFLICT);
    }
    tracing::warn!(pool = pool.name_any(), %error, "the API server refused");
    Requeue::requeue(AFTER_REFUSAL)
}
