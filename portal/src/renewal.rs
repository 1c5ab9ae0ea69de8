//! Looks at people again while they are signed in: at their groups, and whether they still may sign in.

use jiff::Timestamp;
use portal_core::identity::Person;
use tracing::{info, warn};

use crate::configuration::Groups;
use crate::oidc::{self, Provider};
use crate::sessions::{Current, Look, Renewal, Session, Sessions};

/// Why a session ends before its time.
#[derive(Debug, thiserror::Error)]
enum Ends {
    #[error(transparent)]
    Provider(#[from] oidc::Error),
    #[error(transparent)]
    Refused(#[from] portal_core::identity::Refused),
    #[error("the provider of identities now names {0}")]
    Another(String),
}

/// What a look at a person needs.
pub(crate) struct Renewals<'p> {
    pub(crate) sessions: &'p Sessions,
    pub(crate) provider: &'p Provider,
    pub(crate) groups: &'p Groups,
}

impl Renewals<'_> {
    /// The session of a cookie, after the provider of identities was asked again if that is due; none if there is
    /// none, or if it is over. Without an answer of the provider, the session goes on.
    pub(crate) async fn session(
        &self,
        cookie: &str,
        look: Look,
        now: Timestamp,
    ) -> Option<Current> {
        let current = self.sessions.look(cookie, look, now)?;
        let Some(renewal) = &current.session.renewal else {
            return Some(current);
        };
        if !self.sessions.begins_to_renew(cookie, now).await {
            return Some(current);
        }
        let user = &current.session.person.user;
        match self.asked(&current.session, renewal).await {
            Ok(session) => {
                if let Err(error) = self.sessions.renew(cookie, &session).await {
                    warn!(%error, user, "cannot write a session again");
                }
                // What was written counts, also if the session has ended meanwhile.
                self.sessions.look(cookie, look, now)
            }
            Err(Ends::Provider(error @ oidc::Error::OutOfReach(_))) => {
                warn!(%error, user, "the provider of identities says nothing about a person");
                self.sessions.renews_soon(cookie, now);
                Some(current)
            }
            Err(why) => {
                info!(target: "audit", user, verb = "sign out", outcome = why.to_string());
                if let Err(error) = self.sessions.end(cookie).await {
                    // This replica has forgotten it. The next look of another one ends it there.
                    warn!(%error, user, "cannot delete the session of a person who may not sign in");
                }
                None
            }
        }
    }

    async fn asked(&self, session: &Session, renewal: &Renewal) -> Result<Session, Ends> {
        let told = self.provider.tell_again(renewal).await?;
        let person = match &told.claims {
            None => session.person.clone(),
            Some(claims) => {
                let counts = |group: &str| self.groups.counts(group);
                let person = self.provider.mapping().person(claims, counts)?;
                same(&session.person, person)?
            }
        };
        Ok(Session {
            person,
            renewal: Some(told.renewal),
            ..session.clone()
        })
    }
}

/// The person as they are now. A session does not become another person's.
fn same(before: &Person, now: Person) -> Result<Person, Ends> {
    if before.user == now.user {
        Ok(now)
    } else {
        Err(Ends::Another(now.user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_does_not_become_another_persons() {
        let person = |user: &str, group: &str| Person {
            user: user.to_owned(),
            groups: vec![group.to_owned()],
            email: None,
        };
        let alice = person("alice", "vision");
        assert_eq!(
            same(&alice, person("alice", "all")).unwrap().groups,
            ["all"]
        );
        assert!(matches!(
            same(&alice, person("bob", "vision")),
            Err(Ends::Another(_))
        ));
    }
}
