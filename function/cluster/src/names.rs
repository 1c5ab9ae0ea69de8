//! The names of a workspace's objects, and the DNS names of its pods.

use function_runtime::composite::Origin;
use function_runtime::resource_names::hashed;

/// Label on all objects of a workspace in the cluster. Its value is the name of the StatefulSet.
pub const WORKSPACE_LABEL: &str = "platform.acme.io/cluster-workspace";
/// Name of the requirement for the workspace's pods.
pub const PODS: &str = "pods";
/// Name of the requirement for the `PersistentVolumeClaim`s of its homes.
pub const HOMES: &str = "homes";
/// Name of the requirement for Kueue's Workloads in the namespace.
pub const WORKLOADS: &str = "workloads";

/// The DNS domain to use while the policy cannot be read. No decision depends on it.
pub const DEFAULT_DOMAIN: &str = "cluster.local";

/// The longest name. Kubernetes appends eleven characters to a StatefulSet's name for a label,
/// which holds 63 characters. The ordinal of a pod needs a few more.
const LONGEST: usize = 47;

/// The names of one workspace's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The name of the StatefulSet and of its Service.
    pub name: String,
    /// The namespace of the claim.
    pub namespace: String,
    /// The DNS domain of the cluster.
    pub domain: String,
}

impl Names {
    /// The names for a claim. The claim's own name is used if it is a valid name of a Service (RFC
    /// 1035), so that a recreated claim finds its home again.
    pub fn of(origin: &Origin, domain: &str) -> Self {
        let name = &origin.name;
        let fits = name.len() <= LONGEST
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        Self {
            name: if fits {
                name.clone()
            } else {
                hashed("workspace-", [name.as_str()])
            },
            namespace: origin.namespace.clone(),
            domain: domain.to_owned(),
        }
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

    /// The full DNS name of a pod. A short name does not work: torchrun compares it with the pod's
    /// own name.
    pub fn host(&self, ordinal: i32) -> String {
        let Self {
            name,
            namespace,
            domain,
        } = self;
        format!("{name}-{ordinal}.{name}.{namespace}.svc.{domain}")
    }

    /// The name of the Secret with the host keys.
    pub fn host_keys(&self) -> String {
        format!("{}-host-keys", self.name)
    }

    /// The name of the Lease with the reports of a pod's agent.
    pub fn activity(&self, ordinal: i32) -> String {
        format!("{}-activity", self.pod(ordinal))
    }

    /// The name of the ConfigMap with the programs.
    pub fn files(&self) -> String {
        format!("{}-files", self.name)
    }

    /// The name of the ConfigMap with the SSH keys that may log in.
    pub fn authorized_keys(&self) -> String {
        format!("{}-keys", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(claim: &str) -> Names {
        let origin = Origin {
            namespace: "team-vision".into(),
            name: claim.into(),
        };
        Names::of(&origin, "cluster.local")
    }

    #[test]
    fn a_pod_is_found_by_its_full_name() {
        assert_eq!(
            names("alice-vision").host(1),
            "alice-vision-1.alice-vision.team-vision.svc.cluster.local"
        );
    }

    #[test]
    fn a_claim_name_that_is_invalid_for_a_service_is_replaced() {
        for claim in ["1-first", "alice.vision", &"a".repeat(48)] {
            let name = names(claim).name;
            assert!(
                name.starts_with("workspace-") && name.len() <= LONGEST,
                "{name}"
            );
        }
        assert_eq!(names(&"a".repeat(47)).name, "a".repeat(47));
    }
}
