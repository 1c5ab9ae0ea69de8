//! Which desired resources keep a machine or a pod running, by the documents of the providers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Why a desired resource keeps a machine or a pod running; none if it keeps none.
pub fn runs(name: &str, observed: &Value, all: &BTreeMap<String, Value>) -> Option<String> {
    let desired = all.get(name);
    if name == "pool" || name.starts_with("pool-") {
        let parameters = desired?.pointer("/spec/forProvider")?.as_object()?;
        let size = parameters.get("size").and_then(|size| size.get("maximum"));
        return (size != Some(&json!(0))).then(|| format!("{name} has the size {size:?}"));
    }
    if name == "cluster-stateful-set" {
        let replicas = desired?.pointer("/spec/replicas");
        return (replicas != Some(&json!(0))).then(|| format!("{replicas:?} pods"));
    }
    if name.starts_with("instance-") {
        desired?;
        let text = |path: &str| observed.pointer(path)?.as_str().filter(|t| !t.is_empty());
        let id = text("/status/atProvider/id")?;
        // The CRD requires these, and an InstanceState needs them. upbound's provider has two kinds
        // of configurations.
        text("/spec/forProvider/region")?;
        text("/metadata/namespace")?;
        text("/spec/providerConfigRef/name")?;
        let kind = text("/spec/providerConfigRef/kind")?;
        if !["ProviderConfig", "ClusterProviderConfig"].contains(&kind) {
            return None;
        }
        let conditions = observed.pointer("/status/conditions")?.as_array()?;
        let is_ready = |c: &Value| c["type"] == "Ready" && c["status"] != "False";
        if !conditions.iter().any(is_ready) {
            return None;
        }
        let stops = |state: &Value| {
            state.pointer("/spec/forProvider/instanceId") == Some(&json!(id))
                && state.pointer("/spec/forProvider/state") == Some(&json!("stopped"))
        };
        let mut states = all.iter().filter(|(name, _)| name.starts_with("power-"));
        return (!states.any(|(_, state)| stops(state))).then(|| format!("{id} runs on"));
    }
    None
}
