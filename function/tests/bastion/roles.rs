//! The roles that the platform gives the bastion.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

/// The resources of the roles in the platform's example, by the role's name.
fn roles() -> BTreeMap<String, Vec<(String, Value)>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/platform/cluster-rbac.yaml");
    let text = fs::read_to_string(path).unwrap();
    let documents = serde_yaml::Deserializer::from_str(&text);
    let documents = documents.map(|document| Value::deserialize(document).unwrap());
    documents
        .filter(|document| document["kind"] == "ClusterRole")
        .map(|role| {
            let rules = role["rules"].as_array().unwrap().iter().flat_map(|rule| {
                let resources = rule["resources"].as_array().unwrap().iter();
                resources.map(|resource| (resource.as_str().unwrap().to_owned(), rule.clone()))
            });
            let name = role["metadata"]["name"].as_str().unwrap();
            (name.to_owned(), rules.collect())
        })
        .collect()
}

/// A way into a pod beside SSH would be in no log of the bastion, and would not count as use.
#[test]
fn the_role_of_the_bastion_reads_no_secret_and_opens_no_other_way_into_a_pod() {
    let roles = roles();
    let role = &roles["gpu-workspaces-owner-by-bastion"];
    for (resource, rule) in role {
        let is_known = [
            "gpudevworkspaceclaims",
            "pods",
            "events",
            "resourcequotas",
            "configmaps",
            "persistentvolumeclaims",
            "workloads",
        ];
        assert!(is_known.contains(&resource.as_str()), "{resource}");
        let named = &rule["resourceNames"];
        let is_account = *named == json!(["gpu-workspaces.account"]);
        assert!(resource != "configmaps" || is_account, "{rule}");
    }
    let bind = &roles["crossplane-composes-gpu-workspaces"];
    let (_, bind) = bind
        .iter()
        .find(|(name, _)| name == "clusterroles")
        .unwrap();
    assert_eq!(bind["verbs"], json!(["bind"]));
    // The defaults of the policy of users.
    let bound = json!(["gpu-workspaces-owner", "gpu-workspaces-owner-by-bastion"]);
    assert_eq!(bind["resourceNames"], bound);
}
