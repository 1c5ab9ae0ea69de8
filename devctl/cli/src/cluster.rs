//! The API server, as the user of a kubeconfig.

use std::time::Duration;

use async_trait::async_trait;
use devctl_api_server::ApiServer;
use devctl_core::grammar::Shared;
use devctl_core::host::{self, Change, Effect, Refused, Scope};
use devctl_core::name::Name;
use devctl_core::object::{Kind, Reference};
use devctl_core::problem::{Code, Problem};
use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

/// How long a connection to the API server may take.
const CONNECT: Duration = Duration::from_secs(10);

/// The cluster of the kubeconfig, or none for commands that need none.
pub(crate) struct Cluster(Option<ApiServer>);

impl Cluster {
    /// The cluster of the kubeconfig.
    pub(crate) async fn open(shared: &Shared) -> Result<Self, Problem> {
        let wrong = |error: String| {
            Problem::new(
                Code::NotLoggedIn,
                "Kubeconfig",
                format!("the kubeconfig: {error}"),
            )
            .next(
                "set KUBECONFIG, or name the file with --kubeconfig and the context with --context",
            )
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
        Ok(Self(Some(ApiServer::new(client, namespace))))
    }

    /// No cluster.
    pub(crate) fn away() -> Self {
        Self(None)
    }

    /// The client; none without a cluster.
    pub(crate) fn client(&self) -> Option<Client> {
        self.0.as_ref().map(ApiServer::client)
    }

    fn server(&self) -> Result<&ApiServer, Refused> {
        self.0.as_ref().ok_or_else(|| Refused {
            message: "there is no kubeconfig".to_owned(),
            ..Refused::default()
        })
    }
}

#[async_trait]
impl host::Api for Cluster {
    fn namespace(&self) -> &str {
        self.0.as_ref().map_or("default", host::Api::namespace)
    }

    async fn get(&self, object: &Reference) -> Result<Value, Refused> {
        self.server()?.get(object).await
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Value>, Refused> {
        self.server()?.list(kind, scope).await
    }

    async fn create(&self, object: &Value, effect: Effect) -> Result<Value, Refused> {
        self.server()?.create(object, effect).await
    }

    async fn patch(
        &self,
        object: &Reference,
        patch: &Value,
        effect: Effect,
    ) -> Result<Value, Refused> {
        self.server()?.patch(object, patch, effect).await
    }

    async fn delete(&self, object: &Reference, uid: &str) -> Result<(), Refused> {
        self.server()?.delete(object, uid).await
    }

    async fn changed(
        &self,
        object: &Reference,
        version: &str,
        longest: Duration,
    ) -> Result<Change, Refused> {
        self.server()?.changed(object, version, longest).await
    }

    async fn may(&self, verb: &str, kind: Kind, namespace: &str) -> Result<bool, Refused> {
        self.server()?.may(verb, kind, namespace).await
    }

    async fn time(&self) -> Result<Timestamp, Refused> {
        self.server()?.time().await
    }
}
