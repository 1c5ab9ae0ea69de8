//! Argo CD in the cluster, with a git server that notifies it of each push.
//!
//! kustomize combines Argo CD's own manifests of the pinned version with `argocd/` of this
//! repository, as users do.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::binaries;
use crate::cache::{self, Cache};
use crate::cluster::{self, Cluster};
use crate::command;
use crate::debian;
use crate::images;
use crate::progress::Progress;
use crate::wait::{self, Deadline};

/// The namespace of Argo CD itself, as its manifests have it.
pub const NAMESPACE: &str = "argocd";
/// The namespace of the git server.
pub const GIT_NAMESPACE: &str = "git";

const BINARY: &str = "argocd";
/// The Debian packages of Argo CD's own image, and in addition Redis and a web server for git.
const DEBIAN: debian::Layer<'_> = debian::Layer {
    name: BINARY,
    packages: &[
        "ca-certificates",
        "curl",
        "git",
        "lighttpd",
        "redis-server",
        "tini",
    ],
    // As in Argo CD's own Dockerfile. git needs a user name for each user id.
    finally: "useradd --system --non-unique --uid 999 --create-home argocd",
};
/// The names under which the manifests call the single program.
const PROGRAMS: &[&str] = &[
    "argocd-application-controller",
    "argocd-applicationset-controller",
    "argocd-k8s-auth",
    "argocd-repo-server",
    "argocd-server",
];
/// The workloads whose rollouts the installation waits for, with their namespaces.
const WORKLOADS: &[(&str, &str)] = &[
    (NAMESPACE, "deployment/argocd-redis"),
    (NAMESPACE, "deployment/argocd-repo-server"),
    (NAMESPACE, "deployment/argocd-server"),
    (NAMESPACE, "deployment/argocd-applicationset-controller"),
    (NAMESPACE, "statefulset/argocd-application-controller"),
    (GIT_NAMESPACE, "deployment/git"),
];

/// The webhooks that the git server calls after a push. `argocd/git/post-receive` has the same
/// list.
const WEBHOOKS: &[&str] = &[
    "http://argocd-server.argocd.svc/api/webhook",
    "http://argocd-applicationset-controller.argocd.svc:7000/api/webhook",
];
/// How long to wait for a webhook. The program has 150 MB, and the machine may be busy.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(500);

/// What can go wrong during the installation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program cannot be built, or its source cannot be found.
    #[error(transparent)]
    Binaries(#[from] binaries::Error),
    /// A file cannot be read or written.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The cluster lacks a program.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The Debian layer of the image cannot be built.
    #[error(transparent)]
    Debian(#[from] debian::Error),
    /// A program failed.
    #[error(transparent)]
    Command(#[from] command::Error),
    /// A webhook does not answer.
    #[error("{0}\n  see `kubectl -n argocd get pods`")]
    Webhook(#[from] wait::Error),
}

/// Builds Argo CD if necessary, installs or updates it, and waits until all of it runs.
pub fn install(cache: &Cache, cluster: &Cluster, progress: &Progress) -> Result<(), Error> {
    let version = binaries::version(BINARY)?;
    let built = binaries::ensure(cache, &[BINARY], progress)?;
    let debian = debian::ensure(cache, &DEBIAN, progress)?;
    let step = progress.begin("image of Argo CD");
    let image = push_image(cluster, built.path(BINARY)?, debian, &version)?;
    link(built.path(BINARY)?, &cluster.programs().join(BINARY))?;
    step.end("pushed");
    let step = progress.begin("Argo CD and a git server");
    let manifests = binaries::source(BINARY)?.join("manifests/install.yaml");
    apply(cluster, &argocd(&manifests, &image)?)?;
    apply(cluster, &git(&image))?;
    step.end("applied");
    for (namespace, workload) in WORKLOADS {
        let step = progress.begin(workload);
        rollout(cluster, &["status", workload, "--timeout=5m"], namespace)?;
        step.end("ready");
    }
    // The ApplicationSet controller never gets its webhook if it starts before argocd-server has
    // created its key (Argo CD 3.2). So it is restarted here.
    let first = ["restart", "deployment/argocd-applicationset-controller"];
    rollout(cluster, &first, NAMESPACE)?;
    for url in WEBHOOKS {
        let step = progress.begin("a webhook of Argo CD");
        await_answer(cluster, url)?;
        step.end("answers");
    }
    Ok(())
}

fn rollout(cluster: &Cluster, arguments: &[&str], namespace: &str) -> Result<(), Error> {
    let mut kubectl = cluster.kubectl()?;
    kubectl.arg("rollout").args(arguments);
    command::output(kubectl.args(["--namespace", namespace]))?;
    Ok(())
}

/// Waits until `url` answers; any HTTP answer is enough. The rollout does not show that the
/// controller of `ApplicationSet`s answers, because it has no readiness probe.
fn await_answer(cluster: &Cluster, url: &str) -> Result<(), Error> {
    let mut curl = cluster.kubectl()?;
    curl.args(["exec", "deployment/git", "--namespace", GIT_NAMESPACE, "--"])
        .args(["curl", "--silent", "--show-error", "--max-time", "5"])
        .args(["--output", "/dev/null", url]);
    let deadline = Deadline::after(PATIENCE);
    wait::until(url, deadline, LOOK, || {
        command::output(&mut curl).map_err(|error| error.to_string())
    })?;
    Ok(())
}

/// The name of an image, in the two parts that kustomize expects.
struct Image {
    repository: String,
    tag: String,
}

fn push_image(
    cluster: &Cluster,
    binary: &Path,
    debian: PathBuf,
    version: &str,
) -> Result<Image, Error> {
    let image = Image {
        repository: format!("{}/argoproj/argocd", cluster.registry()),
        tag: tag(version, binary, &debian),
    };
    let scratch = cluster.state().temporary().join(BINARY);
    cache::remove_folder(&scratch)?;
    let (root, layer) = (scratch.join("root"), scratch.join("layer.tar.gz"));
    let programs = root.join("usr/local/bin");
    cache::create_folder(&programs)?;
    let program = programs.join(BINARY);
    fs::copy(binary, &program).map_err(cache::Error::io("write", &program))?;
    for name in PROGRAMS {
        link(Path::new(BINARY), &programs.join(name))?;
    }
    // Argo CD's manifests mount volumes below this folder, and expect it in the image.
    cache::create_folder(&root.join("app/config"))?;
    images::pack(&root, &layer)?;
    images::push(
        &cluster.program("crane")?,
        &images::Image {
            reference: &format!("{}:{}", image.repository, image.tag),
            layers: &[debian, layer],
            entrypoint: "/usr/bin/tini,--",
            environment: &["USER=argocd", "HOME=/home/argocd"],
            user: Some("999"),
        },
    )?;
    cache::remove_folder(&scratch)?;
    Ok(image)
}

/// A tag that changes with the contents: a node does not pull a tag again that it already has.
fn tag(version: &str, binary: &Path, debian: &Path) -> String {
    let key = cache::key([
        ("binary", binary.as_os_str().as_encoded_bytes()),
        ("debian", debian.as_os_str().as_encoded_bytes()),
    ]);
    format!("{version}-{key}")
}

fn link(to: &Path, at: &Path) -> Result<(), Error> {
    if at.symlink_metadata().is_ok() {
        fs::remove_file(at).map_err(cache::Error::io("remove", at))?;
    }
    Ok(symlink(to, at).map_err(cache::Error::io("link", at))?)
}

/// A kustomization, and the files and folders that it names.
struct Overlay {
    name: &'static str,
    kustomization: Value,
    sources: Vec<PathBuf>,
}

fn argocd(manifests: &Path, image: &Image) -> Result<Overlay, Error> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ours = repository.join("argocd");
    let ours = ours
        .canonicalize()
        .map_err(cache::Error::io("find", &ours))?;
    let replaced =
        |name: &str| json!({"name": name, "newName": image.repository, "newTag": image.tag});
    Ok(Overlay {
        name: "argocd",
        kustomization: json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": NAMESPACE,
            "resources": ["install.yaml", "namespace.json"],
            "components": ["argocd"],
            "images": [
                replaced("quay.io/argoproj/argocd"),
                replaced("public.ecr.aws/docker/library/redis"),
            ],
            "patches": [
                patch(&absent("argocd-dex-server")),
                patch(&absent("argocd-notifications-controller")),
                patch(&json!({
                    "apiVersion": "apps/v1", "kind": "Deployment",
                    "metadata": {"name": "argocd-redis"},
                    "spec": {"template": {"spec": {"containers": [
                        {"name": "redis", "command": ["redis-server"]},
                    ]}}},
                })),
                // The keyring would need gpg's agent, and commits are not signed here.
                patch(&json!({
                    "apiVersion": "apps/v1", "kind": "Deployment",
                    "metadata": {"name": "argocd-repo-server"},
                    "spec": {"template": {"spec": {"containers": [{
                        "name": "argocd-repo-server",
                        "env": [{"name": "ARGOCD_GPG_ENABLED", "value": "false"}],
                    }]}}},
                })),
                // Tests call the server from outside the cluster, at the pod's own address.
                patch(&json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "argocd-cmd-params-cm"},
                    "data": {"server.insecure": "true"},
                })),
            ],
        }),
        sources: vec![manifests.to_owned(), ours],
    })
}

fn git(image: &Image) -> Overlay {
    Overlay {
        name: "git-server",
        kustomization: json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": ["git"],
            "images": [{"name": "argocd", "newName": image.repository, "newTag": image.tag}],
        }),
        sources: vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("argocd/git")],
    }
}

fn patch(patch: &Value) -> Value {
    json!({"patch": patch.to_string()})
}

fn absent(deployment: &str) -> Value {
    json!({
        "$patch": "delete",
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": deployment},
    })
}

fn apply(cluster: &Cluster, overlay: &Overlay) -> Result<(), Error> {
    let folder = cluster.state().temporary().join(overlay.name);
    cache::remove_folder(&folder)?;
    cache::create_folder(&folder)?;
    for source in &overlay.sources {
        let mut copy = std::process::Command::new("cp");
        copy.args(["--recursive", "--dereference"])
            .arg(source)
            .arg(&folder);
        command::output(&mut copy)?;
    }
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE},
    });
    cache::write(&folder.join("namespace.json"), namespace.to_string())?;
    let kustomization = format!("{:#}\n", overlay.kustomization);
    cache::write(&folder.join("kustomization.yaml"), kustomization)?;
    let mut kustomize = cluster.kubectl()?;
    let manifests = command::output(kustomize.arg("kustomize").arg(&folder))?;
    let mut apply = cluster.kubectl()?;
    // Without `--server-side`, kubectl stores each object in an annotation, and the schema of
    // ApplicationSets is too long for one.
    apply.args(["apply", "--server-side", "--force-conflicts", "-f", "-"]);
    command::output_with_input(&mut apply, &manifests)?;
    cache::remove_folder(&folder)?;
    Ok(())
}
