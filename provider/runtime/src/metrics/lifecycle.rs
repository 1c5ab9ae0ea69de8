//! Metrics of the duration of the stages in a managed resource's life.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::{Labels, Metrics};

/// The buckets of crossplane-runtime, in seconds.
const MINUTES: [f64; 11] = [
    1.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
];

/// The buckets of crossplane-runtime, which end at ten seconds, and four more: a poll alone takes
/// longer than that.
fn decades() -> Histogram {
    Histogram::new(exponential_buckets(1e-8, 10.0, 14))
}

type Histograms = Family<Labels, Histogram>;

/// The durations of all kinds. They are kept in memory only. As in crossplane-runtime, a resource
/// that another process saw first is missing from the time to readiness.
#[derive(Debug)]
pub struct Lifecycles {
    to_reconcile: Histograms,
    to_readiness: Histograms,
    deletion: Histograms,
    drift: Histograms,
}

/// The durations for the resources of one kind.
#[derive(Debug)]
pub struct Lifecycle {
    to_reconcile: Histogram,
    to_readiness: Histogram,
    deletion: Histogram,
    drift: Histogram,
    known: Mutex<BTreeMap<String, Known>>,
}

/// The facts about one resource that the durations need.
#[derive(Debug, Default)]
struct Known {
    awaits_readiness: bool,
    in_sync_at: Option<Timestamp>,
}

impl Lifecycles {
    /// Registers the histograms. It must be called once per process.
    pub fn new(metrics: &Metrics) -> Self {
        let register = |name: &str, help: &str, constructor: fn() -> Histogram| {
            let histograms = Histograms::new_with_constructor(constructor);
            metrics.register(name, help, &histograms);
            histograms
        };
        let minutes: fn() -> Histogram = || Histogram::new(MINUTES);
        Self {
            to_reconcile: register(
                "crossplane_managed_resource_first_time_to_reconcile_seconds",
                "The time it took for a managed resource to be detected by the controller",
                decades,
            ),
            to_readiness: register(
                "crossplane_managed_resource_first_time_to_readiness_seconds",
                "The time it took for a managed resource to become ready first time after creation",
                minutes,
            ),
            deletion: register(
                "crossplane_managed_resource_deletion_seconds",
                "The time it took for a managed resource to be deleted",
                minutes,
            ),
            drift: register(
                "crossplane_managed_resource_drift_seconds",
                "How long since the previous successful reconcile when a resource was found to be \
                 out of sync; excludes restart of the provider",
                decades,
            ),
        }
    }

    /// The durations of a kind, whose name is that of [`states::gvk`](super::states::gvk).
    pub fn of(&self, gvk: &str) -> Lifecycle {
        let labels = vec![("gvk", gvk.to_owned())];
        let of_kind = |histograms: &Histograms| histograms.get_or_create_owned(&labels);
        Lifecycle {
            to_reconcile: of_kind(&self.to_reconcile),
            to_readiness: of_kind(&self.to_readiness),
            deletion: of_kind(&self.deletion),
            drift: of_kind(&self.drift),
            known: Mutex::default(),
        }
    }
}

impl Lifecycle {
    /// A reconcile starts. `is_first` says that the resource has no `Synced` condition, so that no
    /// process has reconciled it before.
    pub fn began(&self, meta: &ObjectMeta, is_first: bool, now: Timestamp) {
        let Some(uid) = meta.uid.as_ref().filter(|_| is_first) else {
            return;
        };
        let mut known = self.known();
        let of_resource = known.entry(uid.clone()).or_default();
        if !of_resource.awaits_readiness {
            of_resource.awaits_readiness = true;
            observe(&self.to_reconcile, meta.creation_timestamp.as_ref(), now);
        }
    }

    /// The resource is ready. Only the first time counts.
    pub fn ready(&self, meta: &ObjectMeta, now: Timestamp) {
        let Some(uid) = &meta.uid else { return };
        let mut known = self.known();
        if let Some(of_resource) = known.get_mut(uid).filter(|k| k.awaits_readiness) {
            of_resource.awaits_readiness = false;
            observe(&self.to_readiness, meta.creation_timestamp.as_ref(), now);
        }
    }

    /// The external resource is as desired, or is so again.
    pub fn in_sync(&self, meta: &ObjectMeta, now: Timestamp) {
        if let Some(uid) = &meta.uid {
            self.known().entry(uid.clone()).or_default().in_sync_at = Some(now);
        }
    }

    /// The external resource was not as desired, and was changed.
    pub fn drifted(&self, meta: &ObjectMeta, now: Timestamp) {
        let Some(uid) = &meta.uid else { return };
        if let Some(of_resource) = self.known().get_mut(uid)
            && let Some(last) = of_resource.in_sync_at.replace(now)
        {
            observe(&self.drift, Some(&Time(last)), now);
        }
    }

    /// The finalizer of a deleted resource was removed.
    pub fn deleted(&self, meta: &ObjectMeta, now: Timestamp) {
        observe(&self.deletion, meta.deletion_timestamp.as_ref(), now);
        self.forget(meta);
    }

    /// Forgets a resource that is gone.
    pub fn forget(&self, meta: &ObjectMeta) {
        if let Some(uid) = &meta.uid {
            self.known().remove(uid);
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn observe(histogram: &Histogram, since: Option<&Time>, now: Timestamp) {
    if let Some(Time(since)) = since {
        histogram.observe(now.duration_since(*since).as_secs_f64().max(0.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A resource that was created at 100 s and deleted at 500 s.
    fn life() -> (Metrics, Lifecycle, ObjectMeta) {
        let meta = ObjectMeta {
            uid: Some("u".into()),
            creation_timestamp: Some(Time(at(100))),
            deletion_timestamp: Some(Time(at(500))),
            ..ObjectMeta::default()
        };
        let metrics = Metrics::new();
        let life = Lifecycles::new(&metrics).of("kind");
        (metrics, life, meta)
    }

    /// The number of observations, and the sum of their seconds.
    fn seen(metrics: &Metrics, stage: &str) -> (u64, f64) {
        let text = metrics.prometheus_text();
        let value = |of: &str| {
            let sample =
                format!("crossplane_managed_resource_{stage}_seconds_{of}{{gvk=\"kind\"}} ");
            let value = text.lines().find_map(|l| l.strip_prefix(&sample));
            value
                .unwrap_or_else(|| panic!("no {sample} in\n{text}"))
                .to_owned()
        };
        (
            value("count").parse().unwrap(),
            value("sum").parse().unwrap(),
        )
    }

    #[test]
    fn the_time_to_readiness_is_counted_once_per_resource() {
        let (metrics, life, meta) = life();
        life.began(&meta, true, at(101));
        life.began(&meta, true, at(102));
        life.ready(&meta, at(130));
        life.ready(&meta, at(400));
        assert_eq!(seen(&metrics, "first_time_to_reconcile"), (1, 1.0));
        assert_eq!(seen(&metrics, "first_time_to_readiness"), (1, 30.0));
    }

    #[test]
    fn a_restarted_provider_does_not_take_old_resources_for_slow_ones() {
        let (metrics, life, meta) = life();
        life.began(&meta, false, at(9000));
        life.ready(&meta, at(9001));
        assert_eq!(seen(&metrics, "first_time_to_reconcile"), (0, 0.0));
        assert_eq!(seen(&metrics, "first_time_to_readiness"), (0, 0.0));
    }

    #[test]
    fn drift_is_counted_from_the_last_time_that_all_was_well() {
        let (metrics, life, meta) = life();
        life.drifted(&meta, at(110));
        assert_eq!(seen(&metrics, "drift"), (0, 0.0), "nobody knows since when");
        life.in_sync(&meta, at(120));
        life.drifted(&meta, at(150));
        life.drifted(&meta, at(155));
        assert_eq!(seen(&metrics, "drift"), (2, 35.0));
    }

    #[test]
    fn a_deleted_resource_is_counted_and_forgotten() {
        let (metrics, life, meta) = life();
        life.began(&meta, true, at(101));
        life.deleted(&meta, at(512));
        assert_eq!(seen(&metrics, "deletion"), (1, 12.0));
        assert!(life.known().is_empty());
    }
}
