//! What a replica knows of a session without its cookie.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use tokio::sync::watch;

use crate::pace::Pace;

/// The annotation with the last use of a session, which a replica writes from time to time.
pub(super) const USED: &str = "platform.acme.io/used";
/// The annotation with the last look at the person's groups.
pub(super) const CHECKED: &str = "platform.acme.io/checked";
/// How soon the portal asks again if the provider of identities did not answer.
const SOON: SignedDuration = SignedDuration::from_mins(1);

/// Why the portal looks up a session: a person sends a request, or an open page asks whether the session lasts. Only
/// a request counts as use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Uses,
    Looks,
}

/// A session, encrypted.
pub(super) struct Sealed {
    pub(super) contents: Vec<u8>,
    /// The Secret's version.
    pub(super) version: u64,
    pub(super) times: Times,
    pub(super) over: watch::Sender<bool>,
    pub(super) pace: Arc<Pace>,
}

/// When something was last done with a session, in seconds since 1970.
#[derive(Debug, Default)]
pub(super) struct Times {
    used: AtomicI64,
    /// The last use that was written into the Secret.
    written: AtomicI64,
    checked: AtomicI64,
}

impl Sealed {
    /// A session whose Secret is to be read.
    pub(super) fn new() -> Self {
        Self {
            contents: Vec::new(),
            version: 0,
            times: Times::default(),
            over: watch::Sender::new(false),
            pace: Arc::default(),
        }
    }
}

impl Times {
    /// Takes over what a Secret says, where it is later.
    pub(super) fn learn(&self, secret: &Secret) {
        let (used, checked) = (last(secret, USED), last(secret, CHECKED));
        self.used.fetch_max(used, Ordering::Relaxed);
        self.written.fetch_max(used, Ordering::Relaxed);
        self.checked.fetch_max(checked, Ordering::Relaxed);
    }

    /// How long the session was not used.
    pub(super) fn idle(&self, now: Timestamp) -> SignedDuration {
        SignedDuration::from_secs(now.as_second() - self.used.load(Ordering::Relaxed))
    }

    /// Notes a use. Returns whether it is to be written into the Secret, for the other replicas, which is so once in
    /// `every`.
    pub(super) fn uses(&self, now: Timestamp, every: SignedDuration) -> bool {
        self.used.fetch_max(now.as_second(), Ordering::Relaxed);
        is_due(&self.written, now, every)
    }

    /// Whether the person is to be looked at again, which is so once in `every`.
    pub(super) fn begins_check(&self, now: Timestamp, every: SignedDuration) -> bool {
        is_due(&self.checked, now, every)
    }

    /// Makes the person to be looked at soon.
    pub(super) fn checks_soon(&self, now: Timestamp, every: SignedDuration) {
        let last = now.as_second() - (every - SOON).as_secs().max(0);
        self.checked.store(last, Ordering::Relaxed);
    }
}

/// Whether something is due that was last done at a time. It is then done now.
fn is_due(last: &AtomicI64, now: Timestamp, every: SignedDuration) -> bool {
    let now = now.as_second();
    let is_due = |last: i64| (now - last >= every.as_secs()).then_some(now);
    let (set, read) = (Ordering::Relaxed, Ordering::Relaxed);
    last.fetch_update(set, read, is_due).is_ok()
}

/// The time in an annotation. A Secret without it was last looked at when it was made.
fn last(secret: &Secret, annotation: &str) -> i64 {
    let made = || secret.creation_timestamp().map(|made| made.0);
    let last = time(secret, annotation).or_else(made);
    last.map_or(0, Timestamp::as_second)
}

/// The time in an annotation of a Secret.
pub(super) fn time(secret: &impl ResourceExt, annotation: &str) -> Option<Timestamp> {
    secret.annotations().get(annotation)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn secret(annotation: &str, second: i64) -> Secret {
        let mut secret = Secret::default();
        let text = at(second).to_string();
        secret.annotations_mut().insert(annotation.to_owned(), text);
        secret
    }

    #[test]
    fn a_use_is_written_from_time_to_time_only() {
        let (times, every) = (Times::default(), SignedDuration::from_secs(100));
        times.learn(&secret(USED, 1_000));
        let written: Vec<i64> = (1_000..1_500)
            .filter(|second| times.uses(at(*second), every))
            .collect();
        assert_eq!(written, [1_100, 1_200, 1_300, 1_400]);
        assert_eq!(times.idle(at(2_000)).as_secs(), 501);
        // Another replica has seen a later use.
        times.learn(&secret(USED, 1_900));
        assert_eq!(times.idle(at(2_000)).as_secs(), 100);
        assert!(!times.uses(at(1_950), every));
    }

    #[test]
    fn of_many_requests_one_looks_at_the_person() {
        let (times, every) = (Times::default(), SignedDuration::from_mins(15));
        times.learn(&secret(CHECKED, 1_000));
        assert!(!times.begins_check(at(1_899), every));
        let began = (0..5).filter(|_| times.begins_check(at(1_900), every));
        assert_eq!(began.count(), 1);
        // The provider of identities did not answer.
        times.checks_soon(at(1_905), every);
        assert!(!times.begins_check(at(1_964), every));
        assert!(times.begins_check(at(1_965), every));
    }
}
