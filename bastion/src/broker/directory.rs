//! Everybody who may log in, as the API server knows them now.

use std::collections::BTreeMap;
use std::sync::Arc;

use bastion_core::accounts::Accounts;
use futures::{StreamExt, TryStreamExt};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watching};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::sync::watch;
use tracing::{info, warn};

/// Follows the `DevUser`s. Returns when the first ones are known.
pub(super) async fn follow(
    client: &Client,
) -> Result<watch::Receiver<Arc<Accounts>>, Box<dyn std::error::Error>> {
    let kind = GroupVersionKind::gvk("platform.acme.io", "v1alpha1", "DevUser");
    let resource = ApiResource::from_gvk_with_plural(&kind, "devusers");
    let users: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let (sender, receiver) = watch::channel(Arc::new(Accounts::default()));
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let mut known = Known {
            users: BTreeMap::new(),
            sender,
        };
        let mut ready = Some(ready);
        let events = watching(users, watcher::Config::default()).default_backoff();
        let mut events = events.boxed();
        loop {
            match events.try_next().await {
                Ok(Some(event)) => {
                    let is_whole = known.take(event);
                    if is_whole && let Some(ready) = ready.take() {
                        // The broker may have been told to end meanwhile.
                        let _ = ready.send(());
                    }
                }
                Ok(None) => return,
                Err(error) => warn!(%error, "cannot follow the DevUsers; trying again"),
            }
        }
    });
    is_ready.await?;
    Ok(receiver)
}

struct Known {
    users: BTreeMap<String, Value>,
    sender: watch::Sender<Arc<Accounts>>,
}

impl Known {
    /// Takes an event. Returns whether the accounts are whole.
    fn take(&mut self, event: Event<DynamicObject>) -> bool {
        match event {
            Event::Init => {
                self.users.clear();
                return false;
            }
            Event::InitApply(user) => {
                self.put(&user);
                return false;
            }
            Event::InitDone => {}
            Event::Apply(user) => self.put(&user),
            Event::Delete(user) => {
                self.users.remove(&user.name_any());
            }
        }
        let accounts = Accounts::new(self.users.values());
        if *self.sender.borrow().as_ref() != accounts {
            info!(users = self.users.len(), "who may log in has changed");
            self.sender.send_replace(Arc::new(accounts));
        }
        true
    }

    fn put(&mut self, user: &DynamicObject) {
        match serde_json::to_value(user) {
            Ok(value) => {
                self.users.insert(user.name_any(), value);
            }
            Err(error) => warn!(%error, user = user.name_any(), "cannot read a DevUser"),
        }
    }
}
