//! Writes of a status. They keep the fields that this version does not know.
//!
//! During an upgrade two versions work at the same time, and after a rollback the older one works
//! alone. If it replaced the whole status, it would delete what the newer one recorded before its
//! calls.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, Patch, PatchParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Writes what differs between two statuses, and returns the object after that. The write fails
/// with a conflict if another client wrote since `meta` was read, even if nothing differs. A list is
/// replaced as a whole.
pub async fn write<K, S>(
    api: &Api<K>,
    meta: &ObjectMeta,
    before: Option<&S>,
    after: &S,
) -> kube::Result<K>
where
    K: Clone + DeserializeOwned + Debug,
    S: Serialize,
{
    let before = serde_json::to_value(before).map_err(kube::Error::SerdeError)?;
    let after = serde_json::to_value(after).map_err(kube::Error::SerdeError)?;
    let patch = json!({
        "metadata": {"resourceVersion": meta.resource_version},
        "status": changes(&before, &after),
    });
    let name = meta.name.as_deref().unwrap_or_default();
    let parameters = PatchParams::default();
    api.patch_status(name, &parameters, &Patch::Merge(patch))
        .await
}

/// The merge patch (RFC 7396) that turns `before` into `after`.
fn changes(before: &Value, after: &Value) -> Value {
    let Value::Object(after) = after else {
        return after.clone();
    };
    let nothing = Map::new();
    let before = before.as_object().unwrap_or(&nothing);
    let removed = before.keys().filter(|key| !after.contains_key(*key));
    let removed = removed.map(|key| (key.clone(), Value::Null));
    let changed = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(*value));
    let changed = changed.map(|(key, value)| {
        let old = before.get(key).unwrap_or(&Value::Null);
        (key.clone(), changes(old, value))
    });
    removed.chain(changed).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use kube::Resource as _;

    use super::*;
    use crate::testing::{Thing, thing};
    use memory_api_server::ApiServer;

    const PATH: &str = "/apis/example.org/v1/namespaces/default/things/a";

    #[test]
    fn a_patch_turns_one_status_into_the_other() {
        let before = json!({"a": {"x": 1, "y": 2}, "list": [1, 2], "gone": "z", "same": {"s": 1}});
        let after = json!({"a": {"x": 1, "y": 3}, "list": [2], "new": {"n": {}}, "same": {"s": 1}});
        let patch = changes(&before, &after);
        let expected = json!({"a": {"y": 3}, "list": [2], "gone": null, "new": {"n": {}}});
        assert_eq!(patch, expected);
        let mut patched = before;
        json_patch::merge(&mut patched, &patch);
        assert_eq!(patched, after);
    }

    #[tokio::test]
    async fn a_field_of_a_newer_version_survives_the_write_of_an_older_one() {
        let server = ApiServer::default();
        let mut stored = serde_json::to_value(thing("a", &[("Ready", true)])).unwrap();
        stored["status"]["endingOfTheNextVersion"] = json!(["i-1"]);
        server.put(PATH, stored);
        let api: Api<Thing> = Api::namespaced(server.client(), "default");
        let read = api.get("a").await.unwrap();
        let after = thing("a", &[("Ready", false)]).status.unwrap();
        let written = write(&api, read.meta(), read.status.as_ref(), &after).await;
        assert!(written.is_ok());
        let status = server.object(PATH).unwrap()["status"].clone();
        assert_eq!(status["conditions"][0]["status"], "False");
        assert_eq!(status["endingOfTheNextVersion"], json!(["i-1"]));
    }

    #[tokio::test]
    async fn a_write_from_an_old_version_is_refused_although_nothing_differs() {
        let server = ApiServer::default();
        let stored = serde_json::to_value(thing("a", &[])).unwrap();
        server.put(PATH, stored.clone());
        let api: Api<Thing> = Api::namespaced(server.client(), "default");
        let read = api.get("a").await.unwrap();
        server.put(PATH, stored);
        let status = read.status.as_ref();
        let refused = write(&api, read.meta(), status, status.unwrap()).await;
        let is_conflict =
            |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.is_conflict());
        assert!(refused.is_err_and(|error| is_conflict(&error)));
    }
}
