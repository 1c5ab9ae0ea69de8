//! Reads the consoles of new instances, one after the other, for all pools of a region.

use std::sync::{Arc, Weak};
use std::time::Duration;

use api::pool::SpotPool;
use jiff::Timestamp;
use kube::runtime::reflector::ObjectRef;
use provider_core::Console;
use tokio::sync::mpsc::UnboundedSender;

use crate::consoles::{Consoles, Read};
use crate::pass::left;
use crate::region::Region;

/// The time between two calls: the allowance of the region's pools together. It is a quarter of what
/// AWS grants an account, which is 20 such calls a second ("Request throttling for the Amazon EC2
/// API"). The last of a thousand workspaces that start together is read three minutes after the
/// first.
const BETWEEN_CALLS: Duration = Duration::from_millis(200);
/// How long the reader waits for new instances before it looks whether its region is still in use.
const REGION_CHECK: Duration = Duration::from_mins(1);

/// Reads the consoles of a region until no pool uses the region any more, and wakes the pools whose
/// consoles say something new.
pub async fn follow(region: Weak<Region>, wake: UnboundedSender<ObjectRef<SpotPool>>) {
    while let Some(consoles) = consoles_of(&region) {
        let now = Timestamp::now();
        let next = consoles.next().map(|(at, ..)| at);
        if next.is_none_or(|at| at > now) {
            let wait = next.map_or(REGION_CHECK, |at| left(at, now));
            // A new instance may come before. Nothing is lost if none comes.
            let new = consoles.wanted();
            let _ = tokio::time::timeout(wait.min(REGION_CHECK), new).await;
            continue;
        }
        let Some(region) = region.upgrade() else {
            return;
        };
        if let Some(pool) = read_next(&region, now).await {
            // The receiver lives as long as the process.
            let _ = wake.send(pool);
        }
        drop(region);
        tokio::time::sleep(BETWEEN_CALLS).await;
    }
}

/// Reads the next console whose time has come. Returns its pool if it says something new.
pub(crate) async fn read_next(region: &Region, now: Timestamp) -> Option<ObjectRef<SpotPool>> {
    let (at, pool_uid, id) = region.consoles.next()?;
    if at > now {
        return None;
    }
    let console = region.ec2.console(&id).await;
    if let Err(error) = &console {
        tracing::warn!(id, %error, "cannot read a console");
    }
    let console = console.map(|output| Console::read(&output));
    let is_news = region
        .consoles
        .store(&pool_uid, &id, Read { at: now, console });
    region.pools().remove(&pool_uid).filter(|_| is_news)
}

fn consoles_of(region: &Weak<Region>) -> Option<Arc<Consoles>> {
    Some(region.upgrade()?.consoles.clone())
}
