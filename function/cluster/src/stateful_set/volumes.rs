//! The volumes of a pod.

use k8s_openapi::api::core::v1::{
    ConfigMapProjection, ConfigMapVolumeSource, DownwardAPIProjection, DownwardAPIVolumeFile,
    EmptyDirVolumeSource, KeyToPath, ObjectFieldSelector, PersistentVolumeClaimVolumeSource,
    ProjectedVolumeSource, ServiceAccountTokenProjection, Volume, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::Pods;

/// Lifetime of the service account's token, in seconds. It is the shortest that Kubernetes allows.
const TOKEN_SECONDS: i64 = 600;

impl Pods<'_> {
    pub(super) fn volumes(self) -> Vec<Volume> {
        let Self { names, record, .. } = self;
        let pods = &record.pods;
        let mut volumes = vec![
            config_map("files", names.files(), Some(0o555)),
            config_map("authorized-keys", names.authorized_keys(), None),
            empty_dir("host-keys", Some("Memory"), Some("1Mi")),
            empty_dir("shm", Some("Memory"), Some(&pods.shm_size)),
            token_volume(),
        ];
        if pods.agent.is_some() {
            volumes.push(empty_dir("agent", None, Some("64Mi")));
            volumes.push(empty_dir("agent-run", None, Some("1Mi")));
        }
        if self.has_jupyter_folder() {
            volumes.push(empty_dir("jupyter", None, Some("16Mi")));
        }
        if self.home.is_none() {
            volumes.push(empty_dir("home", None, pods.scratch.as_deref()));
        }
        let shared = pods.shared_volumes.iter().enumerate();
        volumes.extend(shared.map(|(n, shared)| Volume {
            name: format!("shared-{n}"),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: shared.claim_name.clone(),
                read_only: Some(shared.read_only),
            }),
            ..Volume::default()
        }));
        volumes
    }
}

fn config_map(volume: &str, name: String, mode: Option<i32>) -> Volume {
    Volume {
        name: volume.to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name,
            default_mode: mode,
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn empty_dir(volume: &str, medium: Option<&str>, limit: Option<&str>) -> Volume {
    Volume {
        name: volume.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: medium.map(str::to_owned),
            size_limit: limit.map(|limit| Quantity(limit.to_owned())),
            ..EmptyDirVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// The service account's token, the CA certificate of the API server, and the namespace, in the
/// files where Kubernetes' clients look for them.
fn token_volume() -> Volume {
    let token = VolumeProjection {
        service_account_token: Some(ServiceAccountTokenProjection {
            path: "token".to_owned(),
            expiration_seconds: Some(TOKEN_SECONDS),
            ..ServiceAccountTokenProjection::default()
        }),
        ..VolumeProjection::default()
    };
    let authority = VolumeProjection {
        config_map: Some(ConfigMapProjection {
            name: "kube-root-ca.crt".to_owned(),
            items: Some(vec![KeyToPath {
                key: "ca.crt".to_owned(),
                path: "ca.crt".to_owned(),
                ..KeyToPath::default()
            }]),
            optional: None,
        }),
        ..VolumeProjection::default()
    };
    let namespace = VolumeProjection {
        downward_api: Some(DownwardAPIProjection {
            items: Some(vec![DownwardAPIVolumeFile {
                path: "namespace".to_owned(),
                field_ref: Some(field("metadata.namespace")),
                ..DownwardAPIVolumeFile::default()
            }]),
        }),
        ..VolumeProjection::default()
    };
    Volume {
        name: "token".to_owned(),
        projected: Some(ProjectedVolumeSource {
            sources: Some(vec![token, authority, namespace]),
            ..ProjectedVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// Selects a field of the pod.
pub fn field(path: &str) -> ObjectFieldSelector {
    ObjectFieldSelector {
        field_path: path.to_owned(),
        api_version: None,
    }
}
