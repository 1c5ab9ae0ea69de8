//! The controller of leases.

use std::sync::Arc;

use api::lease::SpotLease;
use api::pool::SpotPool;
use futures::StreamExt;
use kube::ResourceExt;
use kube::runtime::Controller;
use kube::runtime::controller::{Action as Requeue, Error as ControllerError};
use kube::runtime::reflector::{ObjectRef, Store};
use provider_runtime::metrics::states;
use provider_runtime::watch::Seen;
use provider_runtime::{crds, watch};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Controllers, Stop, after_refusal, is_over};
use crate::lease::{self, Context};
use crate::leases::is_of;
use crate::reconcile::ReconcileError;

impl Controllers {
    /// The data that reconciles of leases share.
    pub(super) fn leases_context(&self, pools: lease::Pools) -> Context {
        Context {
            client: self.client.clone(),
            pools,
            seals: self.context.regions.seals().clone(),
            wake: self.context.regions.waker(),
            events: self.context.events.clone(),
            intervals: self.context.intervals,
            lifecycle: self.lifecycles.of(&states::gvk::<SpotLease>()),
            reconciles: self.reconciles.of("managed/spotlease"),
        }
    }

    /// Runs the controller of leases once their kind is served. Until then no pool has leases.
    pub(super) async fn leases(
        &self,
        context: Arc<Context>,
        mut changed: UnboundedReceiver<ObjectRef<SpotPool>>,
        stop: Stop,
    ) {
        let (client, readiness) = (self.client.clone(), &self.operations.readiness);
        let known = self.context.clone();
        if !crds::find_served::<SpotLease>(&client, readiness).await {
            known.leases.are_known();
            let forget = async { while changed.recv().await.is_some() {} };
            let activated = crds::await_activated::<SpotLease>(&client);
            let activated = async {
                tokio::select! { () = activated => {}, () = forget => {} }
            };
            if !is_over(Box::pin(activated), &stop).await {
                return;
            }
        }
        let tell = move |seen: Seen<'_, SpotLease>| {
            if let Seen::All = seen {
                known.leases.are_known();
            }
        };
        let reports = self.reports.clone();
        let watched = watch::everything::<SpotLease>(client, readiness, reports, tell);
        let leases = watched.store;
        self.context.leases.follow(leases.clone());
        self.operations.metrics.states().watch(leases.clone());
        let of_changed = leases.clone();
        let changed = futures::stream::poll_fn(move |cx| changed.poll_recv(cx));
        let changed =
            changed.flat_map(move |pool| futures::stream::iter(of_pool(&of_changed, &pool)));
        Controller::for_stream(watched.changes, leases)
            .reconcile_on(changed.boxed())
            .graceful_shutdown_on(stop)
            .run(lease::reconcile, requeue_after, context)
            .for_each(|result| async {
                if let Err(ControllerError::ReconcilerFailed(error, lease)) = result {
                    tracing::debug!(%lease, %error, "reconciling again");
                }
            })
            .await;
    }
}

/// The leases of a pool that changed.
fn of_pool(leases: &Store<SpotLease>, pool: &ObjectRef<SpotPool>) -> Vec<ObjectRef<SpotLease>> {
    let leases = leases.state();
    let of_pool = leases.iter().filter(|lease| is_of(lease, pool));
    of_pool
        .map(|lease| ObjectRef::from_obj(lease.as_ref()))
        .collect()
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "kube calls it with its own handles"
)]
fn requeue_after(lease: Arc<SpotLease>, error: &ReconcileError, _: Arc<Context>) -> Requeue {
    after_refusal(&lease.name_any(), error)
}
