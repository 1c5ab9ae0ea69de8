//! The provider's controllers: for pools, for their leases, and for the configurations that they
//! use.

mod leases;

use std::sync::Arc;
use std::time::Duration;

use api::managed::{ProviderConfigKind, ProviderConfigReference, ProviderConfigStatus};
use api::pool::SpotPool;
use api::provider_config::{ClusterProviderConfig, ProviderConfig, ProviderConfigUsage};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt};
use kube::api::ApiResource;
use kube::core::PartialObjectMeta;
use kube::core::object::HasStatus;
use kube::runtime::Controller;
use kube::runtime::controller::{Action as Requeue, Config, Error as ControllerError};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Client, Resource, ResourceExt};
use provider_runtime::metrics::lifecycle::Lifecycles;
use provider_runtime::metrics::reconciles::Reconciles;
use provider_runtime::operations::Operations;
use provider_runtime::protection::{self, NotPermitted, Protection};
use provider_runtime::readiness::Readiness;
use provider_runtime::unreadable::Reports;
use provider_runtime::watch::Seen;
use provider_runtime::{crds, watch};
use serde::de::DeserializeOwned;
use tokio::sync::SetOnce;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::access;
use crate::context::Context;
use crate::inventory::Inventory;
use crate::lease;
use crate::observations::Observations;
use crate::reconcile::{AFTER_CONFLICT, ReconcileError};
use crate::turns::reconcile_in_turn;

/// The time before the next reconcile after another refusal of the API server.
const AFTER_REFUSAL: Duration = Duration::from_secs(5);

/// Ends every controller in an orderly way.
pub type Stop = Shared<BoxFuture<'static, ()>>;

/// The input of the controllers.
pub struct Controllers {
    /// The client of the API server.
    pub client: Client,
    /// The metrics and the readiness that the controllers report to.
    pub operations: Operations,
    /// Counts the reconciles.
    pub reconciles: Reconciles,
    /// Measures the lives of resources.
    pub lifecycles: Lifecycles,
    /// Tells people about objects that cannot be read.
    pub reports: Reports,
    /// The data that reconciles of pools share.
    pub context: Arc<Context>,
    /// The number of pools that are reconciled at once.
    pub concurrency: u16,
}

impl Controllers {
    /// Runs the controllers until `stop`. Each one starts when its kinds are served. Pools that
    /// arrive in `woken` are reconciled again.
    pub async fn run(self, woken: UnboundedReceiver<ObjectRef<SpotPool>>, stop: Stop) {
        // The platform team writes a ClusterProviderConfig, which the flags do not bind.
        let everything = |_: &ClusterProviderConfig| None;
        let cluster_configs = self.protect(Box::new(everything), stop.clone()).boxed();
        let rights = self.context.accesses.rights().clone();
        let not_permitted = move |config: &ProviderConfig| access::not_permitted(config, &rights);
        let configs = self.protect(Box::new(not_permitted), stop.clone()).boxed();
        let pools = self.pools(woken, stop).boxed();
        tokio::join!(pools, cluster_configs, configs);
    }

    /// Protects the configurations of a kind while pools use them, and tells in their status what
    /// the provider does not do for them.
    fn protect<C>(
        &self,
        not_permitted: NotPermitted<C>,
        stop: Stop,
    ) -> impl Future<Output = ()> + use<C>
    where
        C: Resource<DynamicType = ()>
            + HasStatus<Status = ProviderConfigStatus>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug
            + Send
            + Sync
            + 'static,
    {
        let protection = Protection {
            client: self.client.clone(),
            managed: vec![ApiResource::erase::<SpotPool>(&())],
            events: self.context.events.clone(),
            not_permitted,
        };
        let name = format!("providerconfig/{}", C::kind(&()).to_lowercase());
        let reconciles = self.reconciles.of(&name);
        let (client, readiness) = (self.client.clone(), self.operations.readiness.clone());
        let reports = self.reports.clone();
        async move {
            let served = async {
                crds::await_served::<C>(&client, &readiness).await;
                crds::await_served::<ProviderConfigUsage>(&client, &readiness).await;
            };
            if is_over(served, &stop).await {
                let run = protection::run::<C, ProviderConfigUsage>;
                run(protection, &readiness, reports, reconciles, stop).await;
            }
        }
    }

    async fn pools(&self, mut woken: UnboundedReceiver<ObjectRef<SpotPool>>, stop: Stop) {
        let (client, readiness) = (self.client.clone(), &self.operations.readiness);
        if !is_over(await_pools(&client, readiness), &stop).await {
            return;
        }
        let pools_are_known = Arc::new(SetOnce::new());
        let seen_all = pools_are_known.clone();
        let context = self.context.clone();
        let (sender, changed) = mpsc::unbounded_channel();
        let tell = move |seen: Seen<'_, SpotPool>| match seen {
            // A watch that restarts reports this again.
            Seen::All => drop(seen_all.set(())),
            // There is no receiver any more when the process stops.
            Seen::One(pool) => drop(sender.send(ObjectRef::from_obj(pool))),
            Seen::Gone(pool) => {
                drop(sender.send(ObjectRef::from_obj(pool)));
                // The pool may be gone without a reconcile.
                context.forget(pool);
            }
        };
        let reports = self.reports.clone();
        let watched = watch::everything::<SpotPool>(client.clone(), readiness, reports, tell);
        let pools = watched.store;
        let metrics = &self.operations.metrics;
        metrics.states().watch(pools.clone());
        metrics.collect(Box::new(Inventory::of(pools.clone())));
        metrics.collect(Box::new(Observations::of(self.context.clone())));
        let known = lease::Pools {
            store: pools.clone(),
            are_known: pools_are_known,
            unreadable: watched.unreadable,
        };
        let of_leases = Arc::new(self.leases_context(known));
        let leases = self.leases(of_leases, changed, stop.clone());
        let woken = futures::stream::poll_fn(move |cx| woken.poll_recv(cx));
        let context = &self.context;
        let of_cluster = affected(ProviderConfigKind::ClusterProviderConfig, &pools, context);
        let of_namespace = affected(ProviderConfigKind::ProviderConfig, &pools, context);
        let pools = Controller::for_stream(watched.changes, pools)
            .with_config(Config::default().concurrency(self.concurrency))
            .watches_stream(
                watch::wishes::<ClusterProviderConfig>(client.clone()),
                of_cluster,
            )
            .watches_stream(watch::wishes::<ProviderConfig>(client), of_namespace)
            .reconcile_on(woken)
            .graceful_shutdown_on(stop)
            .run(reconcile_in_turn, requeue_after, self.context.clone())
            .for_each(|result| async {
                // Conflicts, and objects that are gone by now, are expected.
                if let Err(ControllerError::ReconcilerFailed(error, pool)) = result {
                    tracing::debug!(%pool, %error, "reconciling again");
                }
            });
        tokio::join!(pools, leases);
    }
}

/// Returns when the API server serves every kind that the controller of pools watches.
async fn await_pools(client: &Client, readiness: &Readiness) {
    crds::await_served::<SpotPool>(client, readiness).await;
    crds::await_served::<ClusterProviderConfig>(client, readiness).await;
    crds::await_served::<ProviderConfig>(client, readiness).await;
    crds::await_served::<ProviderConfigUsage>(client, readiness).await;
}

/// Whether something is over before the process is told to stop.
async fn is_over(something: impl Future<Output = ()>, stop: &Stop) -> bool {
    tokio::select! {
        () = something => true,
        () = stop.clone() => false,
    }
}

/// The pools that use a changed configuration. The configuration is removed from the cache.
fn affected<C: Resource<DynamicType = ()>>(
    kind: ProviderConfigKind,
    pools: &Store<SpotPool>,
    context: &Arc<Context>,
) -> impl Fn(PartialObjectMeta<C>) -> Vec<ObjectRef<SpotPool>> + Send + Sync + 'static {
    let (pools, context) = (pools.clone(), context.clone());
    move |config| {
        let (name, namespace) = (config.name_any(), config.namespace());
        let namespace = namespace.as_deref();
        context.accesses.forget(kind, namespace, &name);
        users(&pools, kind, &name, namespace)
    }
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
    after_refusal(&pool.name_any(), error)
}

fn after_refusal(name: &str, error: &ReconcileError) -> Requeue {
    if let ReconcileError::Kube(kube::Error::Api(status)) = error
        && status.is_conflict()
    {
        return Requeue::requeue(AFTER_CONFLICT);
    }
    tracing::warn!(name, %error, "a reconcile ended early");
    Requeue::requeue(AFTER_REFUSAL)
}
