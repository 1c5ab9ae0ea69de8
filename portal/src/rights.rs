//! As whom the portal acts for a person, and whose claims the person sees.

use portal_core::account::{Account, NoAccount};
use portal_core::identity::Person;
use portal_core::problem::Problem;
use portal_core::visible::Visible;
use portal_core::wish::Place;
use tokio::sync::watch;

use crate::access::Access;
use crate::cluster::Who;
use crate::people::People;

/// How the portal acts for people.
#[derive(Clone)]
pub(crate) enum Rights {
    /// As the service account of the person's namespace. The person sees this namespace.
    Account(People),
    /// As the person, with the rights that they have with kubectl.
    Person(People, Access),
}

/// A person who changes something.
pub(crate) struct Actor {
    /// As whom the portal asks the API server.
    pub(crate) who: Who,
    /// The person's account. With rights of their own, a person may have none.
    pub(crate) account: Option<Account>,
    /// The claims that the person sees.
    pub(crate) visible: Visible,
}

impl Actor {
    /// Where the person may make workspaces. Kubernetes decides what they may do there.
    pub(crate) fn place(&self) -> Place<'_> {
        Place {
            account: self.account.as_ref(),
            chooses_namespace: matches!(self.who, Who::Person(_)),
        }
    }

    /// The person's account, for what is made for its owner.
    pub(crate) fn own_account(&self, person: &Person) -> Result<&Account, Problem> {
        let account = self.account.as_ref();
        account.ok_or_else(|| no_account(&NoAccount::Unknown(person.user.clone())))
    }
}

impl Rights {
    /// The account of a person.
    pub(crate) fn account(&self, person: &Person) -> Result<Account, NoAccount> {
        match self {
            Self::Account(people) | Self::Person(people, _) => people.account(person),
        }
    }

    /// Why a person cannot do anything here; none if they can.
    pub(crate) fn obstacle(&self, person: &Person) -> Option<NoAccount> {
        match self {
            Self::Account(people) => people.account(person).err(),
            Self::Person(..) => None,
        }
    }

    /// The claims that a person sees.
    pub(crate) async fn visible(&self, person: &Person) -> Visible {
        match self {
            Self::Account(people) => match people.account(person) {
                Ok(account) => Visible::only(account.namespace.as_str()),
                Err(_) => Visible::nothing(),
            },
            Self::Person(_, access) => access.visible(person).await,
        }
    }

    /// A person who changes something.
    pub(crate) async fn actor(&self, person: &Person) -> Result<Actor, Problem> {
        let account = self.account(person);
        let (who, visible) = match self {
            Self::Account(_) => match &account {
                Ok(account) => {
                    let namespace = account.namespace.as_str();
                    (Who::Account(namespace.to_owned()), Visible::only(namespace))
                }
                Err(none) => return Err(no_account(none)),
            },
            Self::Person(_, access) => (Who::Person(person.clone()), access.visible(person).await),
        };
        Ok(Actor {
            who,
            account: account.ok(),
            visible,
        })
    }

    /// Tells when somebody may see something else.
    pub(crate) fn changes(&self) -> Changes {
        match self {
            Self::Account(people) => Changes::People(people.clone()),
            Self::Person(_, access) => Changes::Rights(access.changes()),
        }
    }
}

/// Changes of what people see.
pub(crate) enum Changes {
    /// Of the accounts.
    People(People),
    /// Of roles and bindings.
    Rights(watch::Receiver<u64>),
}

impl Changes {
    /// Waits for the next change.
    pub(crate) async fn next(&mut self) {
        match self {
            Self::People(people) => people.changed().await,
            Self::Rights(changes) => {
                if changes.changed().await.is_err() {
                    // The portal ends.
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

fn no_account(none: &NoAccount) -> Problem {
    Problem::no_account(none.to_string())
}
