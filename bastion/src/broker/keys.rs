//! The bastion's own keys, which all replicas share, each in one Secret. The replica that comes first makes
//! them.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::json;
use tokio::process::Command;

use super::files::removed;
use super::host_key::HostKey;
use super::settings::Settings;

/// The name of the host key in its Secret, and of its file.
const HOST_KEY: &str = "ssh_host_ed25519_key";
/// The name of the authority's key in its Secret. The public key has this name and `.pub`.
const AUTHORITY: &str = "user_authority";

/// The Secrets with keys.
pub(super) struct Keys {
    secrets: Api<DynamicObject>,
    resource: ApiResource,
    /// The folder in which keys are made. It is in memory.
    folder: PathBuf,
}

impl Keys {
    /// The Secrets in the bastion's namespace.
    pub(super) fn new(client: &Client, settings: &Settings) -> Self {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Secret"));
        Self {
            secrets: Api::namespaced_with(client.clone(), &settings.namespace, &resource),
            resource,
            folder: settings.run.clone(),
        }
    }

    /// The host key. Its public half is in the folder of the pod then, for sshd.
    pub(super) async fn host_key(&self, settings: &Settings) -> Result<HostKey, Box<dyn Error>> {
        let key = HostKey::new(&self.shared(&settings.host_key, HOST_KEY).await?)?;
        let public = settings.run.join(HOST_KEY).with_extension("pub");
        write(&public, key.public()?.as_bytes())?;
        Ok(key)
    }

    /// The private key of the authority by which the bastion logs in to workspaces.
    pub(super) async fn authority(
        &self,
        settings: &Settings,
    ) -> Result<Option<String>, Box<dyn Error>> {
        match &settings.user_authority {
            Some(secret) => self.shared(secret, AUTHORITY).await.map(Some),
            None => Ok(None),
        }
    }

    /// The private key of a Secret. It is made if there is none.
    async fn shared(&self, name: &str, key: &str) -> Result<String, Box<dyn Error>> {
        loop {
            if let Some(secret) = self.secrets.get_opt(name).await? {
                return read(&secret, key);
            }
            let (private, public) = generate(&self.folder).await?;
            let mut secret = DynamicObject::new(name, &self.resource);
            let data = json!({key: private, format!("{key}.pub"): public});
            secret.data = json!({"stringData": data, "type": "Opaque"});
            match self.secrets.create(&PostParams::default(), &secret).await {
                // The other replica was faster: its key counts.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                created => {
                    created?;
                }
            }
        }
    }
}

/// Makes a private and a public key. The private key is in no argument and in no environment.
async fn generate(folder: &Path) -> Result<(String, String), Box<dyn Error>> {
    let file = folder.join(".new_key");
    let public = file.with_extension("pub");
    removed(&file)?;
    removed(&public)?;
    let made = Command::new("/usr/bin/ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "gpu-bastion", "-f"])
        .arg(&file)
        .status()
        .await?;
    if !made.success() {
        return Err(format!("ssh-keygen ended with {made}").into());
    }
    let made = (fs::read_to_string(&file)?, fs::read_to_string(&public)?);
    fs::remove_file(&file)?;
    fs::remove_file(&public)?;
    Ok(made)
}

fn read(secret: &DynamicObject, key: &str) -> Result<String, Box<dyn Error>> {
    let secret: k8s_openapi::api::core::v1::Secret =
        serde_json::from_value(serde_json::to_value(secret)?)?;
    let data: BTreeMap<_, _> = secret.data.unwrap_or_default();
    let found = data
        .get(key)
        .ok_or_else(|| format!("the Secret has no {key}"))?;
    Ok(String::from_utf8(found.0.clone())?)
}

fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    removed(path)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        // The folder is of sshd's group.
        .mode(0o640)
        .open(path)?;
    file.write_all(content)
}
