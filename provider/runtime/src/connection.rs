//! `writeConnectionSecretToRef`: a Secret with the data for connecting to the external resource.

use std::collections::{BTreeMap, BTreeSet};

use api::managed::LocalSecretReference;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Resource};

/// The type of Crossplane's connection Secrets.
pub const SECRET_TYPE: &str = "connection.crossplane.io/v1alpha1";
/// The reason of the event about a failure.
pub const EVENT: &str = "CannotPublishConnectionDetails";

/// Connection details by key.
pub type Details = BTreeMap<String, Vec<u8>>;

/// The reason why connection details cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The Secret is not a connection Secret of this resource.
    #[error(
        "spec.writeConnectionSecretToRef.name: Secret {0:?} belongs to somebody else; name one \
         that does not exist"
    )]
    Foreign(String),
    /// The API server refused.
    #[error("Secret {name:?}: {source}")]
    Api {
        /// The Secret's name.
        name: String,
        /// The error of the API server.
        #[source]
        source: kube::Error,
    },
}

/// Publishes the details of a namespaced resource if they differ from the Secret, and returns
/// whether they did. Keys that were published before and are not among the details any more are
/// removed. Keys of others stay.
///
/// The resource owns the Secret, so Kubernetes deletes both together.
pub async fn publish<K>(
    client: &Client,
    manager: &str,
    owner: &K,
    reference: &LocalSecretReference,
    details: Details,
) -> Result<bool, ConnectionError>
where
    K: Resource<DynamicType = ()>,
{
    let namespace = owner.meta().namespace.clone().unwrap_or_default();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    let name = &reference.name;
    let refused = |source| ConnectionError::Api {
        name: name.clone(),
        source,
    };
    let existing = secrets.get_opt(name).await.map_err(refused)?;
    if let Some(secret) = &existing {
        if !is_controllable(secret, owner.meta()) {
            return Err(ConnectionError::Foreign(name.clone()));
        }
        if is_published(secret, manager, &details) {
            return Ok(false);
        }
    }
    let version = existing.and_then(|secret| secret.metadata.resource_version);
    let desired = secret(owner, name, version, details);
    // With the version, the write is a conflict if another client changed the Secret meanwhile.
    let apply = PatchParams::apply(manager).force();
    secrets
        .patch(name, &apply, &Patch::Apply(&desired))
        .await
        .map_err(refused)?;
    Ok(true)
}

/// As in crossplane-runtime: a Secret is taken over if it has no controller and its type is that of
/// a connection Secret.
fn is_controllable(secret: &Secret, owner: &ObjectMeta) -> bool {
    let owners = secret.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|o| o.controller == Some(true));
    match controllers.next() {
        Some(controller) => Some(&controller.uid) == owner.uid.as_ref(),
        None => secret.type_.as_deref() == Some(SECRET_TYPE),
    }
}

fn is_published(secret: &Secret, manager: &str, details: &Details) -> bool {
    let data = secret.data.as_ref();
    let is_there = |(key, value): (&String, &Vec<u8>)| {
        data.and_then(|data| data.get(key))
            .is_some_and(|there| there.0 == *value)
    };
    details.iter().all(is_there) && ours(secret, manager).is_subset(&details.keys().collect())
}

/// The keys that this provider wrote and that no other manager took over.
fn ours<'a>(secret: &'a Secret, manager: &str) -> BTreeSet<&'a String> {
    let entries = secret.metadata.managed_fields.iter().flatten();
    entries
        .filter(|entry| entry.manager.as_deref() == Some(manager))
        .filter_map(|entry| entry.fields_v1.as_ref()?.0.get("f:data")?.as_object())
        .flat_map(|keys| keys.keys())
        .filter(|key| *key != ".")
        .collect()
}

fn secret<K>(owner: &K, name: &str, version: Option<String>, details: Details) -> Secret
where
    K: Resource<DynamicType = ()>,
{
    let data = details
        .into_iter()
        .map(|(key, value)| (key, ByteString(value)));
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: owner.meta().namespace.clone(),
            resource_version: version,
            owner_references: owner.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        type_: Some(SECRET_TYPE.to_owned()),
        data: Some(data.collect()),
        ..Secret::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::thing;
    use memory_api_server::ApiServer;

    const PATH: &str = "/api/v1/namespaces/default/secrets/reach-me";

    async fn publish_to(
        server: &ApiServer,
        details: &[(&str, &str)],
    ) -> Result<bool, ConnectionError> {
        let details = details
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
        let reference = LocalSecretReference {
            name: "reach-me".into(),
        };
        let (owner, client) = (thing("a", &[]), server.client());
        publish(&client, "provider", &owner, &reference, details.collect()).await
    }

    #[tokio::test]
    async fn an_application_finds_the_details_in_a_secret_that_goes_with_the_resource() {
        let server = ApiServer::default();
        assert!(
            publish_to(&server, &[("endpoint", "192.0.2.1")])
                .await
                .unwrap()
        );
        let secret = server.object(PATH).unwrap();
        assert_eq!(secret["type"], SECRET_TYPE);
        assert_eq!(secret["data"]["endpoint"], "MTkyLjAuMi4x");
        let owner = &secret["metadata"]["ownerReferences"][0];
        assert_eq!(owner["kind"], "Thing");
        assert_eq!(owner["controller"], true);
    }

    #[tokio::test]
    async fn a_secret_that_is_right_is_not_written_again() {
        let server = ApiServer::default();
        let details = [("endpoint", "192.0.2.1")];
        publish_to(&server, &details).await.unwrap();
        let writes = server.writes();
        assert!(!publish_to(&server, &details).await.unwrap());
        assert_eq!(server.writes(), writes);
        assert!(
            publish_to(&server, &[("endpoint", "192.0.2.2")])
                .await
                .unwrap()
        );
        assert_eq!(
            server.object(PATH).unwrap()["data"]["endpoint"],
            "MTkyLjAuMi4y"
        );
    }

    #[tokio::test]
    async fn a_key_that_is_no_detail_any_more_is_taken_away() {
        let server = ApiServer::default();
        publish_to(&server, &[("endpoint", "a")]).await.unwrap();
        let mut secret = server.object(PATH).unwrap();
        secret["metadata"]["managedFields"] = json!([{
            "manager": "provider",
            "operation": "Apply",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:endpoint": {}}},
        }]);
        server.put(PATH, secret);
        assert!(publish_to(&server, &[]).await.unwrap());
    }

    #[tokio::test]
    async fn a_secret_of_somebody_else_is_never_written() {
        let somebody = json!([{
            "apiVersion": "v1", "kind": "Other", "name": "b", "uid": "u2", "controller": true,
        }]);
        for (type_, owners) in [("Opaque", json!([])), (SECRET_TYPE, somebody)] {
            let server = ApiServer::default();
            server.put(
                PATH,
                json!({
                    "apiVersion": "v1", "kind": "Secret", "type": type_,
                    "metadata": {"name": "reach-me", "ownerReferences": owners},
                    "data": {"password": "c2VjcmV0"},
                }),
            );
            let error = publish_to(&server, &[("endpoint", "a")]).await.unwrap_err();
            assert!(matches!(error, ConnectionError::Foreign(_)), "{error}");
            assert_eq!(server.writes(), 0);
        }
    }
}
