//! Everybody who may log in, as the API server knows them now.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
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

use super::settings::Settings;

/// The shell of every account.
const SHELL: &str = "/usr/bin/gpu-bastion";
/// The home folder of every account.
const HOME: &str = "/";

/// Follows the `DevUser`s, and keeps the accounts of the system's name service as they are. Returns when
/// the first ones are written.
pub(super) async fn follow(
    client: &Client,
    settings: &Settings,
) -> Result<watch::Receiver<Arc<Accounts>>, Box<dyn std::error::Error>> {
    let kind = GroupVersionKind::gvk("platform.acme.io", "v1alpha1", "DevUser");
    let resource = ApiResource::from_gvk_with_plural(&kind, "devusers");
    let users: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let (sender, receiver) = watch::channel(Arc::new(Accounts::default()));
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (folder, uid) = (settings.accounts.clone(), settings.sshd_uid);
    tokio::spawn(async move {
        let mut known = Known {
            users: BTreeMap::new(),
            folder,
            uid,
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
    folder: PathBuf,
    /// The user id of all accounts.
    uid: u32,
    sender: watch::Sender<Arc<Accounts>>,
}

impl Known {
    /// Takes an event. Returns whether the accounts are whole and written.
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
        if *self.sender.borrow().as_ref() == accounts && self.folder.join("passwd").exists() {
            return true;
        }
        if let Err(error) = self.write(&accounts) {
            warn!(%error, "cannot write the accounts");
            return false;
        }
        info!(accounts = self.users.len(), "wrote the accounts");
        self.sender.send_replace(Arc::new(accounts));
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

    fn write(&self, accounts: &Accounts) -> io::Result<()> {
        let unfinished = self.folder.join(".passwd");
        fs::write(&unfinished, accounts.passwd(self.uid, HOME, SHELL))?;
        fs::rename(unfinished, self.folder.join("passwd"))
    }
}
