//! Gauges of what workspaces cost, by owner and namespace, from the last responses.
//!
//! Crossplane does not call the function when a workspace is deleted. A workspace therefore counts
//! until one hour after its last call.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use function_runtime::composite::Composite;
use function_runtime::request::Request;
use function_runtime::response::Response;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use serde_json::Value;

use crate::claim;

/// Time after its last call during which a workspace counts.
const COUNTS_FOR: Duration = Duration::from_hours(1);

/// The costs of workspaces, from their last responses.
#[derive(Debug, Default)]
pub struct Spending {
    workspaces: Mutex<HashMap<String, Workspace>>,
}

#[derive(Clone, Debug)]
struct Workspace {
    asked: Instant,
    owner: String,
    namespace: String,
    hourly_usd: f64,
    month_usd: f64,
}

impl Spending {
    /// Records the cost in a response. A fatal response has no status, so the last known cost stays.
    pub fn observe(&self, request: &Request, response: &Response, now: Instant) {
        let Some(composite) = request.composite.as_ref().map(Composite::new) else {
            return;
        };
        let mut workspaces = self
            .workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let uid = composite.id().uid;
        let Some(desired) = &response.desired else {
            if let Some(workspace) = workspaces.get_mut(&uid) {
                workspace.asked = now;
            }
            return;
        };
        let cost = desired.status.get("cost");
        let usd = |field: &str| cost?.get(field).and_then(Value::as_f64);
        match (usd("hourlyUsd"), usd("soFarUsd"), composite.origin()) {
            (Some(hourly_usd), Some(month_usd), Some(origin)) => {
                let workspace = Workspace {
                    asked: now,
                    owner: claim::owner(composite).to_owned(),
                    namespace: origin.namespace,
                    hourly_usd,
                    month_usd,
                };
                workspaces.insert(uid, workspace);
            }
            _ => {
                workspaces.remove(&uid);
            }
        }
    }

    /// US dollars per hour and US dollars in this month, by owner and namespace.
    fn sums(&self, now: Instant) -> BTreeMap<(String, String), (f64, f64)> {
        let mut workspaces = self
            .workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        workspaces.retain(|_, workspace| now.duration_since(workspace.asked) < COUNTS_FOR);
        let mut sums = BTreeMap::new();
        for workspace in workspaces.values() {
            let key = (workspace.owner.clone(), workspace.namespace.clone());
            let (hourly, month): &mut (f64, f64) = sums.entry(key).or_default();
            *hourly += workspace.hourly_usd;
            *month += workspace.month_usd;
        }
        sums
    }
}

impl Collector for Spending {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let sums = self.sums(Instant::now());
        if sums.is_empty() {
            return Ok(());
        }
        let mut family = |name: &str, help: &str, of: fn(&(f64, f64)) -> f64| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for ((owner, namespace), sum) in &sums {
                let labels = [("owner", owner.as_str()), ("namespace", namespace.as_str())];
                ConstGauge::new(of(sum)).encode(family.encode_family(&labels)?)?;
            }
            Ok(())
        };
        family(
            "gpu_workspaces_hourly_usd",
            "US dollars per hour of the workspaces that run",
            |(hourly, _)| *hourly,
        )?;
        family(
            "gpu_workspaces_month_usd",
            "US dollars of workspaces in this calendar month (UTC) so far",
            |(_, month)| *month,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;
    use serde_json::json;

    use super::*;
    use function_runtime::desired::Desired;

    fn asked(spending: &Spending, name: &str, cost: Option<(f64, f64)>, now: Instant) {
        let request = Request {
            composite: Some(json!({
                "metadata": {"name": name, "uid": name, "namespace": "team-vision"},
                "spec": {"parameters": {"owner": "alice"}},
            })),
            ..Request::default()
        };
        let cost = cost.map(|(hourly, month)| json!({"hourlyUsd": hourly, "soFarUsd": month}));
        let status = cost.map(|cost| ("cost".to_owned(), cost));
        let response = Response {
            ttl: Duration::ZERO,
            requirements: Vec::new(),
            desired: Some(Desired {
                resources: BTreeMap::new(),
                status: status.into_iter().collect(),
                connection: BTreeMap::new(),
                ready: None,
            }),
            conditions: Vec::new(),
            events: Vec::new(),
        };
        spending.observe(&request, &response, now);
    }

    #[test]
    fn metrics_sum_costs_by_owner_and_drop_old_workspaces() {
        let spending = Arc::new(Spending::default());
        let text = || {
            let mut registry = Registry::default();
            registry.register_collector(Box::new(Arc::clone(&spending)));
            let mut text = String::new();
            text::encode(&mut text, &registry).unwrap();
            text
        };
        assert!(!text().contains("usd"), "{}", text());
        let now = Instant::now();
        asked(&spending, "one", Some((0.5, 2.0)), now);
        asked(&spending, "two", Some((0.25, 1.5)), now);
        let labels = "{owner=\"alice\",namespace=\"team-vision\"}";
        for line in [
            "# TYPE gpu_workspaces_hourly_usd gauge".to_owned(),
            format!("gpu_workspaces_hourly_usd{labels} 0.75"),
            format!("gpu_workspaces_month_usd{labels} 3.5"),
        ] {
            assert!(text().lines().any(|l| l == line), "{line}\n{}", text());
        }
        asked(&spending, "two", None, now);
        assert!(text().contains(&format!("hourly_usd{labels} 0.5")));
        let later = now + COUNTS_FOR;
        assert!(spending.sums(later).is_empty());
    }
}
