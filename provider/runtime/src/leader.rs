//! Leader election by a Lease of coordination.k8s.io.
//!
//! Of several processes with the same Lease one leads. Every write names the version that was read,
//! so if two processes take the Lease at once, the API server refuses one. A leader that cannot renew
//! the Lease works on until it sees that another process has taken it: an API server that is busy would
//! otherwise stop the only provider. So two processes may work for some seconds. The caller must ensure
//! by other means that their actions are harmless then.

mod election;

use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::time::timeout;

use election::{Election, Move};
pub use election::{Lost, Replica, Terms};

/// A process that wants to lead.
#[derive(Debug)]
pub struct Candidate {
    leases: Api<Lease>,
    name: String,
    terms: Terms,
    election: Election,
}

/// A process that leads.
#[derive(Debug)]
pub struct Leader(Candidate);

impl Candidate {
    /// A candidate for the Lease `name` in a namespace.
    pub fn new(
        client: Client,
        namespace: &str,
        name: impl Into<String>,
        replica: Replica,
        terms: Terms,
    ) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            name: name.into(),
            terms,
            election: Election::new(replica, terms),
        }
    }

    /// Returns when this process leads.
    pub async fn elected(mut self) -> Leader {
        loop {
            // A candidate cannot lose the Lease, so only a written Lease matters.
            if let Ok(true) = self.attempt().await {
                return Leader(self);
            }
            tokio::time::sleep(self.terms.retry).await;
        }
    }

    /// Makes one attempt, and returns whether the Lease was written. Refusals of the API server are
    /// only logged, because the next attempt follows.
    async fn attempt(&mut self) -> Result<bool, Lost> {
        match timeout(self.terms.answer, self.play()).await {
            Ok(Ok(Move::Write(_))) => {
                self.election.renewed();
                Ok(true)
            }
            Ok(Ok(Move::Wait)) => Ok(false),
            Ok(Ok(Move::Stop(lost))) => Err(lost),
            Ok(Err(kube::Error::Api(status))) if status.is_conflict() => Ok(false),
            Ok(Err(error)) => {
                tracing::warn!(lease = self.name, %error, "cannot renew the lease");
                Ok(false)
            }
            Err(_) => {
                tracing::warn!(lease = self.name, "the API server does not answer");
                Ok(false)
            }
        }
    }

    async fn play(&mut self) -> kube::Result<Move> {
        let lease = self.leases.get_opt(&self.name).await?;
        let next = self
            .election
            .next(lease.as_ref(), Instant::now(), Timestamp::now());
        if let Move::Write(spec) = &next {
            self.write(lease, spec.clone()).await?;
        }
        Ok(next)
    }

    async fn write(&self, lease: Option<Lease>, spec: LeaseSpec) -> kube::Result<()> {
        let parameters = PostParams::default();
        if let Some(lease) = lease {
            let lease = Lease {
                spec: Some(spec),
                ..lease
            };
            self.leases.replace(&self.name, &parameters, &lease).await?;
        } else {
            let lease = Lease {
                metadata: ObjectMeta {
                    name: Some(self.name.clone()),
                    ..ObjectMeta::default()
                },
                spec: Some(spec),
            };
            self.leases.create(&parameters, &lease).await?;
        }
        Ok(())
    }
}

impl Leader {
    /// Renews the Lease, and returns when another process has it. The process must then end
    /// everything that it does as a leader.
    pub async fn lost(&mut self) -> Lost {
        let candidate = &mut self.0;
        loop {
            tokio::time::sleep(candidate.terms.retry).await;
            if let Err(lost) = candidate.attempt().await {
                return lost;
            }
        }
    }

    /// Gives the Lease up, so that another process leads without waiting for its expiry. The
    /// process must have ended everything that it does as a leader.
    pub async fn resign(self) {
        let candidate = self.0;
        if let Ok(Err(error)) = timeout(candidate.terms.answer, candidate.release()).await {
            tracing::warn!(lease = candidate.name, %error, "cannot give the lease up");
        }
    }
}

impl Candidate {
    async fn release(&self) -> kube::Result<()> {
        let lease = self.leases.get(&self.name).await?;
        if let Some(spec) = self.election.resignation(&lease) {
            self.write(Some(lease), spec).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use memory_api_server::ApiServer;

    fn quick() -> Terms {
        Terms {
            lease: Duration::from_secs(1),
            retry: Duration::from_millis(20),
            answer: Duration::from_secs(1),
        }
    }

    fn candidate(server: &ApiServer, identity: &str) -> Candidate {
        Candidate::new(
            server.client(),
            "system",
            "provider",
            Replica::new(identity, None, 0),
            quick(),
        )
    }

    fn holder(server: &ApiServer) -> String {
        let lease = server.object("/apis/coordination.k8s.io/v1/namespaces/system/leases/provider");
        let holder = &lease.unwrap()["spec"]["holderIdentity"];
        let holder = holder.as_str().unwrap();
        holder.split('_').next().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_standby_leads_as_soon_as_the_leader_leaves() {
        let server = ApiServer::default();
        let first = candidate(&server, "first").elected().await;
        assert_eq!(holder(&server), "first");
        let standby = tokio::spawn(candidate(&server, "second").elected());
        let mut watched = first;
        let still_leads = timeout(Duration::from_millis(200), watched.lost()).await;
        assert!(still_leads.is_err() && !standby.is_finished());
        watched.resign().await;
        timeout(Duration::from_secs(1), standby)
            .await
            .expect("the lease's end is waited for")
            .unwrap();
        assert_eq!(holder(&server), "second");
    }

    /// A leader that ended itself was started again and again while the API server was busy with a
    /// thousand workspaces.
    #[tokio::test]
    async fn a_leader_that_cannot_renew_works_on_until_another_process_leads() {
        let server = ApiServer::default();
        let mut leader = candidate(&server, "first").elected().await;
        server.refuse(500);
        let lost = timeout(3 * quick().lease, leader.lost()).await;
        assert!(lost.is_err(), "nobody else leads");
        server.accept();
        candidate(&server, "second").elected().await;
        let lost = timeout(Duration::from_secs(5), leader.lost()).await;
        assert!(lost.unwrap().0.starts_with("second"));
    }

    #[tokio::test]
    async fn of_two_that_read_the_same_lease_one_leads() {
        let server = ApiServer::default();
        candidate(&server, "past").elected().await.resign().await;
        let (mut first, mut second) = (candidate(&server, "first"), candidate(&server, "second"));
        let seen = first.leases.get_opt("provider").await.unwrap();
        assert_eq!(second.attempt().await, Ok(true));
        let Move::Write(spec) =
            first
                .election
                .next(seen.as_ref(), Instant::now(), Timestamp::now())
        else {
            panic!("a free lease is not taken");
        };
        assert!(first.write(seen, spec).await.is_err());
        assert_eq!(holder(&server), "second");
    }
}
