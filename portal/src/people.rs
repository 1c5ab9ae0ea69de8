//! The `DevUser`s, as the API server knows them now.

use kube::Client;
use portal_core::account::{Account, NoAccount, account};
use portal_core::identity::Person;
use tokio::sync::oneshot;

use crate::objects::{self, Objects, Served};

const USERS: Served = Served::ours("DevUser", "devusers");

/// All `DevUser`s.
#[derive(Clone)]
pub(crate) struct People(Objects);

impl People {
    /// Follows the `DevUser`s. Returns when those that exist are known.
    pub(crate) async fn follow(client: Client) -> Result<Self, oneshot::error::RecvError> {
        Ok(Self(objects::follow(client, USERS).await?))
    }

    /// All `DevUser`s, by name.
    pub(crate) fn users(&self) -> Objects {
        self.0.clone()
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
