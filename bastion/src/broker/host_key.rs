//! The host key of the bastion, which all replicas share in one Secret. The replica that comes first
//! makes it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::json;
use tokio::process::Command;

use super::settings::Settings;

/// The name of the key in the Secret, and of its file.
const KEY: &str = "ssh_host_ed25519_key";

/// Writes the host key into the folder of the pod.
pub(super) async fn prepare(client: &Client, settings: &Settings) -> Result<(), Box<dyn Error>> {
    let kind = GroupVersionKind::gvk("", "v1", "Secret");
    let secrets: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        &settings.namespace,
        &ApiResource::from_gvk(&kind),
    );
    let key = loop {
        if let Some(secret) = secrets.get_opt(&settings.host_key).await? {
            break read(&secret)?;
        }
        let made = generate(&settings.run).await?;
        let mut secret = DynamicObject::new(&settings.host_key, &ApiResource::from_gvk(&kind));
        secret.data = json!({"stringData": {KEY: made}, "type": "Opaque"});
        match secrets.create(&PostParams::default(), &secret).await {
            // The other replica was faster: its key counts.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            created => {
                created?;
            }
        }
    };
    write(&settings.run.join(KEY), key.as_bytes())?;
    Ok(())
}

/// Makes a key. The private key is in no argument and in no environment.
async fn generate(run: &Path) -> Result<String, Box<dyn Error>> {
    let file = run.join(".new_host_key");
    for left in [file.clone(), file.with_extension("pub")] {
        match fs::remove_file(left) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    let made = Command::new("/usr/bin/ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "gpu-bastion", "-f"])
        .arg(&file)
        .status()
        .await?;
    if !made.success() {
        return Err(format!("ssh-keygen ended with {made}").into());
    }
    let key = fs::read_to_string(&file)?;
    fs::remove_file(&file)?;
    fs::remove_file(file.with_extension("pub"))?;
    Ok(key)
}

fn read(secret: &DynamicObject) -> Result<String, Box<dyn Error>> {
    let secret: k8s_openapi::api::core::v1::Secret =
        serde_json::from_value(serde_json::to_value(secret)?)?;
    let data: BTreeMap<_, _> = secret.data.unwrap_or_default();
    let key = data
        .get(KEY)
        .ok_or_else(|| format!("the Secret has no {KEY}"))?;
    Ok(String::from_utf8(key.0.clone())?)
}

fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        // The folder is of sshd's group. sshd refuses a key that others can read only if sshd owns it.
        .mode(0o640)
        .open(path)?;
    file.write_all(content)
}
