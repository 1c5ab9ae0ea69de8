//! The API server, as one person.

use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Request};
use kube::Client;
use portal_core::account::Account;
use portal_core::problem::Problem;
use serde_json::{Value, json};
use tracing::warn;

/// The service account of a person, in the person's namespace. The bastion uses it, too. Its name has a
/// dot, which no account of a pod has.
const ACCOUNT: &str = "gpu-workspaces.owner";
/// Kubernetes, "User impersonation".
const IMPERSONATE: HeaderName = HeaderName::from_static("impersonate-user");
/// The API server's audit log keeps this id (Kubernetes, "Auditing").
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// The name under which the API server records what the portal changes.
const MANAGER: &str = "gpu-portal";

/// The API server as the service account of a person, for one request of a browser.
pub(crate) struct AsPerson<'a> {
    client: &'a Client,
    account: &'a Account,
    /// The id of the browser's request.
    request: &'a str,
}

impl<'a> AsPerson<'a> {
    /// The API server as the service account of a person. `request` becomes the id in the API server's
    /// audit log.
    pub(crate) fn new(client: &'a Client, account: &'a Account, request: &'a str) -> Self {
        Self {
            client,
            account,
            request,
        }
    }

    /// Creates a claim in the person's namespace.
    pub(crate) async fn create(&self, claim: &Value) -> Result<Value, Problem> {
        let query = format!("fieldManager={MANAGER}&fieldValidation=Strict");
        let path = format!("{}?{query}", self.folder());
        self.ask(Method::POST, &path, Some(claim)).await
    }

    /// Changes a claim of the person's namespace by a merge patch (RFC 7386).
    pub(crate) async fn patch(&self, name: &str, change: &Value) -> Result<Value, Problem> {
        let query = format!("fieldManager={MANAGER}&fieldValidation=Strict");
        let path = format!("{}/{name}?{query}", self.folder());
        self.ask(Method::PATCH, &path, Some(change)).await
    }

    /// Deletes a claim of the person's namespace, if it still is the one with this UID. Everything that it
    /// made goes first, in both configurations.
    pub(crate) async fn delete(&self, name: &str, uid: &str) -> Result<(), Problem> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Foreground",
        });
        let path = format!("{}/{name}", self.folder());
        self.ask(Method::DELETE, &path, Some(&options)).await?;
        Ok(())
    }

    fn folder(&self) -> String {
        format!(
            "/apis/{}/{}/namespaces/{}/gpudevworkspaceclaims",
            api::WORKSPACE_GROUP,
            api::VERSION,
            self.account.namespace
        )
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Problem> {
        let user = format!("system:serviceaccount:{}:{ACCOUNT}", self.account.namespace);
        let media = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let header = |text: &str| HeaderValue::from_str(text).map_err(|_| internal("a header"));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, media)
            .header(IMPERSONATE, header(&user)?)
            .header(AUDIT_ID, header(self.request)?)
            .body(
                body.map(|body| body.to_string().into_bytes())
                    .unwrap_or_default(),
            )
            .map_err(|_| internal("a request"))?;
        self.client
            .request(request)
            .await
            .map_err(|error| problem(&error))
    }
}

fn problem(error: &kube::Error) -> Problem {
    if let kube::Error::Api(status) = error {
        let answer = serde_json::to_value(status).unwrap_or_default();
        return Problem::of_api_server(status.code, &answer);
    }
    warn!(%error, "the API server gave no answer");
    let detail = "the API server gave no answer: try again";
    Problem::new(503, "unavailable", "Kubernetes cannot answer now", detail)
}

fn internal(what: &str) -> Problem {
    let detail = format!("the portal cannot make {what} of this");
    Problem::new(500, "internal", "The portal failed", detail)
}
