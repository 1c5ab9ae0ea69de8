//! The platform: its definitions, Compositions and catalogue, as the API server knows them now.

use std::collections::BTreeMap;

use function_preview::platform::Platform;
use function_preview::selection::{CLAIM_NAMESPACE, selects};
use function_preview::{composed, composition};
use function_runtime::requirement::{Requirement, Selector};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use portal_core::problem::Problem;
use serde_json::Value;
use tokio::sync::oneshot;
use tracing::warn;

use crate::objects::{self, Objects, Served};

/// The kind that people write.
const CLAIM: &str = "GpuDevWorkspaceClaim";
const DEFINITIONS: Served = Served::new(
    "apiextensions.crossplane.io",
    "v1",
    "CompositeResourceDefinition",
    "compositeresourcedefinitions",
);
const COMPOSITIONS: Served = Served::new(
    "apiextensions.crossplane.io",
    "v1",
    "Composition",
    "compositions",
);
const CONFIGURATIONS: Served = Served::new(
    "apiextensions.crossplane.io",
    "v1beta1",
    "EnvironmentConfig",
    "environmentconfigs",
);
/// The group and the kind of machines.
const POOL: (&str, &str) = (api::POOL_GROUP, "SpotPool");
/// The kinds that the portal reads when it needs them, with their plurals.
const READ: [Served; 4] = [
    Served::new(POOL.0, api::VERSION, POOL.1, "spotpools"),
    Served::new("", "v1", "Namespace", "namespaces"),
    Served::ours("GpuDevWorkspace", "gpudevworkspaces"),
    Served::ours("WorkspaceRecord", "workspacerecords"),
];

/// The platform, from watches.
pub(crate) struct Followed {
    client: Client,
    definitions: Objects,
    compositions: Objects,
    configurations: Objects,
    /// The flavors.
    pub(crate) flavors: Objects,
    users: Objects,
}

impl Followed {
    /// Follows the platform. Returns when everything that exists is known.
    pub(crate) async fn follow(
        client: Client,
        flavors: Objects,
        users: Objects,
    ) -> Result<Self, oneshot::error::RecvError> {
        Ok(Self {
            definitions: objects::follow(client.clone(), DEFINITIONS).await?,
            compositions: objects::follow(client.clone(), COMPOSITIONS).await?,
            configurations: objects::follow(client.clone(), CONFIGURATIONS).await?,
            client,
            flavors,
            users,
        })
    }

    /// A `DevUser`.
    pub(crate) fn user(&self, name: &str) -> Option<Value> {
        self.users.borrow().get(name).cloned()
    }

    /// Whether the installed configuration has claims, and composites beside them.
    pub(crate) fn has_claims(&self) -> bool {
        let definitions = self.definitions.borrow();
        let found = composition::definition(definitions.values(), CLAIM);
        found.is_none_or(|found| found.pointer("/spec/claimNames").is_some())
    }

    /// The schema of the parameters of claims, as the installed definition has it; none without a definition.
    pub(crate) fn schema(&self) -> Option<Value> {
        let definitions = self.definitions.borrow();
        let found = composition::definition(definitions.values(), CLAIM)?;
        let versions = found.pointer("/spec/versions")?.as_array()?;
        let version = versions.iter().find(|version| version["served"] == true)?;
        let parameters = "/schema/openAPIV3Schema/properties/spec/properties/parameters";
        version.pointer(parameters).cloned()
    }

    /// The composite of a claim as it is in the cluster, and its pools of machines; none before Crossplane has made it.
    pub(crate) async fn composite(
        &self,
        claim: &Value,
    ) -> Result<Option<(Value, BTreeMap<String, Value>)>, Problem> {
        let text = |object: &Value, pointer: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let composite = if self.has_claims() {
            let name = text(claim, "/spec/resourceRef/name");
            if name.is_empty() {
                return Ok(None);
            }
            let named = requirement("GpuDevWorkspace", Selector::Named(name));
            let found = self.select(&named).await?.into_iter().next();
            // A person may have written the name of somebody else's composite into their claim.
            let is_own = |composite: &Value| {
                ["namespace", "name"].iter().all(|field| {
                    let of_claim = text(claim, &format!("/metadata/{field}"));
                    text(composite, &format!("/spec/claimRef/{field}")) == of_claim
                })
            };
            match found.filter(is_own) {
                Some(composite) => composite,
                None => return Ok(None),
            }
        } else {
            claim.clone()
        };
        let references = composed::references(&composite).iter();
        let pools = references.filter(|one| text(one, "/kind") == POOL.1);
        let namespace = text(claim, "/metadata/namespace");
        let mut found = Vec::new();
        for pool in pools {
            let (namespace, name) = (namespace.clone(), text(pool, "/name"));
            let named = requirement(POOL.1, Selector::NamedIn { namespace, name });
            found.extend(self.select(&named).await?);
        }
        Ok(Some((composite, composed::by_name(found))))
    }

    /// Reads objects of a kind that is not followed.
    async fn read(&self, kind: &Served, requirement: &Requirement) -> Result<Vec<Value>, Problem> {
        let resource = kind.resource();
        let everywhere = || Api::<DynamicObject>::all_with(self.client.clone(), &resource);
        let within = |namespace: &str| {
            Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &resource)
        };
        let all = ListParams::default();
        let found = match &requirement.selector {
            Selector::Named(name) => everywhere().get_opt(name).await.map(list),
            Selector::NamedIn { namespace, name } => {
                within(namespace).get_opt(name).await.map(list)
            }
            Selector::Every { namespace: None } => everywhere().list(&all).await.map(|l| l.items),
            Selector::Every {
                namespace: Some(namespace),
            } => within(namespace).list(&all).await.map(|l| l.items),
            Selector::Claimed { namespace } => {
                let labelled = all.labels(&format!("{CLAIM_NAMESPACE}={namespace}"));
                everywhere().list(&labelled).await.map(|l| l.items)
            }
            Selector::Labelled {
                namespace,
                key,
                value,
            } => {
                let labelled = all.labels(&format!("{key}={value}"));
                within(namespace).list(&labelled).await.map(|l| l.items)
            }
        };
        match found {
            Ok(found) => Ok(found.iter().filter_map(|one| kind.value(one)).collect()),
            // The other configuration does not have the kind.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => {
                warn!(%error, kind = kind.kind, "cannot read what a decision needs");
                let detail = format!("the portal cannot read {} now: try again", kind.plural);
                Err(Problem::unavailable(detail))
            }
        }
    }
}

impl Platform for Followed {
    type Error = Problem;

    fn policy(&self, kind: &str, object: &Value) -> Option<Value> {
        let definitions = self.definitions.borrow();
        let of = object.get("kind").and_then(Value::as_str)?;
        let definition = composition::definition(definitions.values(), of)?;
        let name = composition::of(definition, object)?;
        let compositions = self.compositions.borrow();
        composition::input(compositions.get(name)?, kind).cloned()
    }

    async fn select(&self, requirement: &Requirement) -> Result<Vec<Value>, Problem> {
        let followed = match requirement.kind {
            "EnvironmentConfig" => &self.configurations,
            "WorkspaceFlavor" => &self.flavors,
            "DevUser" => &self.users,
            other => {
                return match READ.iter().find(|kind| kind.kind == other) {
                    Some(kind) => self.read(kind, requirement).await,
                    // It exists beside a workspace only, so a new one does without.
                    None => Ok(Vec::new()),
                };
            }
        };
        let objects = followed.borrow();
        let selected = objects.values().filter(|one| selects(requirement, one));
        Ok(selected.cloned().collect())
    }
}

fn requirement(kind: &'static str, selector: Selector) -> Requirement {
    Requirement {
        name: kind.to_owned(),
        api_version: api::VERSION,
        kind,
        selector,
    }
}

fn list(found: Option<DynamicObject>) -> Vec<DynamicObject> {
    found.into_iter().collect()
}
