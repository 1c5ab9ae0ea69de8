//! The portal of the demo: a person signs in with a browser, and needs no credential of the cluster.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use local_cluster::identities;
use local_cluster::progress::Progress;
use serde_json::{Value, json};

use super::login::{Login, allow};
use super::policy::change;
use crate::process::output;
use crate::target::Resolved;
use crate::workspace_image;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The person of the demo's claims, who signs in.
const PERSON: &str = "alice";
const NAMESPACE: &str = "gpu-portal";
/// Where the pods have the configuration, as in portal/manifests/portal.yaml.
const FOLDER: &str = "/etc/gpu-portal";

/// The portal, and what a person at this machine must know.
pub(super) struct Portal {
    url: String,
    authority: PathBuf,
    key: PathBuf,
}

impl Portal {
    /// Fails if the cluster runs without a provider of identities.
    pub(super) fn check(login: &Login) -> Outcome<()> {
        let cluster = login.cluster();
        if cluster
            .state()
            .configuration()
            .join(identities::CONFIGURATION)
            .exists()
        {
            return Ok(());
        }
        let name = cluster.name();
        let end = super::end(name);
        Err(format!(
            "cluster `{name}` has no provider of identities: end it by `{end}`, and start again"
        )
        .into())
    }

    /// Installs two replicas at a port of the node, and makes the person.
    pub(super) fn install(target: &Resolved, login: &Login, progress: &Progress) -> Outcome<Self> {
        let cluster = login.cluster();
        let image = workspace_image::portal_for(cluster, progress)?;
        let step = progress.begin("start the portal");
        change(target, "devusers", |input| {
            input["access"] = json!("Bastion");
        })?;
        // Claims of the portal name no networks.
        let host = format!("{}/32", cluster.addresses().host());
        allow(target, &host)?;
        change(target, "gpudevworkspaces", |input| {
            input["defaults"]["sshCidrs"] = json!([host]);
        })?;
        let subject = json!({"kind": "User", "name": address(PERSON)});
        let user = json!({
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": "DevUser",
            "metadata": {"name": PERSON},
            "spec": {"publicKeys": [login.public_key()?], "subjects": [subject]},
        });
        target.apply_text(&user.to_string())?;
        target.apply_file("portal/manifests/rights.yaml")?;
        target.apply_file("portal/manifests/constrained-impersonation.yaml")?;
        for object in objects(login)? {
            target.apply_text(&object.to_string())?;
        }
        let path = crate::root().join("portal/manifests/portal.yaml");
        target.apply_text(&fs::read_to_string(path)?.replace("IMAGE", &image))?;
        let mut wait = target.kubectl();
        wait.args(["wait", "--for=condition=Ready", "--timeout=120s"]);
        output(wait.arg(format!("devuser/{PERSON}")))?;
        let mut rollout = target.kubectl();
        rollout.args(["rollout", "status", "deployment/gpu-portal"]);
        output(rollout.args(["--timeout=180s", "-n", NAMESPACE]))?;
        step.end("");
        Ok(Self {
            url: identities::portal(cluster.addresses()),
            authority: cluster.state().certificates().authority(),
            key: login.key(),
        })
    }

    /// What the person may do next.
    pub(super) fn show(&self) {
        let authority = self.authority.display();
        println!(
            "\nThe portal, for a browser on this machine:\n\n  {}\n",
            self.url
        );
        println!(
            "Sign in as {} with the password `{}`. The browser warns of the certificates of the portal and\n\
             of the page for passwords, unless you import the cluster's authority in the browser's settings:\n\n  \
             {authority}",
            address(PERSON),
            identities::PASSWORD
        );
        println!(
            "\nA workspace shows the line that logs in; add `-i {}` to it.",
            self.key.display()
        );
    }
}

fn address(name: &str) -> String {
    format!("{name}@acme.io")
}

/// What the portal's manifests need, and a Service that this machine reaches.
fn objects(login: &Login) -> Outcome<[Value; 4]> {
    let (cluster, state) = (login.cluster(), login.cluster().state());
    let authentication = state.configuration().join(identities::AUTHENTICATION);
    let configuration = json!({
        "publicUrl": identities::portal(cluster.addresses()),
        "authentication": format!("{FOLDER}/authentication.yaml"),
        "client": {"id": identities::CLIENT, "secretFile": format!("{FOLDER}/client-secret")},
    });
    let tls = state.certificates().files(identities::PORTAL_CERTIFICATE);
    let object = |kind: &str, name: &str, key: &str, content: Value| {
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, key: content})
    };
    let files = json!({
        "portal.yaml": configuration.to_string(),
        "authentication.yaml": fs::read_to_string(authentication)?,
    });
    let pair = json!({
        "tls.crt": fs::read_to_string(tls.certificate)?,
        "tls.key": fs::read_to_string(tls.key)?,
    });
    let port = json!({"name": "https", "port": 443, "targetPort": "https", "nodePort": identities::PORTAL_PORT});
    let service = json!({
        "type": "NodePort",
        "selector": {"app.kubernetes.io/name": "gpu-portal"},
        "ports": [port],
    });
    let secret = json!({"client-secret": identities::CLIENT_SECRET});
    Ok([
        object("ConfigMap", "gpu-portal", "data", files),
        object("Secret", "gpu-portal-client", "stringData", secret),
        object("Secret", "gpu-portal-tls", "stringData", pair),
        object("Service", "gpu-portal-of-this-machine", "spec", service),
    ])
}
