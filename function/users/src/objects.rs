//! What a user's namespace is made of.

use std::collections::BTreeMap;

use api::dev_user::{DevUserPolicy, DevUserSpec, SubjectKind};
use function_workspace::labels::KUEUE;
use serde_json::{Map, Value, json};

use crate::resource_names;

/// The composite's kind.
pub const KIND: &str = "DevUser";

/// A user, and what the policy makes of them.
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// Their name, the `owner` of their claims.
    pub name: &'a str,
    /// Their namespace.
    pub namespace: &'a str,
    /// What they are.
    pub spec: &'a DevUserSpec,
    /// The policy.
    pub policy: &'a DevUserPolicy,
}

impl User<'_> {
    /// The namespace. Its label is what a workspace's policy binds owners to.
    pub fn namespace(self) -> Value {
        let mut labels: BTreeMap<&str, &str> = BTreeMap::new();
        let further = self.policy.namespace_labels.iter();
        labels.extend(further.map(|(key, value)| (key.as_str(), value.as_str())));
        labels.insert(&self.policy.owner_label, self.name);
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": self.namespace, "labels": labels},
        })
    }

    /// What is in it, by key.
    pub fn contents(self) -> BTreeMap<String, Value> {
        let always = [
            (resource_names::OWNER_ROLE_BINDING, self.role_binding()),
            (resource_names::DEFAULT_DENY, self.default_deny()),
        ];
        let asked = [
            (resource_names::QUOTA, self.quota()),
            (resource_names::LIMITS, self.limits()),
            (resource_names::LOCAL_QUEUE, self.local_queue()),
        ];
        let asked = asked
            .into_iter()
            .filter_map(|(key, object)| Some((key, object?)));
        always
            .into_iter()
            .chain(asked)
            .map(|(key, object)| (key.to_owned(), object))
            .collect()
    }

    /// What refuses the user's deletion, and the reason that whoever tries reads.
    pub fn protection(self, reason: &str) -> Value {
        json!({
            "apiVersion": "protection.crossplane.io/v1beta1",
            "kind": "ClusterUsage",
            "spec": {
                "of": {
                    "apiVersion": "platform.acme.io/v1alpha1",
                    "kind": KIND,
                    "resourceRef": {"name": self.name},
                },
                "reason": reason,
            },
        })
    }

    /// The owner's rights, in this namespace only. The role is a `ClusterRole` that the
    /// platform team installs: Crossplane may bind it without having those rights.
    fn role_binding(self) -> Value {
        let subject = |kind: SubjectKind, name: &str| {
            let kind = match kind {
                SubjectKind::User => "User",
                SubjectKind::Group => "Group",
            };
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name})
        };
        let named = self.spec.subjects.iter();
        let mut subjects: Vec<Value> = named.map(|s| subject(s.kind, &s.name)).collect();
        if subjects.is_empty() {
            subjects.push(subject(SubjectKind::User, self.name));
        }
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": self.metadata("owner"),
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": self.policy.owner_role,
            },
            "subjects": subjects,
        })
    }

    /// Nobody reaches a pod, and no pod reaches anybody, unless another policy says
    /// so, as each workspace's own does.
    fn default_deny(self) -> Value {
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": self.metadata("default-deny"),
            "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
        })
    }

    fn quota(self) -> Option<Value> {
        let mut hard = self.policy.quota.clone();
        hard.extend(self.spec.quota.clone());
        (!hard.is_empty()).then(|| {
            json!({
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": self.metadata("quota"),
                "spec": {"hard": hard},
            })
        })
    }

    fn limits(self) -> Option<Value> {
        let defaults = self.policy.container_defaults.as_ref()?;
        let mut limit = Map::new();
        limit.insert("type".to_owned(), json!("Container"));
        if !defaults.requests.is_empty() {
            limit.insert("defaultRequest".to_owned(), json!(defaults.requests));
        }
        if !defaults.limits.is_empty() {
            limit.insert("default".to_owned(), json!(defaults.limits));
        }
        Some(json!({
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": self.metadata("container-defaults"),
            "spec": {"limits": [limit]},
        }))
    }

    fn local_queue(self) -> Option<Value> {
        let queue = self.policy.queue.as_ref()?;
        Some(json!({
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": self.metadata(&queue.name),
            "spec": {"clusterQueue": queue.cluster_queue},
        }))
    }

    fn metadata(self, name: &str) -> Value {
        json!({"name": name, "namespace": self.namespace})
    }
}
