//! The home volume of a `SpotPool`.

use api::home::PoolHome;
use api::policy::WorkspacePolicy;
use api::workspace::HomeStatus;
use function_workspace::cause::{Cause, Reason};

use crate::on_demand::home::Finding;
use crate::resolved::Resolved;
use crate::spot::observed::ObservedPool;

/// The desired home of a pool; none without a home. Its size never shrinks.
pub fn desired(
    resolved: &Resolved,
    policy: &WorkspacePolicy,
    observed: Option<&ObservedPool>,
) -> Option<PoolHome> {
    let made = observed.and_then(ObservedPool::home_size_gib);
    let size = resolved.home_size_gib.max(made)?;
    resolved.has_home.then_some(PoolHome {
        size_gib: size,
        on_delete: policy.home.on_delete,
        moves: policy.home.moves,
    })
}

/// The state of a home volume that does not exist yet.
pub fn absent() -> Finding {
    Finding {
        ready: false,
        attached: false,
        cause: Cause::new(
            Reason::Waiting,
            "waiting for the SpotPool to make the home volume",
        ),
        detaching: false,
        status: None,
    }
}

/// The state of a pool's home volume.
pub fn finding(pool: &ObservedPool) -> Finding {
    let Some(home) = &pool.status.at_provider.home else {
        return absent();
    };
    let Some(volume) = &home.volume_id else {
        return absent();
    };
    let holder = home.attached_to.as_deref();
    let attached = holder.is_some_and(|id| pool.running().any(|i| i.id == id));
    let (reason, message) = match (holder, pool.running().next()) {
        (Some(holder), _) => (
            Reason::Attaching,
            format!("{volume} is attached to {holder}, which does not run"),
        ),
        (None, Some(next)) => (
            Reason::Attaching,
            format!("waiting for {volume} to be attached to {}", next.id),
        ),
        (None, None) => (
            Reason::Detached,
            format!("{volume} is kept until there is an instance to attach it to"),
        ),
    };
    Finding {
        ready: attached,
        attached,
        cause: Cause::new(reason, message),
        // Crossplane watches the pool, so its changes cause a call.
        detaching: false,
        status: Some(HomeStatus {
            volume_id: volume.clone(),
            zone: home.zone.clone(),
            subnet_id: None,
            attached_to: holder.map(str::to_owned),
            pool: Some(pool.name.clone()),
        }),
    }
}
