//! Gauges of all pools: their instances, their targets and their unavailable offerings, counted at
//! every scrape.

use std::collections::BTreeMap;
use std::fmt;

use api::capacity::InstanceCapacityType;
use api::pool::SpotPool;
use kube::runtime::reflector::Store;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

/// The labels that distinguish the samples of one gauge.
type Labels = Vec<(&'static str, String)>;

/// The gauges of all pools.
pub struct Inventory(Box<dyn Fn() -> Counted + Send + Sync>);

/// The values of the gauges, by labels.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    instances: BTreeMap<Labels, i64>,
    wanted: BTreeMap<Labels, i64>,
    leased: BTreeMap<Labels, i64>,
    resting: BTreeMap<Labels, i64>,
}

impl Inventory {
    /// Counts the pools in `store`.
    pub fn of(store: Store<SpotPool>) -> Self {
        Self(Box::new(move || {
            count(store.state().iter().map(AsRef::as_ref))
        }))
    }
}

impl fmt::Debug for Inventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inventory").finish_non_exhaustive()
    }
}

impl Collector for Inventory {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let counted = (self.0)();
        for (name, help, samples) in [
            (
                "gpu_spot_instances",
                "Instances of pools, as EC2 lists them",
                &counted.instances,
            ),
            (
                "gpu_spot_instances_wanted",
                "Instances that pools should have",
                &counted.wanted,
            ),
            (
                "gpu_spot_instances_leased",
                "Instances that somebody has",
                &counted.leased,
            ),
            (
                "gpu_spot_offerings_unavailable",
                "Pools for which a type in a zone is unavailable, by the code of EC2's refusal",
                &counted.resting,
            ),
        ] {
            if samples.is_empty() {
                continue;
            }
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (labels, value) in samples {
                metric.encode_family(labels)?.encode_gauge(value)?;
            }
        }
        Ok(())
    }
}

fn count<'a>(pools: impl Iterator<Item = &'a SpotPool>) -> Counted {
    let mut counted = Counted::default();
    for pool in pools {
        let region = pool.spec.for_provider.region.clone();
        let Some(seen) = pool.status.as_ref().map(|status| &status.at_provider) else {
            continue;
        };
        for instance in &seen.instances {
            let labels = vec![
                ("region", region.clone()),
                ("zone", instance.zone.clone()),
                ("instance_type", instance.instance_type.clone()),
                ("capacity_type", market(instance.capacity_type)),
                ("state", instance.state.clone()),
            ];
            *counted.instances.entry(labels).or_default() += 1;
        }
        for unavailable in &seen.unavailable_offerings {
            let labels = vec![
                ("region", region.clone()),
                ("zone", unavailable.zone.clone()),
                ("instance_type", unavailable.instance_type.clone()),
                ("capacity_type", market(unavailable.capacity_type)),
                ("code", unavailable.code.clone()),
            ];
            *counted.resting.entry(labels).or_default() += 1;
        }
        let region = vec![("region", region)];
        let leased = counted.leased.entry(region.clone());
        *leased.or_default() += i64::from(seen.size.leased);
        let wanted = counted.wanted.entry(region);
        *wanted.or_default() += i64::from(seen.size.desired);
    }
    counted
}

fn market(capacity: InstanceCapacityType) -> String {
    match capacity {
        InstanceCapacityType::Spot => "spot".to_owned(),
        InstanceCapacityType::OnDemand => "on-demand".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::{reflector, watcher};
    use provider_runtime::metrics::Metrics;
    use serde_json::json;

    use super::*;

    fn pool(name: &str, status: &serde_json::Value) -> SpotPool {
        let document = json!({
            "apiVersion": "gpu.platform.acme.io/v1alpha1",
            "kind": "SpotPool",
            "metadata": {"name": name, "namespace": "gpu"},
            "spec": {"forProvider": {
                "region": "us-east-1",
                "size": {"minimum": 2, "maximum": 2},
                "capacityType": "Spot",
                "instanceTypes": ["g5.xlarge"],
                "image": {"id": "ami-00000000000c0de01"},
            }},
            "status": {"atProvider": status},
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn a_dashboard_shows_what_pools_have_want_and_cannot_get() {
        let metrics = Metrics::new();
        let mut writer = reflector::store::Writer::<SpotPool>::default();
        metrics.collect(Box::new(Inventory::of(writer.as_reader())));
        assert!(!metrics.open_metrics().contains("gpu_spot"));
        let instance = json!({
            "id": "i-1", "launch": 1, "instanceType": "g5.xlarge", "zone": "us-east-1a",
            "capacityType": "Spot", "imageId": "ami-1", "state": "running",
        });
        let unavailable = json!({
            "instanceType": "g5.xlarge", "zone": "us-east-1b", "capacityType": "Spot",
            "code": "InsufficientInstanceCapacity", "until": "2026-11-21T10:00:00Z",
        });
        for name in ["a", "b"] {
            let status = json!({
                "size": {"desired": 2, "running": 1, "leased": 1},
                "instances": [instance], "unavailableOfferings": [unavailable],
            });
            writer.apply_watcher_event(&watcher::Event::Apply(pool(name, &status)));
        }
        let text = metrics.prometheus_text();
        let place = r#"region="us-east-1",zone="us-east-1a",instance_type="g5.xlarge""#;
        let lacking = r#"region="us-east-1",zone="us-east-1b",instance_type="g5.xlarge""#;
        for sample in [
            format!(r#"gpu_spot_instances{{{place},capacity_type="spot",state="running"}} 2"#),
            r#"gpu_spot_instances_wanted{region="us-east-1"} 4"#.to_owned(),
            r#"gpu_spot_instances_leased{region="us-east-1"} 2"#.to_owned(),
            format!(
                r#"gpu_spot_offerings_unavailable{{{lacking},capacity_type="spot",code="InsufficientInstanceCapacity"}} 2"#
            ),
        ] {
            assert!(text.lines().any(|l| l == sample), "{sample} in\n{text}");
        }
    }
}
