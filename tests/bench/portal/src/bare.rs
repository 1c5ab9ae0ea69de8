//! A watch of the API server and nothing else: how early anybody can know of a change.

use std::sync::Arc;

use futures::TryStreamExt;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};

use crate::Outcome;
use crate::claims::kind;
use crate::latency::State;
use crate::seen::{Clock, Numbers, Shared};

/// Watches all claims until the program ends. Returns what is seen.
pub(crate) async fn watch(
    client: Client,
    numbers: Arc<Numbers>,
    clock: Clock,
) -> Outcome<Arc<Shared>> {
    let claims: Api<DynamicObject> = Api::all_with(client, &kind());
    let listed = claims.list(&ListParams::default().limit(1)).await?;
    let from = listed.metadata.resource_version.unwrap_or_default();
    let seen = Arc::new(Shared::default());
    let told = Arc::clone(&seen);
    tokio::spawn(async move {
        if let Err(error) = follow(&claims, from, &numbers, clock, &told).await {
            eprintln!("warning: the bare watch ended: {error}");
        }
    });
    Ok(seen)
}

async fn follow(
    claims: &Api<DynamicObject>,
    mut from: String,
    numbers: &Numbers,
    clock: Clock,
    seen: &Shared,
) -> Outcome<()> {
    loop {
        let events = claims.watch(&WatchParams::default(), &from).await?;
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.try_next().await? {
            match event {
                WatchEvent::Added(claim)
                | WatchEvent::Modified(claim)
                | WatchEvent::Deleted(claim) => {
                    let at = clock.now();
                    let metadata = claim.metadata;
                    from = metadata.resource_version.unwrap_or_default();
                    let key = (
                        metadata.namespace.unwrap_or_default(),
                        metadata.name.unwrap_or_default(),
                    );
                    if let Some(&claim) = numbers.get(&key) {
                        let version = from.parse()?;
                        seen.lock().states.push(State { claim, version, at });
                    }
                }
                WatchEvent::Bookmark(bookmark) => from = bookmark.metadata.resource_version,
                WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
            }
        }
    }
}
