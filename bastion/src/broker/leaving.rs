//! The end of a replica. Kubernetes says that it wants the pod to end, and sends no new connection to it.
//! Sessions go on until they end by themselves, or until the pod's time is over
//! (`terminationGracePeriodSeconds`).

use tokio::sync::watch;

/// Whether the replica is about to end, and how many sessions it has.
pub(super) struct Leaving {
    begun: watch::Sender<bool>,
    sessions: watch::Sender<usize>,
}

/// A session that keeps the replica until it is dropped.
pub(super) struct Stays<'a>(&'a watch::Sender<usize>);

impl Leaving {
    pub(super) fn new() -> Self {
        Self {
            begun: watch::Sender::new(false),
            sessions: watch::Sender::new(0),
        }
    }

    /// Kubernetes wants the replica to end.
    pub(super) fn begin(&self) {
        self.begun.send_replace(true);
    }

    /// Waits until Kubernetes wants the replica to end.
    pub(super) async fn begun(&self) {
        // This value has the sender, so the wait cannot fail.
        let _ = self.begun.subscribe().wait_for(|begun| *begun).await;
    }

    /// Waits until the replica may end.
    pub(super) async fn over(&self) {
        self.begun().await;
        let mut sessions = self.sessions.subscribe();
        let _ = sessions.wait_for(|open| *open == 0).await;
    }

    /// Counts a session.
    pub(super) fn session(&self) -> Stays<'_> {
        self.sessions.send_modify(|open| *open += 1);
        Stays(&self.sessions)
    }
}

impl Drop for Stays<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn is_over(leaving: &Leaving) -> bool {
        leaving.over().now_or_never().is_some()
    }

    #[test]
    fn a_replica_ends_when_it_should_and_its_last_session_has_ended() {
        let leaving = Leaving::new();
        assert!(!is_over(&leaving), "nobody wants it to end");
        let (first, second) = (leaving.session(), leaving.session());
        leaving.begin();
        assert!(!is_over(&leaving), "two sessions are open");
        drop(first);
        assert!(!is_over(&leaving), "one session is open");
        drop(second);
        assert!(is_over(&leaving));
    }
}
