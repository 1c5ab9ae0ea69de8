//! The API server, as one person.

use devctl_core::object::Kind;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Request};
use kube::Client;
use portal_core::identity::Person;
use portal_core::problem::Problem;
use serde_json::{Value, json};
use tracing::warn;

/// The service account of a person, in the person's namespace. The bastion uses it, too. Its name has a
/// dot, which no account of a pod has.
const ACCOUNT: &str = "gpu-workspaces.owner";
/// Kubernetes, "User impersonation".
const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
/// The API server's audit log keeps this id (Kubernetes, "Auditing").
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// The name under which the API server records what the portal changes. Unknown fields are refused.
const WRITTEN: &str = "fieldManager=gpu-portal&fieldValidation=Strict";

/// As whom the portal asks the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The service account of the person whose namespace this is.
    Account(String),
    /// The person, with their groups.
    Person(Person),
}

impl Who {
    /// The headers of a request. They come from the token and the configuration, and never from a browser.
    fn headers(&self) -> Vec<(HeaderName, String)> {
        match self {
            Self::Account(namespace) => {
                let user = format!("system:serviceaccount:{namespace}:{ACCOUNT}");
                vec![(USER, user)]
            }
            Self::Person(person) => {
                let groups = person.groups.iter().map(|group| (GROUP, group.clone()));
                [(USER, person.user.clone())]
                    .into_iter()
                    .chain(groups)
                    .collect()
            }
        }
    }
}

/// The API server as somebody, for one request of a browser, in one namespace.
pub(crate) struct AsPerson<'a> {
    client: &'a Client,
    who: &'a Who,
    namespace: &'a str,
    /// The id of the browser's request.
    request: &'a str,
}

/// Whether somebody may list claims in a namespace; in all of them if it is empty.
pub(crate) async fn may_list(client: &Client, who: &Who, namespace: &str) -> Result<bool, Problem> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": "list",
            "group": Kind::Claim.group(),
            "resource": Kind::Claim.plural(),
            "namespace": namespace,
        }},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = AsPerson::new(client, who, namespace, "")
        .ask(Method::POST, path, Some(&review))
        .await?;
    Ok(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
}

impl<'a> AsPerson<'a> {
    /// The API server as somebody. `request` becomes the id in the API server's audit log.
    pub(crate) fn new(
        client: &'a Client,
        who: &'a Who,
        namespace: &'a str,
        request: &'a str,
    ) -> Self {
        Self {
            client,
            who,
            namespace,
            request,
        }
    }

    /// A claim.
    pub(crate) async fn get(&self, name: &str) -> Result<Value, Problem> {
        let path = format!("{}/{name}", self.folder());
        self.ask(Method::GET, &path, None).await
    }

    /// The events of a claim.
    pub(crate) async fn events(&self, name: &str) -> Result<Vec<Value>, Problem> {
        let path = format!(
            "/api/v1/namespaces/{}/events?fieldSelector=involvedObject.kind%3D{}%2CinvolvedObject.name%3D{name}",
            self.namespace,
            Kind::Claim.kind()
        );
        let mut found = self.ask(Method::GET, &path, None).await?;
        match found["items"].take() {
            Value::Array(events) => Ok(events),
            _ => Ok(Vec::new()),
        }
    }

    /// Creates a claim.
    pub(crate) async fn create(&self, claim: &Value) -> Result<Value, Problem> {
        let path = format!("{}?{WRITTEN}", self.folder());
        self.ask(Method::POST, &path, Some(claim)).await
    }

    /// What the API server would create: with its defaults, and after all checks.
    pub(crate) async fn try_to_create(&self, claim: &Value) -> Result<Value, Problem> {
        let path = format!("{}?{WRITTEN}&dryRun=All", self.folder());
        self.ask(Method::POST, &path, Some(claim)).await
    }

    /// Changes a claim by a merge patch (RFC 7386).
    pub(crate) async fn patch(&self, name: &str, change: &Value) -> Result<Value, Problem> {
        let path = format!("{}/{name}?{WRITTEN}", self.folder());
        self.ask(Method::PATCH, &path, Some(change)).await
    }

    /// What a claim would be after a merge patch.
    pub(crate) async fn try_to_patch(&self, name: &str, change: &Value) -> Result<Value, Problem> {
        let path = format!("{}/{name}?{WRITTEN}&dryRun=All", self.folder());
        self.ask(Method::PATCH, &path, Some(change)).await
    }

    /// Deletes a claim, if it still is the one with this UID. Everything that it
    /// made goes first, in both configurations. Returns the claim, which waits for that.
    pub(crate) async fn delete(&self, name: &str, uid: &str) -> Result<Value, Problem> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Foreground",
        });
        let path = format!("{}/{name}", self.folder());
        self.ask(Method::DELETE, &path, Some(&options)).await
    }

    fn folder(&self) -> String {
        format!(
            "/apis/{}/namespaces/{}/{}",
            Kind::Claim.api_version(),
            self.namespace,
            Kind::Claim.plural()
        )
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Problem> {
        let media = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let header = |text: &str| HeaderValue::from_str(text).map_err(|_| internal("a header"));
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, media);
        for (name, value) in self.who.headers() {
            request = request.header(name, header(&value)?);
        }
        if !self.request.is_empty() {
            request = request.header(AUDIT_ID, header(self.request)?);
        }
        let body = body.map(|body| body.to_string().into_bytes());
        let request = request
            .body(body.unwrap_or_default())
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
    Problem::unavailable(detail)
}

fn internal(what: &str) -> Problem {
    let detail = format!("the portal cannot make {what} of this");
    Problem::new(500, "internal", "The portal failed", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_portal_is_the_account_or_the_person_with_their_groups() {
        let account = Who::Account("dev-alice".into()).headers();
        assert_eq!(
            account,
            [(
                USER,
                "system:serviceaccount:dev-alice:gpu-workspaces.owner".to_owned()
            )]
        );
        let person = Person {
            user: "alice@acme.io".into(),
            groups: vec!["vision".into(), "all".into()],
            email: None,
        };
        let expected = [(USER, "alice@acme.io"), (GROUP, "vision"), (GROUP, "all")];
        let expected = expected.map(|(name, value)| (name, value.to_owned()));
        assert_eq!(Who::Person(person).headers(), expected);
    }
}
