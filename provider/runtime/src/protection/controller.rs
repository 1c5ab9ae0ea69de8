//! The controller that watches configurations and their usages.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use api::managed::ProviderConfigStatus;
use futures::StreamExt as _;
use kube::Resource;
use kube::api::{Api, PartialObjectMeta};
use kube::core::object::HasStatus;
use kube::runtime::controller::{Action, Error as ControllerError};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, watcher};
use serde::de::DeserializeOwned;

use super::{Protection, reconcile};
use crate::metrics::reconciles::OfController;
use crate::readiness::Readiness;
use crate::unreadable::Reports;
use crate::usage::CONFIG_KIND_LABEL;
use crate::watch;

/// The time before the next try after the API server refused.
const AFTER_REFUSAL: Duration = Duration::from_secs(5);

/// Protects the configurations of kind `C` until `stop`.
pub async fn run<C, U>(
    protection: Protection<C>,
    readiness: &Readiness,
    reports: Reports,
    reconciles: OfController,
    stop: impl Future<Output = ()> + Send + Sync + 'static,
) where
    C: Resource<DynamicType = ()>
        + HasStatus<Status = ProviderConfigStatus>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + Sync
        + 'static,
    U: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let client = protection.client.clone();
    let watched = watch::everything::<C>(client.clone(), readiness, reports, |_| {});
    let configs = watched.store;
    let controller = Controller::for_stream(watched.changes, configs.clone());
    let usages = Api::<PartialObjectMeta<U>>::all(client);
    // A usage names only the configuration that it uses now, and not the one before. So all
    // configurations are counted again; there are few.
    let concerned = move |usage: PartialObjectMeta<U>| -> Vec<ObjectRef<C>> {
        let labels = usage.metadata.labels.unwrap_or_default();
        let is_of_kind = labels
            .get(CONFIG_KIND_LABEL)
            .is_none_or(|kind| *kind == C::kind(&()));
        let all = configs.state();
        let concerned = all.iter().filter(|_| is_of_kind);
        concerned.map(|c| ObjectRef::from_obj(c.as_ref())).collect()
    };
    let reconcile = move |config: Arc<C>, protection: Arc<Protection<C>>| {
        let reconciles = reconciles.clone();
        async move {
            let running = reconcile::<C, U>(config, &protection);
            reconciles.count(running).await
        }
    };
    controller
        .watches(usages, watcher::Config::default(), concerned)
        .graceful_shutdown_on(stop)
        .run(
            reconcile,
            |_, _, _| Action::requeue(AFTER_REFUSAL),
            Arc::new(protection),
        )
        .for_each(|result| async {
            // Conflicts are expected.
            if let Err(ControllerError::ReconcilerFailed(error, config)) = result {
                tracing::debug!(%config, %error, "reconciling again");
            }
        })
        .await;
}
