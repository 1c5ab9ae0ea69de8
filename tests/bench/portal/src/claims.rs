//! The claims of the benchmark, as the platform would have them.

use std::path::{Path, PathBuf};

use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Outcome, read};

/// How many requests are under way at the same time.
const AT_ONCE: usize = 8;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The administrator's kubeconfig
    #[arg(long)]
    kubeconfig: PathBuf,
    /// A file with one claim, `{apiVersion, kind, spec, status}`, of which all others are copies
    #[arg(long)]
    template: PathBuf,
    /// How many, in each namespace
    #[arg(long, default_value_t = 1)]
    count: usize,
    /// The number of the first one
    #[arg(long, default_value_t = 0)]
    first: usize,
    /// The namespaces
    #[arg(required = true)]
    namespaces: Vec<String>,
}

/// What all claims have.
#[derive(Deserialize)]
struct Template {
    spec: Value,
    status: Value,
}

/// A client of the API server, as the administrator.
pub(crate) async fn client(kubeconfig: &Path) -> Outcome<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// The kind of the claims.
pub(crate) fn kind() -> ApiResource {
    let kind = GroupVersionKind::gvk("platform.acme.io", "v1alpha1", "GpuDevWorkspaceClaim");
    ApiResource::from_gvk_with_plural(&kind, "gpudevworkspaceclaims")
}

/// The name of a claim by its number.
pub(crate) fn name(number: usize) -> String {
    format!("workspace-{number:04}")
}

pub(crate) async fn run(arguments: &Arguments) -> Outcome<()> {
    let client = client(&arguments.kubeconfig).await?;
    let template: Template = read(&arguments.template)?;
    let numbers = arguments.first..arguments.first + arguments.count;
    let all = arguments.namespaces.iter().flat_map(|namespace| {
        let named = numbers.clone().map(name);
        named.map(move |name| (namespace, name))
    });
    let (client, template) = (&client, &template);
    stream::iter(all)
        .map(|(namespace, name)| async move { create(client, template, namespace, &name).await })
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    println!(
        "{}",
        json!({"created": arguments.count * arguments.namespaces.len()})
    );
    Ok(())
}

/// Creates a claim by one program and writes its status by another one, as people and Crossplane do.
async fn create(client: &Client, template: &Template, namespace: &str, name: &str) -> Outcome<()> {
    let claims: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind());
    let mut claim = DynamicObject::new(name, &kind());
    claim.data = json!({"spec": template.spec});
    let by = |manager: &str| Some(manager.to_owned());
    let creating = PostParams {
        field_manager: by("gpu-portal"),
        ..PostParams::default()
    };
    claims.create(&creating, &claim).await?;
    let patching = PatchParams {
        field_manager: by("crossplane"),
        ..PatchParams::default()
    };
    let status = Patch::Merge(json!({"status": template.status}));
    claims.patch_status(name, &patching, &status).await?;
    Ok(())
}
