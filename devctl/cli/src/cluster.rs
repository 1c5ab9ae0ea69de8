//! The API server, as the user of a kubeconfig.

use std::time::Duration;

use async_trait::async_trait;
use bastion_core::calls::Caller;
use bastion_core::protocol::{Call, Reply};
use devctl_api_server::ApiServer;
use devctl_core::grammar::Shared;
use devctl_core::host::Refused;
use devctl_core::name::Name;
use devctl_core::problem::{Code, Problem};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// How long a connection to the API server may take.
const CONNECT: Duration = Duration::from_secs(10);

/// The cluster of the kubeconfig.
pub(crate) async fn open(shared: &Shared) -> Result<ApiServer, Problem> {
    let wrong = |error: String| {
        Problem::new(
            Code::NotLoggedIn,
            "Kubeconfig",
            format!("the kubeconfig: {error}"),
        )
        .next("set KUBECONFIG, or name the file with --kubeconfig and the context with --context")
    };
    let kubeconfig = match &shared.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let kubeconfig = kubeconfig.map_err(|error| wrong(error.to_string()))?;
    let options = KubeConfigOptions {
        context: shared.context.clone(),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|error| wrong(error.to_string()))?;
    config.connect_timeout = Some(CONNECT);
    let namespace = shared.namespace.as_ref().map(Name::to_string);
    let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
    let client = Client::try_from(config).map_err(|error| wrong(error.to_string()))?;
    Ok(ApiServer::new(client, namespace))
}

/// No cluster, for commands that need none.
pub(crate) struct Away;

#[async_trait]
impl Caller for Away {
    fn namespace(&self) -> &'static str {
        "default"
    }

    async fn call(&self, _: Call) -> Result<Reply, Refused> {
        Err(Refused {
            message: "there is no kubeconfig".to_owned(),
            ..Refused::default()
        })
    }
}
