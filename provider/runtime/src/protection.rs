//! Prevents the deletion of a provider configuration that is in use: without it, the resources that
//! use it could not be cleaned up. Also tells a configuration what the provider does not do for it.

mod controller;
mod users;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use api::condition::{ConditionStatus, Conditioned as _, find};
use api::managed::ProviderConfigStatus;
use jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::object::HasStatus;
use kube::runtime::controller::Action;
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::conditions::{self, Verdict};
use crate::events::{Events, Happened};
use crate::finalizer;

pub use controller::run;
use users::{references, users, visible_to};

/// The condition of a configuration whose deletion waits.
pub const TERMINATING: &str = "Terminating";
/// The condition of a configuration that asks for more than the provider may do for it.
pub const PERMITTED: &str = "Permitted";
const IN_USE: &str = "InUse";
const EVENT: &str = "UsageAccounting";
const NOT_PERMITTED: &str = "NotPermitted";

/// The time between two checks of a configuration whose deletion waits for resources that have lost
/// their usages.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What the provider does not do for a configuration, and the next step.
pub type NotPermitted<C> = Box<dyn Fn(&C) -> Option<String> + Send + Sync>;

/// The data that the reconciles of configurations share.
pub struct Protection<C> {
    /// The client of the API server.
    pub client: Client,
    /// The provider's kinds of managed resources.
    pub managed: Vec<ApiResource>,
    /// The writer of events.
    pub events: Events,
    /// What the provider's own rules say about a configuration.
    pub not_permitted: NotPermitted<C>,
}

/// Counts the users of a configuration of kind `C`, which are usages of kind `U`, and keeps the
/// configuration while there are any. It must be called when the configuration or one of its usages
/// changes.
///
/// A usage may be deleted before its resource: Kubernetes deletes dependents first when a deletion
/// is one in the foreground or of a whole namespace. So before the configuration is deleted, the
/// resources themselves are counted.
pub async fn reconcile<C, U>(config: Arc<C>, protection: &Protection<C>) -> kube::Result<Action>
where
    C: Resource<DynamicType = ()> + HasStatus<Status = ProviderConfigStatus>,
    U: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let is_deleted = config.meta().deletion_timestamp.is_some();
    let mut users = users::<C, U>(config.as_ref(), &protection.client).await?;
    let is_deserted = is_deleted && users == 0;
    if is_deserted {
        users = references(config.as_ref(), &protection.client, &protection.managed).await?;
    }
    let configs = configs(config.as_ref(), &protection.client);
    let meta = config.meta();
    let is_kept = finalizer::is_present(meta, finalizer::IN_USE);
    if is_deleted && users == 0 {
        if is_kept {
            finalizer::remove(&configs, meta, finalizer::IN_USE).await?;
        }
        return Ok(Action::await_change());
    }
    let meta = if is_deleted || is_kept {
        meta.clone()
    } else {
        finalizer::add(&configs, meta, finalizer::IN_USE, &[])
            .await?
            .metadata
    };
    let before = config.status().cloned().unwrap_or_default();
    let seen = Seen {
        users,
        is_deleted,
        not_permitted: (protection.not_permitted)(config.as_ref()),
    };
    let after = status(&before, seen, meta.generation);
    if before != after {
        let patch = json!({
            "metadata": {"resourceVersion": meta.resource_version},
            "status": after,
        });
        let parameters = PatchParams::default();
        configs
            .patch_status(&config.name_any(), &parameters, &Patch::Merge(patch))
            .await?;
    }
    let happened = happened(&before, &after);
    if !happened.is_empty() {
        let now = Timestamp::now();
        protection
            .events
            .publish(config.as_ref(), &happened, now)
            .await;
    }
    Ok(if is_deserted {
        Action::requeue(LOOK_AGAIN)
    } else {
        Action::await_change()
    })
}

fn configs<C>(config: &C, client: &Client) -> Api<DynamicObject>
where
    C: Resource<DynamicType = ()>,
{
    visible_to(config, client, &ApiResource::erase::<C>(&()))
}

/// What a reconcile has found out about a configuration.
struct Seen {
    users: i64,
    is_deleted: bool,
    not_permitted: Option<String>,
}

fn status(
    before: &ProviderConfigStatus,
    seen: Seen,
    generation: Option<i64>,
) -> ProviderConfigStatus {
    let mut after = before.clone();
    after.users = Some(seen.users);
    let terminating = seen.is_deleted.then(|| {
        let message = "managed resources still use it: delete them first";
        Verdict::new(TERMINATING, ConditionStatus::True, IN_USE, message)
    });
    let permitted = match seen.not_permitted {
        Some(message) => Some(Verdict::new(
            PERMITTED,
            ConditionStatus::False,
            NOT_PERMITTED,
            message,
        )),
        // A configuration that never asked for too much does not need the condition.
        None if find(before.conditions(), PERMITTED).is_some() => Some(Verdict::new(
            PERMITTED,
            ConditionStatus::True,
            PERMITTED,
            "",
        )),
        None => None,
    };
    for verdict in terminating.into_iter().chain(permitted) {
        conditions::set(&mut after.conditions, verdict, generation, Timestamp::now());
    }
    after
}

/// The events about a change of the conditions.
fn happened(before: &ProviderConfigStatus, after: &ProviderConfigStatus) -> Vec<Happened> {
    let told = |status: &ProviderConfigStatus, type_, value| {
        let found = find(status.conditions(), type_).filter(|c| c.status == value);
        found.map(|condition| condition.message.clone())
    };
    let mut happened = Vec::new();
    if let (None, Some(waits)) = (
        told(before, TERMINATING, ConditionStatus::True),
        told(after, TERMINATING, ConditionStatus::True),
    ) {
        happened.push(Happened::warning(EVENT, waits));
    }
    let refused = told(after, PERMITTED, ConditionStatus::False);
    if let Some(message) = refused
        && told(before, PERMITTED, ConditionStatus::False).as_ref() != Some(&message)
    {
        happened.push(Happened::warning(NOT_PERMITTED, message));
    }
    happened
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::metrics::Metrics;
    use crate::metrics::happened::EventCounts;
    use crate::testing::{Config, Thing, Use};
    use crate::usage::{CONFIG_KIND_LABEL, CONFIG_LABEL};
    use memory_api_server::ApiServer;

    const CONFIG: &str = "/apis/example.org/v1/configs/main";
    const USE: &str = "/apis/example.org/v1/namespaces/team/uses/u1";

    fn config(server: &ApiServer, deleted: bool) {
        let mut meta = json!({"name": "main", "uid": "c"});
        if deleted {
            meta["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            meta["finalizers"] = json!([finalizer::IN_USE, "somebody.else"]);
        }
        server.put(
            CONFIG,
            json!({
                "apiVersion": "example.org/v1", "kind": "Config",
                "metadata": meta, "spec": {},
            }),
        );
    }

    fn a_use(server: &ApiServer, of: &str, owners: &Value) {
        server.put(
            USE,
            json!({
                "apiVersion": "example.org/v1", "kind": "Use",
                "metadata": {
                    "name": "u1", "namespace": "team", "ownerReferences": owners,
                    "labels": {CONFIG_LABEL: of, CONFIG_KIND_LABEL: "Config"},
                },
            }),
        );
    }

    fn owner() -> Value {
        json!([{"apiVersion": "v1", "kind": "Thing", "name": "a", "uid": "u1", "controller": true}])
    }

    async fn look(server: &ApiServer) -> Value {
        let counts = EventCounts::new(&Metrics::new(), "events", "Events");
        let protection = Protection {
            client: server.client(),
            managed: vec![ApiResource::erase::<Thing>(&())],
            events: Events::new(server.client(), "provider", counts),
            not_permitted: Box::new(|config: &Config| {
                let is_greedy = config.metadata.labels.as_ref();
                let is_greedy = is_greedy.is_some_and(|labels| labels.contains_key("greedy"));
                is_greedy.then(|| "it asks for too much".to_owned())
            }),
        };
        let stored: Config = serde_json::from_value(server.object(CONFIG).unwrap()).unwrap();
        reconcile::<_, Use>(Arc::new(stored), &protection)
            .await
            .unwrap();
        server.object(CONFIG).unwrap()
    }

    #[tokio::test]
    async fn a_configuration_says_how_many_resources_use_it() {
        let server = ApiServer::default();
        config(&server, false);
        let unused = look(&server).await;
        assert_eq!(unused["metadata"]["finalizers"], json!([finalizer::IN_USE]));
        assert_eq!(unused["status"]["users"], 0);
        a_use(&server, "main", &owner());
        assert_eq!(look(&server).await["status"]["users"], 1);
        let writes = server.writes();
        look(&server).await;
        assert_eq!(server.writes(), writes, "written though nothing changed");
    }

    #[tokio::test]
    async fn a_configuration_in_use_stays_and_says_why() {
        let server = ApiServer::default();
        config(&server, true);
        a_use(&server, "main", &owner());
        let kept = look(&server).await;
        assert!(
            kept["metadata"]["finalizers"]
                .to_string()
                .contains(finalizer::IN_USE)
        );
        let condition = &kept["status"]["conditions"][0];
        assert_eq!(condition["type"], TERMINATING);
        assert_eq!(condition["reason"], "InUse");
        assert_eq!(server.events(), 1);
        look(&server).await;
        assert_eq!(server.events(), 1, "told twice");
    }

    #[tokio::test]
    async fn a_configuration_says_what_is_not_permitted_to_it() {
        let server = ApiServer::default();
        let greedy = |labels: &Value| {
            let mut stored = server.object(CONFIG).unwrap();
            stored["metadata"]["labels"] = labels.clone();
            server.put(CONFIG, stored);
        };
        config(&server, false);
        assert_eq!(look(&server).await["status"].get("conditions"), None);
        greedy(&json!({"greedy": ""}));
        let condition = look(&server).await["status"]["conditions"][0].clone();
        assert_eq!(condition["type"], PERMITTED);
        assert_eq!(condition["status"], "False");
        assert_eq!(condition["message"], "it asks for too much");
        let (events, writes) = (server.events(), server.writes());
        assert_eq!(events, 1);
        look(&server).await;
        assert_eq!((server.events(), server.writes()), (events, writes));
        greedy(&json!({}));
        let condition = look(&server).await["status"]["conditions"][0].clone();
        assert_eq!(condition["status"], "True");
        assert_eq!(server.events(), 1, "an event about nothing to do");
    }

    #[tokio::test]
    async fn a_configuration_goes_with_its_last_user() {
        let server = ApiServer::default();
        config(&server, true);
        // Usages of another configuration, and usages without an owner, do not count.
        a_use(&server, "another", &owner());
        assert_eq!(
            look(&server).await["metadata"]["finalizers"],
            json!(["somebody.else"])
        );
        config(&server, true);
        a_use(&server, "main", &json!([]));
        assert_eq!(
            look(&server).await["metadata"]["finalizers"],
            json!(["somebody.else"])
        );
    }

    #[tokio::test]
    async fn a_configuration_outlives_usages_that_went_before_their_resource() {
        let server = ApiServer::default();
        config(&server, true);
        let thing = "/apis/example.org/v1/namespaces/team/things/a";
        server.put(
            thing,
            json!({
                "apiVersion": "example.org/v1", "kind": "Thing",
                "metadata": {
                    "name": "a", "namespace": "team", "finalizers": [finalizer::MANAGED],
                    "deletionTimestamp": "2026-01-01T00:00:00Z",
                },
                "spec": {"providerConfigRef": {"kind": "Config", "name": "main"}},
            }),
        );
        let kept = look(&server).await;
        assert_eq!(kept["status"]["users"], 1);
        assert!(
            kept["metadata"]["finalizers"]
                .to_string()
                .contains(finalizer::IN_USE)
        );
        // The resource has no finalizer any more, so nothing of it has to be cleaned up.
        server.put(
            thing,
            json!({"apiVersion": "example.org/v1", "kind": "Thing",
            "metadata": {"name": "a", "namespace": "team"},
            "spec": {"providerConfigRef": {"kind": "Config", "name": "main"}}}),
        );
        assert_eq!(
            look(&server).await["metadata"]["finalizers"],
            json!(["somebody.else"])
        );
    }
}
