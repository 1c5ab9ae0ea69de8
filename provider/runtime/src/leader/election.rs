//! The rules of leader election, the same as client-go's. Pure: the Lease, the time and the clock
//! are arguments.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// One process, as the holder of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The process's own name, which no other process has.
    name: String,
    /// What the names of all processes of the pod begin with, if the pod is known.
    pod: Option<String>,
}

impl Replica {
    /// A process on a host. `pod` is the UID of its pod, and `process` a random number.
    pub fn new(host: &str, pod: Option<String>, process: u64) -> Self {
        let pod = pod.map(|uid| format!("{host}_{uid}_"));
        let beginning = pod.clone().unwrap_or_else(|| format!("{host}_"));
        Self {
            name: format!("{beginning}{process:016x}"),
            pod,
        }
    }

    /// Whether a holder was an earlier process of the same pod. It is dead: a pod runs a container
    /// again only after the last process has ended.
    fn follows(&self, holder: &str) -> bool {
        let pod = self.pod.as_ref();
        holder != self.name && pod.is_some_and(|pod| holder.starts_with(pod))
    }
}

/// The durations of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Other processes take the Lease over when it was not renewed for this long.
    pub lease: Duration,
    /// The time between two attempts.
    pub retry: Duration,
    /// How long an attempt waits for the API server. A busy one answers after seconds.
    pub answer: Duration,
}

impl Default for Terms {
    /// The durations of Kubernetes' own components. Those of Crossplane's providers are four times
    /// as long. But when Crossplane replaces a provider, the old one loses its rights before it can
    /// give its Lease up, and the next one ends nothing until the Lease expires.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            retry: Duration::from_secs(2),
            answer: Duration::from_secs(10),
        }
    }
}

/// Another process holds the Lease.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} took the lease over")]
pub struct Lost(pub String);

/// The next step of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Move {
    /// Write this Lease, against the version that was read.
    Write(LeaseSpec),
    /// Check the Lease again later.
    Wait,
    /// Stop leading.
    Stop(Lost),
}

/// One candidate's view of an election.
#[derive(Debug)]
pub(super) struct Election {
    replica: Replica,
    terms: Terms,
    /// The version of another holder's Lease, and since when it has not changed. The times in the
    /// Lease are not trusted, because they come from another clock.
    unchanged: Option<(Option<String>, Instant)>,
    /// Whether this process has written the Lease.
    leads: bool,
}

impl Election {
    pub(super) fn new(replica: Replica, terms: Terms) -> Self {
        Self {
            replica,
            terms,
            unchanged: None,
            leads: false,
        }
    }

    pub(super) fn next(&mut self, lease: Option<&Lease>, now: Instant, clock: Timestamp) -> Move {
        let version = lease.and_then(|l| l.metadata.resource_version.clone());
        let spec = lease.and_then(|l| l.spec.as_ref());
        let holder = spec.and_then(|s| s.holder_identity.as_deref());
        match holder {
            None | Some("") => Move::Write(self.claim(spec, clock)),
            Some(holder) if holder == self.replica.name => Move::Write(self.claim(spec, clock)),
            Some(holder) if self.leads => Move::Stop(Lost(holder.to_owned())),
            Some(holder) if self.replica.follows(holder) => Move::Write(self.claim(spec, clock)),
            Some(_) => {
                let since = match &self.unchanged {
                    Some((seen, since)) if *seen == version => *since,
                    _ => now,
                };
                self.unchanged = Some((version, since));
                let duration = spec
                    .and_then(|s| s.lease_duration_seconds)
                    .and_then(|seconds| u64::try_from(seconds).ok())
                    .map_or(self.terms.lease, Duration::from_secs);
                if now.duration_since(since) < duration {
                    Move::Wait
                } else {
                    Move::Write(self.claim(spec, clock))
                }
            }
        }
    }

    /// Records that the Lease was written.
    pub(super) fn renewed(&mut self) {
        self.leads = true;
    }

    /// The Lease that a leaving leader writes: any process may take it at once.
    pub(super) fn resignation(&self, lease: &Lease) -> Option<LeaseSpec> {
        let spec = lease.spec.as_ref()?;
        let is_ours = spec.holder_identity.as_ref() == Some(&self.replica.name);
        is_ours.then(|| LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            ..spec.clone()
        })
    }

    fn claim(&self, before: Option<&LeaseSpec>, clock: Timestamp) -> LeaseSpec {
        let before = before.cloned().unwrap_or_default();
        let is_renewal = before.holder_identity.as_ref() == Some(&self.replica.name);
        let transitions = before.lease_transitions.unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.replica.name.clone()),
            lease_duration_seconds: i32::try_from(self.terms.lease.as_secs()).ok(),
            acquire_time: if is_renewal {
                before.acquire_time
            } else {
                Some(MicroTime(clock))
            },
            renew_time: Some(MicroTime(clock)),
            lease_transitions: Some(transitions + i32::from(!is_renewal)),
            ..LeaseSpec::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Timestamp = Timestamp::UNIX_EPOCH;

    fn lease(holder: &str, version: &str) -> Lease {
        let mut lease = Lease {
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.into()),
                lease_duration_seconds: Some(60),
                lease_transitions: Some(3),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        };
        lease.metadata.resource_version = Some(version.into());
        lease
    }

    fn me() -> Replica {
        Replica {
            name: "me".into(),
            pod: None,
        }
    }

    fn after(begin: Instant, seconds: u64) -> Instant {
        begin + Duration::from_secs(seconds)
    }

    fn holder(next: Move) -> Option<String> {
        match next {
            Move::Write(spec) => spec.holder_identity,
            _ => None,
        }
    }

    #[test]
    fn a_standby_leaves_a_living_leader_alone() {
        let (mut me, begin) = (Election::new(me(), Terms::default()), Instant::now());
        for renewal in 0..20 {
            let other = lease("other", &renewal.to_string());
            let next = me.next(Some(&other), after(begin, renewal * 50), CLOCK);
            assert_eq!(next, Move::Wait);
        }
    }

    #[test]
    fn a_standby_takes_over_from_a_dead_leader_and_not_before() {
        let (mut me, begin) = (Election::new(me(), Terms::default()), Instant::now());
        let dead = lease("other", "7");
        assert_eq!(me.next(Some(&dead), begin, CLOCK), Move::Wait);
        assert_eq!(me.next(Some(&dead), after(begin, 59), CLOCK), Move::Wait);
        let Move::Write(spec) = me.next(Some(&dead), after(begin, 60), CLOCK) else {
            panic!("it waits for a dead leader");
        };
        assert_eq!(spec.holder_identity.as_deref(), Some("me"));
        assert_eq!(spec.lease_transitions, Some(4));
    }

    #[test]
    fn a_process_takes_over_at_once_from_the_last_one_of_its_own_pod_and_of_no_other() {
        let (terms, begin) = (Terms::default(), Instant::now());
        let replica = |pod: &str, process| Replica::new("host", Some(pod.into()), process);
        for (before, takes_over) in [
            (replica("uid-1", 1), true),
            // Pods of one node have one host name, if they use the node's network.
            (replica("uid-2", 1), false),
            (Replica::new("host", None, 1), false),
        ] {
            let mut next = Election::new(replica("uid-1", 2), terms);
            let held = lease(&before.name, "7");
            let moved = next.next(Some(&held), begin, CLOCK);
            assert_eq!(holder(moved).is_some(), takes_over, "{before:?}");
        }
        let mut unknown = Election::new(Replica::new("host", None, 2), terms);
        let held = lease(&Replica::new("host", None, 1).name, "7");
        assert_eq!(unknown.next(Some(&held), begin, CLOCK), Move::Wait);
    }

    #[test]
    fn a_lease_that_nobody_holds_is_taken_at_once() {
        let (mut me, begin) = (Election::new(me(), Terms::default()), Instant::now());
        assert_eq!(holder(me.next(None, begin, CLOCK)).as_deref(), Some("me"));
        let free = lease("", "1");
        assert_eq!(
            holder(me.next(Some(&free), begin, CLOCK)).as_deref(),
            Some("me")
        );
    }

    #[test]
    fn a_leader_renews_and_keeps_when_it_began() {
        let (mut me, begin) = (Election::new(me(), Terms::default()), Instant::now());
        me.renewed();
        let mut mine = lease("me", "1");
        mine.spec.as_mut().unwrap().acquire_time = Some(MicroTime(CLOCK));
        let later = Timestamp::from_second(90).unwrap();
        let Move::Write(spec) = me.next(Some(&mine), after(begin, 5), later) else {
            panic!("a leader does not renew");
        };
        assert_eq!(spec.acquire_time, Some(MicroTime(CLOCK)));
        assert_eq!(spec.renew_time, Some(MicroTime(later)));
        assert_eq!(spec.lease_transitions, Some(3));
    }

    #[test]
    fn a_leader_stops_when_another_one_leads() {
        let (mut me, begin) = (Election::new(me(), Terms::default()), Instant::now());
        me.renewed();
        let next = me.next(Some(&lease("other", "9")), after(begin, 5), CLOCK);
        assert_eq!(next, Move::Stop(Lost("other".into())));
    }

    #[test]
    fn a_leader_that_leaves_gives_up_its_own_lease_only() {
        let me = Election::new(me(), Terms::default());
        let free = me.resignation(&lease("me", "1")).unwrap();
        assert_eq!(free.holder_identity.as_deref(), Some(""));
        assert_eq!(me.resignation(&lease("other", "1")), None);
    }
}
