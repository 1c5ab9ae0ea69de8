//! The StatefulSet of a workspace's pods.
//!
//! With `updateStrategy: OnDelete` Kubernetes never ends a pod because its template has changed.
//! Within a behaviour version, the same arguments always give the same object: otherwise Kueue
//! would refuse the change while the workspace runs.

use function_runtime::desired::Composed;
use function_runtime::outcome::Refusal;
use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec,
    StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::{
    PodSecurityContext, PodSpec, PodTemplateSpec, SeccompProfile, Sysctl, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde_json::{Value, json};

use crate::identity;
use crate::names::{Names, WORKSPACE_LABEL};
use crate::record::{self, Record};
use crate::seen::CONTAINER;

mod containers;
mod volumes;

/// The owner's uid and gid, and the group of the home volume.
const DEVELOPER: i64 = 1000;
/// Longest time in seconds that a pod may take to end: the hooks before a stop, and sshd.
const GRACE_SECONDS: i64 = 150;

/// The input of a StatefulSet.
#[derive(Clone, Copy, Debug)]
pub struct Pods<'a> {
    /// The names of the workspace's objects.
    pub names: &'a Names,
    /// The owner in the claim.
    pub owner: &'a str,
    /// The record of the pods' settings.
    pub record: &'a Record,
    /// The number of pods to run: all or 0.
    pub replicas: i32,
    /// The volume claim template of the homes; none without homes.
    pub home: Option<&'a Value>,
}

impl Pods<'_> {
    /// The manifest of the StatefulSet.
    ///
    /// # Errors
    ///
    /// The object cannot be written as JSON.
    pub fn manifest(self) -> Result<Value, Refusal> {
        let mut manifest = Composed::manifest(&self.stateful_set())?;
        // The template of an existing home is written as it was read.
        if let Some(home) = self.home {
            manifest["spec"]["volumeClaimTemplates"] = json!([home]);
        }
        Ok(manifest)
    }

    fn stateful_set(self) -> StatefulSet {
        let Self { names, record, .. } = self;
        let mut own = identity::labels(names, self.owner);
        // Kueue copies these labels to the pods itself.
        if let Some(queue) = &record.pods.queue {
            own.insert("kueue.x-k8s.io/queue-name".to_owned(), queue.name.clone());
            let class = queue.priority_class.clone();
            own.extend(class.map(|class| ("kueue.x-k8s.io/priority-class".to_owned(), class)));
        }
        StatefulSet {
            metadata: ObjectMeta {
                labels: Some(own),
                annotations: Some([(record::ANNOTATION.to_owned(), record.written())].into()),
                ..identity::metadata(names, &names.name, self.owner)
            },
            spec: StatefulSetSpec {
                service_name: Some(names.name.clone()),
                replicas: Some(self.replicas),
                pod_management_policy: Some("Parallel".to_owned()),
                update_strategy: Some(StatefulSetUpdateStrategy {
                    type_: Some("OnDelete".to_owned()),
                    rolling_update: None,
                }),
                persistent_volume_claim_retention_policy: Some(
                    StatefulSetPersistentVolumeClaimRetentionPolicy {
                        when_deleted: Some("Retain".to_owned()),
                        when_scaled: Some("Retain".to_owned()),
                    },
                ),
                selector: LabelSelector {
                    match_labels: Some([(WORKSPACE_LABEL.to_owned(), names.name.clone())].into()),
                    match_expressions: None,
                },
                template: self.template(),
                ..StatefulSetSpec::default()
            },
            status: None,
        }
    }

    fn template(self) -> PodTemplateSpec {
        let default_container = "kubectl.kubernetes.io/default-container".to_owned();
        PodTemplateSpec {
            metadata: Some(ObjectMeta {
                labels: Some(identity::labels(self.names, &self.record.owner)),
                annotations: Some([(default_container, CONTAINER.to_owned())].into()),
                ..ObjectMeta::default()
            }),
            spec: Some(self.pod()),
        }
    }

    fn pod(self) -> PodSpec {
        let Self { names, record, .. } = self;
        let pods = &record.pods;
        let selector = pods.node_selector.clone();
        let tolerations: Vec<_> = pods.tolerations.iter().map(tolerated).collect();
        PodSpec {
            service_account_name: Some(names.service_account()),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            termination_grace_period_seconds: Some(
                pods.agent.as_ref().map_or(30, |_| GRACE_SECONDS),
            ),
            security_context: Some(PodSecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(DEVELOPER),
                run_as_group: Some(DEVELOPER),
                fs_group: Some(DEVELOPER),
                fs_group_change_policy: Some("OnRootMismatch".to_owned()),
                seccomp_profile: Some(SeccompProfile {
                    type_: "RuntimeDefault".to_owned(),
                    localhost_profile: None,
                }),
                // sshd listens on port 22 without a capability.
                sysctls: Some(vec![Sysctl {
                    name: "net.ipv4.ip_unprivileged_port_start".to_owned(),
                    value: "0".to_owned(),
                }]),
                ..PodSecurityContext::default()
            }),
            init_containers: Some(self.first_containers()),
            containers: vec![self.workspace()],
            volumes: Some(self.volumes()),
            node_selector: Some(selector).filter(|labels| !labels.is_empty()),
            tolerations: Some(tolerations).filter(|tolerations| !tolerations.is_empty()),
            runtime_class_name: pods.runtime_class_name.clone(),
            host_users: pods.user_namespace.then_some(false),
            ..PodSpec::default()
        }
    }
}

fn tolerated(toleration: &api::flavor::Toleration) -> Toleration {
    Toleration {
        key: toleration.key.clone(),
        operator: toleration.operator.clone(),
        value: toleration.value.clone(),
        effect: toleration.effect.clone(),
        toleration_seconds: None,
    }
}
