//! The names of a workspace's objects, and the DNS names of its pods.
//!
//! A developer chooses the name of the claim. Crossplane applies composed objects without asking
//! whether they exist, so an object with a name that the claim decides could be another person's.
//! From behaviour version v3 on, the StatefulSet and the Service have a prefix, and all other
//! objects also a part that the UID of the composite decides. An object that exists keeps its name.

use std::collections::BTreeMap;

use api::policy::{BehaviourVersion, WorkspacePolicy};
use function_runtime::composite::{Composite, Origin};
use function_runtime::json::Json;
use function_runtime::object::{ObservedObject, given_name};
use function_runtime::resource_names::{hashed, hashed_wide};
use function_workspace::labels::{OWNER_LABEL, name_prefix};
use function_workspace::placed::Claimed;

use crate::resource_names;

/// Label on all objects of a workspace in the cluster. Its value is the name of the `StatefulSet`.
pub const WORKSPACE_LABEL: &str = "platform.acme.io/cluster-workspace";
/// Name of the requirement for the workspace's pods.
pub const PODS: &str = "pods";
/// Name of the requirement for the `PersistentVolumeClaim`s of its homes.
pub const HOMES: &str = "homes";
/// Name of the requirement for homes that an earlier behaviour version named.
pub const EARLIER_HOMES: &str = "earlier-homes";
/// Name of the requirement for Kueue's Workloads in the namespace.
pub const WORKLOADS: &str = "workloads";

/// The DNS domain to use while the policy cannot be read. No decision depends on it.
pub const DEFAULT_DOMAIN: &str = "cluster.local";

/// The prefix before the hash of a claim's name that cannot be part of a name. No name with the
/// other prefix begins like this.
const HASHED: &str = "gpu-workspace-";
/// The longest name. Kubernetes appends eleven characters to a `StatefulSet`'s name for a label,
/// which holds 63 characters. The ordinal of a pod needs a few more.
const LONGEST: usize = 47;

/// The names of one workspace's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The name of the `StatefulSet` and of its Service.
    pub name: String,
    /// The name of the claim.
    pub claim: String,
    /// The namespace of the claim.
    pub namespace: String,
    /// The DNS domain of the cluster.
    pub domain: String,
    /// The names of the observed objects, by composition resource name.
    observed: BTreeMap<String, String>,
    /// The end of the names that no other object has; empty before behaviour version v3.
    unique: String,
}

/// What decides the names of a workspace's objects.
#[derive(Clone, Copy, Debug)]
pub struct Naming<'a> {
    /// Namespace and name of the claim.
    pub origin: &'a Origin,
    /// The composite.
    pub composite: Composite<'a>,
    /// The observed resources, by composition resource name.
    pub observed: &'a BTreeMap<String, Json<'a>>,
    /// The behaviour version of the policy; none while the policy cannot be read.
    pub version: Option<BehaviourVersion>,
    /// Whether an earlier claim with this name left homes of the same owner, whose names begin with
    /// the bare name of the claim. A `StatefulSet` finds its homes by its own name.
    pub has_earlier_homes: bool,
}

impl<'a> Naming<'a> {
    /// Reads what decides the names from a request. `policy` is none if it cannot be read.
    pub fn of(claimed: &Claimed<'a>, origin: &'a Origin, policy: Option<&WorkspacePolicy>) -> Self {
        let Claimed {
            request, composite, ..
        } = claimed;
        let owner = claimed.owner.as_str();
        let mut left = request.required.get(EARLIER_HOMES).into_iter().flatten();
        Self {
            origin,
            composite: *composite,
            observed: &request.observed,
            version: policy.map(|policy| policy.behaviour_version),
            has_earlier_homes: left
                .any(|home| ObservedObject::new(home).label(OWNER_LABEL) == Some(owner)),
        }
    }

    /// The names in a DNS domain.
    pub fn names(self, domain: &str) -> Names {
        let is_prefixed = self.is_prefixed();
        let uid = self.composite.id().uid;
        let Origin { namespace, name } = self.origin;
        Names {
            name: match self.given() {
                Some(given) => given.to_owned(),
                None if is_prefixed && !self.has_earlier_homes => prefixed(self.prefix(), name),
                None => bare(name),
            },
            claim: name.clone(),
            namespace: namespace.clone(),
            domain: domain.to_owned(),
            observed: self.observed_names(),
            unique: if is_prefixed {
                hashed("-", [uid.as_str()])
            } else {
                String::new()
            },
        }
    }

    /// All names that the workspace may get: the first unless it finds homes of an earlier claim,
    /// the second if it does. No fetched resource decides them, so they are the same in every call
    /// of a reconcile. A workspace with objects has one entry.
    pub fn candidates(self) -> Vec<Names> {
        let may_find_homes = self.given().is_none() && self.is_prefixed();
        let candidate = |has_earlier_homes| {
            let naming = Self {
                has_earlier_homes,
                ..self
            };
            naming.names(DEFAULT_DOMAIN)
        };
        let earlier = may_find_homes.then(|| candidate(true));
        std::iter::once(candidate(false)).chain(earlier).collect()
    }

    /// The name of the observed `StatefulSet`, or else of the observed Service.
    fn given(self) -> Option<&'a str> {
        let named = [resource_names::STATEFUL_SET, resource_names::SERVICE];
        let mut named = named.iter();
        named.find_map(|key| given_name(self.observed.get(*key)))
    }

    /// Whether new objects get names with a prefix.
    pub fn is_prefixed(self) -> bool {
        !self.prefix().is_empty()
    }

    fn prefix(self) -> &'static str {
        name_prefix(self.version)
    }

    fn observed_names(self) -> BTreeMap<String, String> {
        let observed = self.observed.iter();
        observed
            .filter(|(key, _)| resource_names::owns(key))
            .filter_map(|(key, object)| Some((key.clone(), given_name(Some(object))?.to_owned())))
            .collect()
    }
}

/// The name before behaviour version v3: the claim's own name if it is a valid name of a Service
/// (RFC 1035), so that a recreated claim finds its home again.
fn bare(claim: &str) -> String {
    let starts = claim.starts_with(|c: char| c.is_ascii_lowercase());
    if starts && claim.len() <= LONGEST && is_plain(claim) {
        claim.to_owned()
    } else {
        hashed("workspace-", [claim])
    }
}

/// The name from behaviour version v3 on. A recreated claim gets the same name.
fn prefixed(prefix: &str, claim: &str) -> String {
    if prefix.len() + claim.len() <= LONGEST && is_plain(claim) {
        format!("{prefix}{claim}")
    } else {
        hashed_wide(HASHED, [claim])
    }
}

fn is_plain(claim: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    claim.bytes().all(is_plain)
}

impl Names {
    /// Whether no other object has the names of the objects that pods alone use.
    pub fn are_unique(&self) -> bool {
        !self.unique.is_empty()
    }

    /// The same names in another DNS domain.
    pub fn in_domain(&self, domain: &str) -> Self {
        Self {
            domain: domain.to_owned(),
            ..self.clone()
        }
    }

    /// The name of the pod with this ordinal.
    pub fn pod(&self, ordinal: i32) -> String {
        format!("{}-{ordinal}", self.name)
    }

    /// The name of the `PersistentVolumeClaim` that the StatefulSet makes for a pod.
    pub fn home(&self, ordinal: i32) -> String {
        format!("home-{}", self.pod(ordinal))
    }

    /// The full DNS name of a pod. A short name does not work: torchrun compares it with the pod's
    /// own name.
    pub fn host(&self, ordinal: i32) -> String {
        let Self {
            name,
            namespace,
            domain,
            ..
        } = self;
        format!("{name}-{ordinal}.{name}.{namespace}.svc.{domain}")
    }

    /// The name of the `ServiceAccount` of the pods.
    pub fn service_account(&self) -> String {
        self.of(resource_names::SERVICE_ACCOUNT, "")
    }

    /// The name of the Role of the `ServiceAccount`.
    pub fn role(&self) -> String {
        self.of(resource_names::ROLE, "")
    }

    /// The name of the `RoleBinding` between both.
    pub fn role_binding(&self) -> String {
        self.of(resource_names::ROLE_BINDING, "")
    }

    /// The name of the `NetworkPolicy` of the pods.
    pub fn network_policy(&self) -> String {
        self.of(resource_names::NETWORK_POLICY, "")
    }

    /// The name of the Secret with the host keys.
    pub fn host_keys(&self) -> String {
        self.of(resource_names::HOST_KEYS, "-host-keys")
    }

    /// The name of the `ConfigMap` with the programs.
    pub fn files(&self) -> String {
        self.of(resource_names::FILES, "-files")
    }

    /// The name of the `ConfigMap` with the SSH keys that may log in.
    pub fn authorized_keys(&self) -> String {
        self.of(resource_names::AUTHORIZED_KEYS, "-keys")
    }

    /// The name of the Lease with the reports of a pod's agent.
    pub fn activity(&self, ordinal: i32) -> String {
        format!("{}{}", self.pod(ordinal), self.after_pod())
    }

    /// The end of the Lease's name, after the name of the pod. It is the same for all pods, because
    /// their template has it.
    pub fn after_pod(&self) -> String {
        let first = self.observed.get(&resource_names::pod_activity(0));
        let end = first.and_then(|name| name.strip_prefix(&self.pod(0)));
        end.map_or_else(|| format!("-activity{}", self.unique), str::to_owned)
    }

    /// The name of an object: that of the observed one, else a new one.
    fn of(&self, resource: &str, end: &str) -> String {
        let observed = self.observed.get(resource).cloned();
        observed.unwrap_or_else(|| format!("{}{end}{}", self.name, self.unique))
    }
}

#[cfg(test)]
pub mod tests;
