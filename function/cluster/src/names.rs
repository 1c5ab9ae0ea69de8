//! What a workspace's objects are called, where, and how its pods find each other.

use function_runtime::composite::Origin;
use function_runtime::resource_names::hashed;

/// The label of everything that belongs to a workspace in the cluster; its value is
/// the StatefulSet's name.
pub const WORKSPACE_LABEL: &str = "platform.acme.io/cluster-workspace";
/// The requirement for the workspace's pods.
pub const PODS: &str = "pods";
/// The requirement for the volume claims of its homes.
pub const HOMES: &str = "homes";
/// The requirement for Kueue's Workloads of the namespace.
pub const WORKLOADS: &str = "workloads";

/// The longest name: Kubernetes puts eleven characters behind a StatefulSet's name
/// and makes a label of it, which holds 63; the pod's ordinal needs a few as well.
const LONGEST: usize = 47;

/// The names of one workspace's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The StatefulSet's, and its Service's.
    pub name: String,
    /// The claim's namespace.
    pub namespace: String,
    /// The cluster's DNS domain.
    pub domain: String,
}

impl Names {
    /// A claim's own name where Kubernetes takes it for a Service (RFC 1035): a
    /// claim that comes again finds its home again.
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

    /// The pod of an ordinal.
    pub fn pod(&self, ordinal: i32) -> String {
        format!("{}-{ordinal}", self.name)
    }

    /// The full DNS name of a pod. Short names end in trouble: torchrun compares
    /// them with the pod's own.
    pub fn host(&self, ordinal: i32) -> String {
        let Self {
            name,
            namespace,
            domain,
        } = self;
        format!("{name}-{ordinal}.{name}.{namespace}.svc.{domain}")
    }

    /// The Secret with the host keys.
    pub fn host_keys(&self) -> String {
        format!("{}-host-keys", self.name)
    }

    /// The Lease with what the agent of a pod saw.
    pub fn activity(&self, ordinal: i32) -> String {
        format!("{}-activity", self.pod(ordinal))
    }

    /// The ConfigMap with the programs that pods run.
    pub fn files(&self) -> String {
        format!("{}-files", self.name)
    }

    /// The ConfigMap with the owner's keys.
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
    fn a_claim_whose_name_no_service_may_have_gets_another_one() {
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
