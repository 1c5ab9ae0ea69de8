//! Metrics of the number of managed resources by state.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use api::condition::{self, ConditionStatus, Conditioned, READY, SYNCED};
use kube::Resource;
use kube::core::object::HasStatus;
use kube::runtime::reflector::Store;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

/// The name of a kind as crossplane-runtime labels its metrics:
/// `group/version, Kind=Kind`.
pub fn gvk<K: Resource<DynamicType = ()>>() -> String {
    format!("{}, Kind={}", K::api_version(&()), K::kind(&()))
}

/// The counts of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    exists: i64,
    ready: i64,
    synced: i64,
}

struct Source {
    gvk: String,
    count: Box<dyn Fn() -> Counted + Send + Sync>,
}

/// Counts the resources of watched kinds at every scrape.
#[derive(Default)]
pub struct States(Mutex<Vec<Source>>);

impl States {
    /// Counts the resources in `store` from now on.
    pub fn watch<K>(&self, store: Store<K>)
    where
        K: Resource<DynamicType = ()> + HasStatus + Clone + Send + Sync + 'static,
        K::Status: Conditioned,
    {
        let source = Source {
            gvk: gvk::<K>(),
            count: Box::new(move || count(store.state().iter().map(AsRef::as_ref))),
        };
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sources.push(source);
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").finish_non_exhaustive()
    }
}

impl Collector for States {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counted: Vec<(&str, Counted)> = sources
            .iter()
            .map(|source| (source.gvk.as_str(), (source.count)()))
            .collect();
        if counted.is_empty() {
            return Ok(());
        }
        for (name, help, read) in GAUGES {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (gvk, counted) in &counted {
                let labels = [("gvk", *gvk)];
                metric
                    .encode_family(&labels)?
                    .encode_gauge(&read(counted))?;
            }
        }
        Ok(())
    }
}

type Gauge = (&'static str, &'static str, fn(&Counted) -> i64);

const GAUGES: [Gauge; 3] = [
    (
        "crossplane_managed_resource_exists",
        "The number of managed resources that exist",
        |counted| counted.exists,
    ),
    (
        "crossplane_managed_resource_ready",
        "The number of managed resources in Ready=True state",
        |counted| counted.ready,
    ),
    (
        "crossplane_managed_resource_synced",
        "The number of managed resources in Synced=True state",
        |counted| counted.synced,
    ),
];

fn count<'a, K>(resources: impl Iterator<Item = &'a K>) -> Counted
where
    K: HasStatus<Status: Conditioned> + 'a,
{
    let mut counted = Counted::default();
    for resource in resources {
        let holds = |type_| {
            let conditions = resource.status().map(Conditioned::conditions);
            let found = conditions.and_then(|c| condition::find(c, type_));
            i64::from(found.is_some_and(|c| c.status == ConditionStatus::True))
        };
        counted.exists += 1;
        counted.ready += holds(READY);
        counted.synced += holds(SYNCED);
    }
    counted
}

#[cfg(test)]
mod tests {
    use kube::runtime::{reflector, watcher};

    use super::super::Metrics;
    use super::*;
    use crate::testing::{Thing, thing};

    #[test]
    fn a_dashboard_shows_how_many_resources_are_ready_and_synced() {
        let metrics = Metrics::new();
        assert!(!metrics.open_metrics().contains("managed_resource"));
        let mut writer = reflector::store::Writer::<Thing>::default();
        metrics.states().watch(writer.as_reader());
        for (name, conditions) in [
            ("a", vec![(READY, true), (SYNCED, true)]),
            ("b", vec![(READY, false), (SYNCED, true)]),
            ("c", vec![]),
        ] {
            writer.apply_watcher_event(&watcher::Event::Apply(thing(name, &conditions)));
        }
        let text = metrics.prometheus_text();
        for (state, value) in [("exists", 3), ("ready", 1), ("synced", 2)] {
            let sample = format!(
                "crossplane_managed_resource_{state}{{gvk=\"example.org/v1, Kind=Thing\"}} {value}"
            );
            assert!(text.lines().any(|l| l == sample), "{sample} in\n{text}");
        }
    }
}
