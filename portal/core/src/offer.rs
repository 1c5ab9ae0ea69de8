//! What the platform offers: the machines of its flavors, with their prices.

use devctl_core::claim::placements;
use devctl_core::object::text;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A flavor in one placement.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// The name of the flavor.
    pub flavor: String,
    /// Where it runs: `EC2` or `Cluster`.
    pub placement: String,
    /// What the platform team says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// The CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// The memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// US dollars an hour: of an on-demand instance, or of one pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly_usd: Option<f64>,
}

/// The offers of the platform's flavors, by name.
pub fn offers<'a>(flavors: impl IntoIterator<Item = &'a Value>) -> Vec<Offer> {
    flavors.into_iter().flat_map(of_flavor).collect()
}

fn of_flavor(flavor: &Value) -> Vec<Offer> {
    let Some(name) = text(flavor, "/metadata/name") else {
        return Vec::new();
    };
    let field = |pointer: &str| text(flavor, pointer).map(str::to_owned);
    let placements = placements(flavor);
    let offered = placements.split(", ").filter(|place| !place.is_empty());
    let of = |placement: &str| {
        let price = match placement {
            "Cluster" => "/status/podHourlyUsd",
            _ => "/status/instanceHourlyUsd",
        };
        Offer {
            flavor: name.to_owned(),
            placement: placement.to_owned(),
            description: field("/spec/description"),
            gpu: field("/status/gpu"),
            cpu: field("/status/cpu"),
            memory: field("/status/memory"),
            hourly_usd: flavor.pointer(price).and_then(Value::as_f64),
        }
    };
    offered.map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flavor_is_an_offer_in_each_placement_with_its_price_there() {
        let flavor = json!({
            "metadata": {"name": "t4"},
            "spec": {"description": "One T4", "ec2": {}, "image": "x"},
            "status": {
                "placements": "EC2, Cluster", "gpu": "1 x T4 16Gi", "cpu": "4", "memory": "16Gi",
                "instanceHourlyUsd": 0.526, "podHourlyUsd": 0.4,
            },
        });
        let found = offers([&flavor]);
        let told: Vec<_> = found
            .iter()
            .map(|offer| (offer.placement.as_str(), offer.hourly_usd))
            .collect();
        assert_eq!(told, [("EC2", Some(0.526)), ("Cluster", Some(0.4))]);
        assert_eq!(found[0].gpu.as_deref(), Some("1 x T4 16Gi"));
        assert_eq!(found[1].description.as_deref(), Some("One T4"));
    }

    #[test]
    fn a_flavor_without_status_is_offered_without_a_price() {
        let flavor = json!({"metadata": {"name": "cpu"}, "spec": {"image": "x"}});
        let found = offers([&flavor]);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].placement.as_str(), found[0].hourly_usd),
            ("Cluster", None)
        );
        assert_eq!(offers([&json!({})]), []);
    }
}
