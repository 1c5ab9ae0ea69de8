//! Follows objects of the API server.

use std::fmt::Debug;

use futures::StreamExt;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;
use tracing::warn;

/// Hands over what happens to objects, until the process ends. Returns when all objects that exist were handed
/// over. `what` names the objects in the portal's log.
pub(crate) async fn follow<K>(
    objects: Api<K>,
    config: Config,
    what: &'static str,
    take: impl FnMut(Event<K>) + Send + 'static,
) -> Result<(), oneshot::error::RecvError>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let (ready, is_ready) = oneshot::channel();
    tokio::spawn(run(objects, config, what, take, ready));
    is_ready.await
}

async fn run<K>(
    objects: Api<K>,
    config: Config,
    what: &'static str,
    mut take: impl FnMut(Event<K>),
    ready: oneshot::Sender<()>,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let events = watcher(objects, config).default_backoff();
    let mut events = std::pin::pin!(events);
    let mut ready = Some(ready);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let is_whole = matches!(event, Event::InitDone);
                take(event);
                if is_whole && let Some(ready) = ready.take() {
                    // The portal may have been told to end meanwhile.
                    let _ = ready.send(());
                }
            }
            Err(error) => warn!(%error, what, "cannot follow the objects; trying again"),
        }
    }
}
