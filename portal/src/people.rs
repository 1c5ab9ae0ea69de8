//! The `DevUser`s, as the API server knows them now.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::TryStreamExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watching};
use kube::{Client, ResourceExt};
use portal_core::account::{Account, NoAccount, account};
use portal_core::identity::Person;
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tracing::warn;

/// All `DevUser`s.
#[derive(Clone)]
pub(crate) struct People(watch::Receiver<Arc<BTreeMap<String, Value>>>);

impl People {
    /// Follows the `DevUser`s. Returns when those that exist are known.
    pub(crate) async fn follow(client: Client) -> Result<Self, oneshot::error::RecvError> {
        let (sender, receiver) = watch::channel(Arc::default());
        let (ready, is_ready) = oneshot::channel();
        tokio::spawn(run(client, sender, ready));
        is_ready.await?;
        Ok(Self(receiver))
    }

    /// The account of a person.
    pub(crate) fn account(&self, person: &Person) -> Result<Account, NoAccount> {
        account(person, self.0.borrow().values())
    }

    /// Tells when something has changed.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The portal ends.
            std::future::pending::<()>().await;
        }
    }
}

async fn run(
    client: Client,
    sender: watch::Sender<Arc<BTreeMap<String, Value>>>,
    ready: oneshot::Sender<()>,
) {
    let kind = GroupVersionKind::gvk(api::WORKSPACE_GROUP, api::VERSION, "DevUser");
    let resource = ApiResource::from_gvk_with_plural(&kind, "devusers");
    let users: Api<DynamicObject> = Api::all_with(client, &resource);
    let events = watching(users, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    let (mut ready, mut users) = (Some(ready), BTreeMap::new());
    loop {
        match events.try_next().await {
            Ok(Some(Event::Init)) => users.clear(),
            Ok(Some(Event::InitApply(user))) => put(&mut users, &user),
            Ok(Some(event)) => {
                match &event {
                    Event::Apply(user) => put(&mut users, user),
                    Event::Delete(user) => drop(users.remove(&user.name_any())),
                    _ => {}
                }
                sender.send_replace(Arc::new(users.clone()));
                if let Some(ready) = ready.take() {
                    // The portal may have been told to end meanwhile.
                    let _ = ready.send(());
                }
            }
            Ok(None) => return,
            Err(error) => warn!(%error, "cannot follow the DevUsers; trying again"),
        }
    }
}

fn put(users: &mut BTreeMap<String, Value>, user: &DynamicObject) {
    match serde_json::to_value(user) {
        Ok(value) => {
            users.insert(user.name_any(), value);
        }
        Err(error) => warn!(%error, user = user.name_any(), "cannot read a DevUser"),
    }
}
