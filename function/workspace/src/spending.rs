//! Gauges of what workspaces cost, of running workspaces that are refused or held, and of workspaces
//! without the admission policy, from the last responses. By default they are sums of all workspaces,
//! because every client that reaches the port reads them.
//!
//! Crossplane does not call the function when a workspace is deleted. A workspace therefore counts
//! until one hour after its last call.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use api::condition::{COMPUTE_READY, POLICY_ENFORCED};
use function_runtime::composite::Composite;
use function_runtime::request::Request;
use function_runtime::response::{CONFIG_RESOLVED, Condition, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use serde_json::Value;

/// Time after its last call during which a workspace counts.
const COUNTS_FOR: Duration = Duration::from_hours(1);

/// The states of workspaces, from their last responses.
#[derive(Debug)]
pub struct Spending {
    series: Series,
    workspaces: Mutex<HashMap<String, Workspace>>,
}

/// The series of each gauge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// One for all workspaces, without labels.
    Total,
    /// One for each owner and namespace, with both as labels.
    ByOwner,
}

/// The labels of a series, or none for the total.
type Labels = Option<(String, String)>;

#[derive(Clone, Debug)]
struct Workspace {
    asked: Instant,
    owner: String,
    namespace: String,
    cost: Option<Cost>,
    runs_unresolved: bool,
    is_unenforced: bool,
}

/// The cost of one or more workspaces, in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cost {
    hourly: f64,
    month: f64,
}

impl Cost {
    /// Reads the cost of machines and homes from `status.cost`.
    fn read(status: &Value) -> Option<Self> {
        let usd = |field: &str| status.get(field).and_then(Value::as_f64);
        let of_homes = |field: &str| {
            let usd = status.get("home").and_then(|home| home.get(field));
            usd.and_then(Value::as_f64).unwrap_or_default()
        };
        Some(Self {
            hourly: usd("hourlyUsd")? + of_homes("hourlyUsd"),
            month: usd("soFarUsd")? + of_homes("soFarUsd"),
        })
    }
}

/// The sums of a series' workspaces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    /// None if no workspace has a cost.
    cost: Option<Cost>,
    unresolved: u32,
    unenforced: u32,
}

impl Spending {
    /// Gauges without workspaces.
    pub fn new(series: Series) -> Self {
        Self {
            series,
            workspaces: Mutex::default(),
        }
    }

    /// Records a response. A fatal response has no status, so the last known state stays.
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
        let owner = desired.status.get("owner").and_then(Value::as_str);
        let cost = desired.status.get("cost");
        let cost = cost.and_then(Cost::read);
        let holds = |type_| response.condition(type_);
        let runs_unresolved = holds(CONFIG_RESOLVED).is_some_and(|config| !config.holds())
            && holds(COMPUTE_READY).is_some_and(Condition::holds);
        let is_unenforced = holds(POLICY_ENFORCED).is_some_and(|enforced| !enforced.holds());
        match composite.origin() {
            Some(origin) if cost.is_some() || runs_unresolved || is_unenforced => {
                let workspace = Workspace {
                    asked: now,
                    owner: owner.unwrap_or_default().to_owned(),
                    namespace: origin.namespace,
                    cost,
                    runs_unresolved,
                    is_unenforced,
                };
                workspaces.insert(uid, workspace);
            }
            _ => {
                workspaces.remove(&uid);
            }
        }
    }

    /// The sums of each series.
    fn sums(&self, now: Instant) -> BTreeMap<Labels, Sums> {
        let mut workspaces = self
            .workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        workspaces.retain(|_, workspace| now.duration_since(workspace.asked) < COUNTS_FOR);
        let mut sums = BTreeMap::new();
        for workspace in workspaces.values() {
            let labels = match self.series {
                Series::Total => None,
                Series::ByOwner => Some((workspace.owner.clone(), workspace.namespace.clone())),
            };
            let sums: &mut Sums = sums.entry(labels).or_default();
            sums.unresolved += u32::from(workspace.runs_unresolved);
            sums.unenforced += u32::from(workspace.is_unenforced);
            if let Some(cost) = workspace.cost {
                let sum = sums.cost.get_or_insert_default();
                sum.hourly += cost.hourly;
                sum.month += cost.month;
            }
        }
        sums
    }
}

impl Collector for Spending {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let sums = self.sums(Instant::now());
        let mut family = |name: &str, help: &str, of: fn(&Sums) -> Option<f64>| {
            let mut shown = sums
                .iter()
                .filter_map(|(labels, sums)| Some((labels, of(sums)?)))
                .peekable();
            if shown.peek().is_none() {
                return Ok(());
            }
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (labels, value) in shown {
                let gauge = ConstGauge::new(value);
                let Some((owner, namespace)) = labels else {
                    // The total is the only series.
                    return gauge.encode(family);
                };
                let labels = [("owner", owner.as_str()), ("namespace", namespace.as_str())];
                gauge.encode(family.encode_family(&labels)?)?;
            }
            Ok(())
        };
        family(
            "gpu_workspaces_hourly_usd",
            "US dollars per hour of running machines and of homes",
            |sums| Some(sums.cost?.hourly),
        )?;
        family(
            "gpu_workspaces_month_usd",
            "US dollars of machines and homes in this calendar month (UTC) so far",
            |sums| Some(sums.cost?.month),
        )?;
        family(
            "gpu_workspaces_unresolved",
            "Workspaces that run although ConfigResolved is False",
            |sums| (sums.unresolved > 0).then(|| f64::from(sums.unresolved)),
        )?;
        family(
            "gpu_workspaces_unenforced",
            "Workspaces whose admission policy is absent (PolicyEnforced is False)",
            |sums| (sums.unenforced > 0).then(|| f64::from(sums.unenforced)),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use function_runtime::json::Json;
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;
    use serde_json::json;

    use super::*;
    use function_runtime::desired::Desired;

    #[test]
    fn the_homes_of_stopped_workspaces_are_counted() {
        let home = json!({"hourlyUsd": 0.5, "soFarUsd": 4.0});
        let status = json!({"hourlyUsd": 0.0, "soFarUsd": 2.0, "home": home});
        let expected = Cost {
            hourly: 0.5,
            month: 6.0,
        };
        assert_eq!(Cost::read(&status), Some(expected));
    }

    fn asked(spending: &Spending, name: &str, cost: Option<(f64, f64)>, now: Instant) {
        answered(spending, name, cost, &[], now);
    }

    fn answered(
        spending: &Spending,
        name: &str,
        cost: Option<(f64, f64)>,
        conditions: &[Condition],
        now: Instant,
    ) {
        let request = Request {
            composite: Some(Json::from(json!({
                "metadata": {"name": name, "uid": name, "namespace": "team-vision"},
            }))),
            ..Request::default()
        };
        let cost = cost.map(|(hourly, month)| json!({"hourlyUsd": hourly, "soFarUsd": month}));
        let cost = cost.map(|cost| ("cost".to_owned(), cost));
        let owner = ("owner".to_owned(), json!("alice"));
        let response = Response {
            ttl: Duration::ZERO,
            requirements: Vec::new(),
            desired: Some(Desired {
                resources: BTreeMap::new(),
                status: cost.into_iter().chain([owner]).collect(),
                connection: BTreeMap::new(),
                ready: None,
            }),
            conditions: conditions.to_vec(),
            events: Vec::new(),
            violations: Vec::new(),
        };
        spending.observe(&request, &response, now);
    }

    #[test]
    fn a_machine_that_runs_although_its_claim_is_refused_is_counted() {
        let spending = Spending::new(Series::Total);
        let now = Instant::now();
        let unresolved = || {
            let sums = spending.sums(now);
            sums.values().map(|sums| sums.unresolved).sum::<u32>()
        };
        let refused = Condition::is_false(CONFIG_RESOLVED, "ParametersInvalid", "a typing error");
        let runs = Condition::is_true(COMPUTE_READY, "Available");
        let waits = Condition::is_false(COMPUTE_READY, "ConfigUnresolved", "waiting");
        answered(
            &spending,
            "one",
            None,
            &[refused.clone(), runs.clone()],
            now,
        );
        assert_eq!(unresolved(), 1);
        answered(
            &spending,
            "two",
            Some((0.5, 2.0)),
            &[refused.clone(), runs.clone()],
            now,
        );
        assert_eq!(unresolved(), 2);
        answered(&spending, "one", None, &[refused, waits], now);
        assert_eq!(unresolved(), 1);
        let resolved = Condition::is_true(CONFIG_RESOLVED, "Resolved");
        answered(&spending, "two", Some((0.5, 2.0)), &[resolved, runs], now);
        assert_eq!(unresolved(), 0);
    }

    #[test]
    fn a_workspace_without_the_admission_policy_is_counted() {
        let spending = Spending::new(Series::Total);
        let now = Instant::now();
        let unenforced = || {
            let sums = spending.sums(now);
            sums.values().map(|sums| sums.unenforced).sum::<u32>()
        };
        let absent = Condition::is_false(POLICY_ENFORCED, "BindingMissing", "apply the policy");
        answered(&spending, "one", None, &[absent], now);
        assert_eq!(unenforced(), 1);
        let bound = Condition::is_true(POLICY_ENFORCED, "Bound");
        answered(&spending, "one", None, &[bound], now);
        assert_eq!(unenforced(), 0);
    }

    fn text(spending: &Arc<Spending>) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::clone(spending)));
        let mut text = String::new();
        text::encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn metrics_sum_costs_by_owner_and_drop_old_workspaces() {
        let spending = Arc::new(Spending::new(Series::ByOwner));
        let text = || text(&spending);
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

    #[test]
    fn metrics_name_nobody_unless_they_are_told_to() {
        let spending = Arc::new(Spending::new(Series::Total));
        let now = Instant::now();
        let refused = Condition::is_false(CONFIG_RESOLVED, "ParametersInvalid", "a typing error");
        let absent = Condition::is_false(POLICY_ENFORCED, "BindingMissing", "apply the policy");
        let runs = Condition::is_true(COMPUTE_READY, "Available");
        for (name, cost) in [("one", (0.5, 2.0)), ("two", (0.25, 1.5))] {
            let conditions = [refused.clone(), absent.clone(), runs.clone()];
            answered(&spending, name, Some(cost), &conditions, now);
        }
        let text = text(&spending);
        for line in [
            "gpu_workspaces_hourly_usd 0.75",
            "gpu_workspaces_month_usd 3.5",
            "gpu_workspaces_unresolved 2.0",
            "gpu_workspaces_unenforced 2.0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        for name in ["alice", "team-vision", "owner", "namespace"] {
            assert!(!text.contains(name), "{name} in {text}");
        }
    }
}
