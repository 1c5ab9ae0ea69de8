//! AWS's announcements: a queue of EC2's events, handled within a second.
//!
//! The queue makes the provider react faster, and nothing depends on it: a message may come twice,
//! come late, or reach a provider that crashes. The observer sees every change too.

use std::sync::{Arc, Weak};
use std::time::Duration;

use api::pool::SpotPool;
use jiff::{SignedDuration, Timestamp};
use kube::runtime::reflector::ObjectRef;
use provider_aws::{Event, Events};
use provider_core::{ErrorClass, NoticeKind, Refusal};
use tokio::sync::mpsc::UnboundedSender;

use crate::region::Region;

/// The time before the next call after a call that failed.
const AFTER_ERROR: Duration = Duration::from_secs(10);
/// How long after an event the provider polls its effects at the fast interval.
const WATCH_EFFECTS: SignedDuration = SignedDuration::from_secs(30);

/// Reads the queue until no pool uses the region any more.
pub async fn follow(
    region: Weak<Region>,
    queue: Arc<dyn Events>,
    wake: UnboundedSender<ObjectRef<SpotPool>>,
) {
    while region.strong_count() > 0 {
        let messages = match queue.receive().await {
            Ok(messages) => messages,
            Err(error) => {
                tracing::warn!(%error, "cannot read the queue of EC2's events");
                tokio::time::sleep(AFTER_ERROR).await;
                continue;
            }
        };
        let Some(region) = region.upgrade() else {
            return;
        };
        let events = messages.iter().filter_map(|message| message.event.as_ref());
        for pool in note(&region, events, Timestamp::now()) {
            // The receiver lives as long as the process.
            let _ = wake.send(pool);
        }
        let receipts = messages.into_iter().map(|message| message.receipt);
        if let Err(error) = queue.done(receipts.collect()).await {
            tracing::warn!(%error, "EC2's events will come again");
        }
    }
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
        // No look may show the instance yet: none succeeded, or the instance is younger. Its pool
        // finds the notice once a look shows it.
        if let Some(notice) = event.notice {
            region.notify(&event.instance_id, notice);
        }
        let Some(instance) = region.instance(&event.instance_id) else {
            continue;
        };
        region.poll_fast_until(now.saturating_add(WATCH_EFFECTS).unwrap_or(Timestamp::MAX));
        let Some(notice) = event.notice else {
            continue;
        };
        if notice.kind == NoticeKind::Interruption {
            let refusal = Refusal {
                class: ErrorClass::Capacity,
                code: "SpotInterruptionWarning".into(),
                message: "AWS takes an instance of this offering back".into(),
            };
            region
                .unavailable()
                .refused(&instance.offering, &refusal, &[], now);
        }
        concerned.extend(pools.get(&instance.pool_uid).cloned());
    }
    concerned
}
