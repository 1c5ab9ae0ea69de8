//! Builds the composed resources of a user: the namespace and its contents.

use std::collections::BTreeMap;

use api::cost::BudgetStatus;
use api::dev_user::{DevUserPolicy, DevUserSpec};
use api::policy::BehaviourVersion;
use function_runtime::desired::Composed;
use function_runtime::outcome::Refusal;
use function_workspace::labels::{API_VERSION, KUEUE};
use k8s_openapi::api::core::v1::{
    ConfigMap, LimitRange, LimitRangeItem, LimitRangeSpec, Namespace, ResourceQuota,
    ResourceQuotaSpec,
};
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde_json::{Value, json};

use crate::resource_names;

/// The name of the `ConfigMap` that devctl reads.
const ACCOUNT: &str = "gpu-workspaces.account";

/// The composite's kind.
pub const KIND: &str = "DevUser";

/// A user, and the policy that applies.
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// The user's name, which is the `owner` of their claims.
    pub name: &'a str,
    /// The name of the user's namespace.
    pub namespace: &'a str,
    /// The `DevUser`'s spec.
    pub spec: &'a DevUserSpec,
    /// The policy of the Composition.
    pub policy: &'a DevUserPolicy,
}

/// The `ClusterUsage` that refuses the deletion of the user `name`. Kubernetes shows `reason` to
/// the person who tries to delete the user.
pub fn protection(name: &str, reason: &str) -> Value {
    json!({
        "apiVersion": "protection.crossplane.io/v1beta1",
        "kind": "ClusterUsage",
        "spec": {
            "of": {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "resourceRef": {"name": name},
            },
            "reason": reason,
        },
    })
}

impl User<'_> {
    /// The Namespace. The policy of workspaces binds owners to its owner label.
    pub fn namespace(self) -> Namespace {
        let mut labels = self.policy.namespace_labels.clone();
        labels.insert(self.policy.owner_label.clone(), self.name.to_owned());
        Namespace {
            metadata: ObjectMeta {
                name: Some(self.namespace.to_owned()),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        }
    }

    /// The objects in the namespace, by composition resource name. `quota` is the namespace's quota,
    /// `spec.hard`. `budget` is the state of the user's budget.
    ///
    /// # Errors
    ///
    /// An object cannot be written as JSON.
    pub fn contents(
        self,
        quota: &BTreeMap<String, String>,
        budget: Option<&BudgetStatus>,
    ) -> Result<BTreeMap<String, Value>, Refusal> {
        let account = self.account(budget);
        let account = account.map(|account| Composed::manifest(&account));
        let limits = self.limits().map(|limits| Composed::manifest(&limits));
        let quota = self.quota(quota).map(|quota| Composed::manifest(&quota));
        let always = [(
            resource_names::DEFAULT_DENY,
            Composed::manifest(&self.default_deny()),
        )];
        let asked = [
            (resource_names::ACCOUNT, account),
            (resource_names::QUOTA, quota),
            (resource_names::LIMITS, limits),
            (resource_names::LOCAL_QUEUE, self.local_queue().map(Ok)),
        ];
        let asked = asked
            .into_iter()
            .filter_map(|(name, object)| Some((name, object?)));
        always
            .into_iter()
            .chain(self.access())
            .chain(asked)
            .map(|(name, object)| Ok((name.to_owned(), object?)))
            .collect()
    }

    /// Denies all traffic to and from the pods of the namespace. The `NetworkPolicy` of each
    /// workspace allows what the workspace needs.
    fn default_deny(self) -> NetworkPolicy {
        NetworkPolicy {
            metadata: self.metadata("default-deny"),
            spec: Some(NetworkPolicySpec {
                pod_selector: Some(LabelSelector::default()),
                policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
                ..NetworkPolicySpec::default()
            }),
        }
    }

    /// What the user may see of their own `DevUser`, which they cannot read: a role of the whole
    /// cluster would show them everybody's. Behaviour versions before v3 do not have it.
    fn account(self, budget: Option<&BudgetStatus>) -> Option<ConfigMap> {
        let budget = budget.map(|budget| {
            let amounts = json!({
                "month": budget.month,
                "monthlyUsd": budget.monthly_usd,
                "spentUsd": budget.spent_usd,
                "reservedUsd": budget.reserved_usd,
            });
            ("budget".to_owned(), amounts.to_string())
        });
        let data = [
            ("owner".to_owned(), self.name.to_owned()),
            ("publicKeys".to_owned(), self.spec.public_keys.join("\n")),
        ];
        (self.policy.behaviour_version == BehaviourVersion::V3).then(|| ConfigMap {
            metadata: self.metadata(ACCOUNT),
            data: Some(data.into_iter().chain(budget).collect()),
            ..ConfigMap::default()
        })
    }

    fn quota(self, hard: &BTreeMap<String, String>) -> Option<ResourceQuota> {
        (!hard.is_empty()).then(|| ResourceQuota {
            metadata: self.metadata("quota"),
            spec: Some(ResourceQuotaSpec {
                hard: Some(quantities(hard)),
                ..ResourceQuotaSpec::default()
            }),
            status: None,
        })
    }

    fn limits(self) -> Option<LimitRange> {
        let defaults = self.policy.container_defaults.as_ref()?;
        let given =
            |amounts: &BTreeMap<String, String>| (!amounts.is_empty()).then(|| quantities(amounts));
        let container = LimitRangeItem {
            type_: "Container".to_owned(),
            default_request: given(&defaults.requests),
            default: given(&defaults.limits),
            ..LimitRangeItem::default()
        };
        Some(LimitRange {
            metadata: self.metadata("container-defaults"),
            spec: Some(LimitRangeSpec {
                limits: vec![container],
            }),
        })
    }

    fn local_queue(self) -> Option<Value> {
        let queue = self.policy.queue.as_ref()?;
        Some(json!({
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": queue.name, "namespace": self.namespace},
            "spec": {"clusterQueue": queue.cluster_queue},
        }))
    }

    /// The metadata of an object in the namespace.
    pub fn metadata(self, name: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(self.namespace.to_owned()),
            ..ObjectMeta::default()
        }
    }
}

fn quantities(amounts: &BTreeMap<String, String>) -> BTreeMap<String, Quantity> {
    let amounts = amounts.iter();
    amounts
        .map(|(name, amount)| (name.clone(), Quantity(amount.clone())))
        .collect()
}
