//! Safe-start: a controller starts when its kind is served.
//!
//! Crossplane makes a `ManagedResourceDefinition` from a provider's CRD. While it is inactive, the
//! API server does not know the kind, and a watch of the kind fails. A package with the capability
//! `safe-start` may read CRDs.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use kube::api::Api;
use kube::runtime::wait::await_condition;
use kube::{Client, Resource};

use crate::readiness::Readiness;

/// The time before the next try after the API server refused. Crossplane may grant the right to
/// read CRDs a moment after the provider's start.
const AFTER_REFUSAL: Duration = Duration::from_secs(2);

/// Whether the API server serves a kind.
pub async fn is_served<K>(client: &Client) -> kube::Result<bool>
where
    K: Resource<DynamicType = ()>,
{
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd = crds.get_opt(&name::<K>()).await?;
    Ok(serves(crd.as_ref(), &K::version(&())))
}

/// Returns when the API server serves a kind. A process whose kind is inactive is ready, because it
/// has nothing to do. A process that cannot find out is not ready.
pub async fn await_served<K>(client: &Client, readiness: &Readiness)
where
    K: Resource<DynamicType = ()>,
{
    if !find_served::<K>(client, readiness).await {
        await_activated::<K>(client).await;
    }
}

/// Whether the API server serves a kind. It asks until the API server answers, and the process is
/// not ready before that.
pub async fn find_served<K>(client: &Client, readiness: &Readiness) -> bool
where
    K: Resource<DynamicType = ()>,
{
    let name = name::<K>();
    let looking = readiness.wait_for(format!("the CRD {name}"));
    let is_served = loop {
        match is_served::<K>(client).await {
            Ok(is_served) => break is_served,
            Err(error) => tracing::warn!(crd = name, %error, "cannot read the CRD"),
        }
        tokio::time::sleep(AFTER_REFUSAL).await;
    };
    looking.finish();
    is_served
}

/// Returns when a kind that was inactive is served.
pub async fn await_activated<K>(client: &Client)
where
    K: Resource<DynamicType = ()>,
{
    let name = name::<K>();
    tracing::info!(crd = name, "waiting for the kind to be activated");
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let version = K::version(&());
    let serves = |crd: Option<&CustomResourceDefinition>| serves(crd, &version);
    while let Err(error) = await_condition(crds.clone(), &name, serves).await {
        tracing::warn!(crd = name, %error, "cannot watch the CRD");
        tokio::time::sleep(AFTER_REFUSAL).await;
    }
}

/// The CRD's name: `plural.group`.
fn name<K: Resource<DynamicType = ()>>() -> String {
    format!("{}.{}", K::plural(&()), K::group(&()))
}

/// Whether the API server serves this version of the CRD's kind, and the CRD is not being deleted.
fn serves(crd: Option<&CustomResourceDefinition>, version: &str) -> bool {
    let Some(crd) = crd.filter(|crd| crd.metadata.deletion_timestamp.is_none()) else {
        return false;
    };
    let conditions = crd.status.iter().filter_map(|s| s.conditions.as_ref());
    let is_established = conditions
        .flatten()
        .any(|c| c.type_ == "Established" && c.status == "True");
    let is_it = |v: &CustomResourceDefinitionVersion| v.name == version && v.served;
    is_established && crd.spec.versions.iter().any(is_it)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Thing;
    use memory_api_server::ApiServer;

    const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.org";

    fn crd(established: &str, served: bool) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.org"},
            "spec": {
                "group": "example.org",
                "names": {"kind": "Thing", "plural": "things"},
                "scope": "Namespaced",
                "versions": [{"name": "v1", "served": served, "storage": true}],
            },
            "status": {
                "acceptedNames": {"kind": "Thing", "plural": "things"},
                "storedVersions": [],
                "conditions": [{"type": "Established", "status": established}],
            },
        })
    }

    #[tokio::test]
    async fn a_controller_whose_kind_is_inactive_does_not_begin() {
        let server = ApiServer::default();
        let client = server.client();
        assert!(!is_served::<Thing>(&client).await.unwrap());
        for (established, served, begins) in [
            ("False", true, false),
            ("True", false, false),
            ("True", true, true),
        ] {
            server.put(PATH, crd(established, served));
            assert_eq!(is_served::<Thing>(&client).await.unwrap(), begins);
        }
        let mut leaving = crd("True", true);
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        server.put(PATH, leaving);
        assert!(!is_served::<Thing>(&client).await.unwrap());
    }
}
