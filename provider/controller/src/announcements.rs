//! AWS's announcements: a queue of EC2's events, handled within a second.
//!
//! The queue makes the provider react faster, and nothing depends on it: a message may come twice,
//! come late, or reach a provider that crashes. The observer sees every change too.

use std::sync::{Arc, Weak};
use std::time::Duration;

use api::pool::SpotPool;
use jiff::{SignedDuration, Timestamp};
use kube::runtime::reflector::ObjectRef;
use provider_aws::{Ec2Error, Event, Events};
use provider_core::{ErrorClass, Market, Notice, NoticeKind, Refusal};
use tokio::sync::mpsc::UnboundedSender;

use crate::locking::lock;
use crate::open_regions::OpenRegions;
use crate::region::Region;

/// The time before the next call after a call that failed.
const AFTER_ERROR: Duration = Duration::from_secs(10);
/// The age from which an announcement is ignored. It includes differences between clocks.
const OLDEST_NOTICE: SignedDuration = SignedDuration::from_mins(5);
/// How long after an event the provider polls its effects at the fast interval.
const WATCH_EFFECTS: SignedDuration = SignedDuration::from_secs(30);

/// The turn to read a queue. Configurations that name the same queue take turns.
pub type Turn = Arc<tokio::sync::Mutex<()>>;

/// A queue, as the credentials of one region read it.
#[derive(Clone)]
pub struct Queue {
    /// Reads the queue.
    pub events: Arc<dyn Events>,
    /// The turn to read. A queue has one reader at a time, so that none waits for messages that
    /// another one gets.
    pub turn: Turn,
    /// The open regions. The reader passes each message to all of them: SQS delivers a message once,
    /// and the instance in the message may belong to a pool with other credentials.
    pub open: Arc<OpenRegions>,
}

/// Reads the queue until no pool uses the region any more.
pub async fn follow(
    region: Weak<Region>,
    queue: Queue,
    wake: UnboundedSender<ObjectRef<SpotPool>>,
) {
    loop {
        let turn = queue.turn.lock().await;
        if region.strong_count() == 0 {
            return;
        }
        if let Err(error) = read(&queue, &wake).await {
            tracing::warn!(%error, "cannot read the queue of EC2's events");
            // Credentials that cannot read keep no others from it.
            drop(turn);
            tokio::time::sleep(AFTER_ERROR).await;
        }
    }
}

/// Reads the next messages, tells all regions, and deletes the messages.
async fn read(queue: &Queue, wake: &UnboundedSender<ObjectRef<SpotPool>>) -> Result<(), Ec2Error> {
    let messages = queue.events.receive().await?;
    let now = Timestamp::now();
    for region in queue.open.all() {
        let events = messages.iter().filter_map(|message| message.event.as_ref());
        for pool in note(&region, events, now) {
            // The receiver lives as long as the process.
            drop(wake.send(pool));
        }
    }
    let receipts = messages.into_iter().map(|message| message.receipt);
    if let Err(error) = queue.events.done(receipts.collect()).await {
        tracing::warn!(%error, "EC2's events will come again");
    }
    Ok(())
}

/// Records the announcements about instances of this control plane. The offering of an interrupted
/// instance becomes unavailable, so that the replacement comes from another offering. Returns the
/// pools to reconcile.
pub(crate) fn note<'a>(
    region: &Region,
    events: impl Iterator<Item = &'a Event>,
    now: Timestamp,
) -> Vec<ObjectRef<SpotPool>> {
    let pools = region.pools();
    let mut concerned = Vec::new();
    for event in events {
        let notice = event.notice.filter(|notice| is_fresh(notice, now));
        // No look may show the instance yet: none succeeded, or the instance is younger. Its pool
        // finds the notice once a look shows it.
        if let Some(notice) = notice {
            region.notices().store(&event.instance_id, notice);
        }
        let Some(instance) = region.instance(&event.instance_id) else {
            continue;
        };
        region.poll_fast_until(now.saturating_add(WATCH_EFFECTS).unwrap_or(Timestamp::MAX));
        let Some(notice) = notice.filter(|_| instance.offering.market == Market::Spot) else {
            continue;
        };
        if notice.kind == NoticeKind::Interruption {
            let refusal = Refusal {
                class: ErrorClass::Capacity,
                code: "SpotInterruptionWarning".into(),
                message: "AWS takes an instance of this offering back".into(),
            };
            let offering = &instance.offering;
            lock(&region.unavailable()).refused(offering, &refusal, &[], now);
        }
        concerned.extend(pools.get(&instance.pool_uid).cloned());
    }
    concerned
}

/// Whether an announcement is about what happens now. AWS announces two minutes ahead, and a queue may
/// keep a message for days.
fn is_fresh(notice: &Notice, now: Timestamp) -> bool {
    now.duration_since(notice.at).abs() < OLDEST_NOTICE
}

#[cfg(test)]
#[path = "announcements_tests.rs"]
mod tests;
