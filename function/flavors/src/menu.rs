//! What a flavor offers, in the words of `kubectl get flavors`.

use api::catalogue::{Catalogue, InstanceTypeDescription};
use api::flavor::{WorkspaceFlavorSpec, WorkspaceFlavorStatus};
use function_workspace::flavor::Pods;

/// The status of a flavor. What both halves have comes from the first instance type, because the
/// catalogue describes it.
pub fn entry(
    name: &str,
    flavor: &WorkspaceFlavorSpec,
    catalogue: &Catalogue,
    region: &str,
) -> WorkspaceFlavorStatus {
    let first = flavor
        .ec2
        .as_ref()
        .and_then(|ec2| ec2.instance_types.first());
    let described = first.and_then(|first| catalogue.instance_types.get(first));
    let pods = Pods::of(flavor);
    let prices = catalogue.prices.as_ref();
    let of_instance = first.and_then(|first| prices?.hourly_usd.get(region)?.get(first));
    let of_pod = pods.and_then(|_| prices?.flavor_hourly_usd.get(name));
    let placements = [("EC2", first.is_some()), ("Cluster", pods.is_some())];
    let placements: Vec<_> = placements
        .iter()
        .filter_map(|(placement, is_offered)| is_offered.then_some(*placement))
        .collect();
    WorkspaceFlavorStatus {
        placements: Some(placements.join(", ")),
        gpu: described.map(gpu).or_else(|| gpu_of_pods(pods?)),
        cpu: described
            .map(|described| described.vcpus.to_string())
            .or_else(|| Some(pods?.cpu.to_owned())),
        memory: described
            .map(|described| described.memory.clone())
            .or_else(|| Some(pods?.memory.to_owned())),
        instance_hourly_usd: of_instance.copied(),
        pod_hourly_usd: of_pod.copied(),
    }
}

fn gpu(described: &InstanceTypeDescription) -> String {
    format!(
        "{} x {} {}",
        described.gpus, described.gpu, described.gpu_memory
    )
}

/// The GPUs of a pod; none for pods without GPUs.
fn gpu_of_pods(pods: Pods<'_>) -> Option<String> {
    let product = pods.flavor.gpu_product.as_deref().unwrap_or("GPU");
    (pods.flavor.gpus > 0).then(|| format!("{} x {product}", pods.flavor.gpus))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(flavor: Value) -> Value {
        let catalogue = json!({
            "instanceTypes": {"g4dn.xlarge":
                {"gpu": "T4", "gpus": 1, "gpuMemory": "16Gi", "vcpus": 4, "memory": "16Gi"}},
            "prices": {
                "asOf": "2026-11-01",
                "hourlyUsd": {"us-east-1": {"g4dn.xlarge": 0.526}},
                "flavorHourlyUsd": {"t4": 0.6}
            }
        });
        let catalogue = serde_json::from_value(catalogue).unwrap();
        let flavor = serde_json::from_value(flavor).unwrap();
        serde_json::to_value(entry("t4", &flavor, &catalogue, "us-east-1")).unwrap()
    }

    fn pods() -> Value {
        json!({"image": "a", "opencvVersion": "4.8.0", "pytorchVersion": "2.9.1", "cpu": "500m",
               "memory": "1Gi"})
    }

    #[test]
    fn the_menu_shows_what_a_machine_has_and_costs_in_each_placement() {
        let mut both = pods();
        both["ec2"] = json!({"instanceTypes": ["g4dn.xlarge", "g4dn.2xlarge"]});
        assert_eq!(
            shown(both),
            json!({"placements": "EC2, Cluster", "gpu": "1 x T4 16Gi", "cpu": "4",
                   "memory": "16Gi", "instanceHourlyUsd": 0.526, "podHourlyUsd": 0.6})
        );
    }

    #[test]
    fn pods_are_described_by_their_flavor() {
        let mut gpus = pods();
        gpus["gpus"] = json!(2);
        gpus["gpuProduct"] = json!("NVIDIA-A10G");
        let shown = shown(gpus);
        assert_eq!(shown["gpu"], "2 x NVIDIA-A10G");
        assert_eq!(shown["cpu"], "500m");
        assert_eq!(shown["placements"], "Cluster");
        assert_eq!(shown.get("instanceHourlyUsd"), None);
    }

    #[test]
    fn a_type_that_nobody_describes_has_its_place_in_the_menu_without_a_price() {
        let flavor = json!({"ec2": {"instanceTypes": ["p5.48xlarge"]}});
        assert_eq!(shown(flavor), json!({"placements": "EC2"}));
    }
}
