//! What is said when something is refused: Problem Details (RFC 9457).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::shape::PlainProblem;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// The path of the page that explains it.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is, in a few words.
    pub title: String,
    /// The status of HTTP.
    pub status: u16,
    /// What is wrong, and what to do.
    pub detail: String,
    /// In how many seconds it may be possible (`Retry-After`).
    #[serde(skip)]
    pub retry_after: Option<u64>,
    /// The fields that are wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Violation>,
}

/// A field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Violation {
    /// The field, as a JSON pointer into what was sent (RFC 6901).
    pub pointer: String,
    /// What is wrong with it.
    pub detail: String,
}

impl Problem {
    /// A problem of a kind.
    pub fn new(status: u16, kind: &str, title: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("/problems/{kind}"),
            title: title.to_owned(),
            status,
            detail: detail.into(),
            retry_after: None,
            errors: Vec::new(),
        }
    }

    /// Somebody asks too often.
    pub fn too_many(what: &str, seconds: u64) -> Self {
        let detail = format!("too many {what}: try again in {seconds} s");
        let mut problem = Self::new(429, "too-many", "Too much at once", detail);
        problem.retry_after = Some(seconds);
        problem
    }

    /// The API server gives no answer.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(503, "unavailable", "Kubernetes cannot answer now", detail)
    }

    /// The person has no account.
    pub fn no_account(why: impl Into<String>) -> Self {
        Self::new(403, "no-account", "You have no workspaces here", why)
    }

    /// Nobody is signed in.
    pub fn signed_out() -> Self {
        let detail = "sign in at /login, and try again";
        Self::new(401, "signed-out", "You are not signed in", detail)
    }

    /// A field of a request is wrong.
    pub fn invalid(pointer: &str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let mut problem = Self::new(400, "invalid", "A field is wrong", detail.clone());
        problem.errors.push(Violation {
            pointer: pointer.to_owned(),
            detail,
        });
        problem
    }

    /// What the API server refused, from its `Status`. Its fields are of the object; `fields` of the
    /// object are put before what was sent.
    pub fn of_api_server(status: u16, answer: &Value) -> Self {
        let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
        let detail = text("/message").unwrap_or("Kubernetes gave no reason");
        let (kind, title) = match status {
            403 => ("forbidden", "You may not do this"),
            404 => ("not-found", "It does not exist"),
            409 => ("conflict", "Somebody else was faster"),
            422 => ("invalid", "A field is wrong"),
            429 | 500.. => ("unavailable", "Kubernetes cannot answer now"),
            _ => ("refused", "Kubernetes refused this"),
        };
        let mut problem = Self::new(status, kind, title, detail);
        let causes = answer.pointer("/details/causes").and_then(Value::as_array);
        problem.errors = causes
            .into_iter()
            .flatten()
            .filter_map(|cause| {
                let field = cause.get("field")?.as_str()?;
                let detail = cause.get("message")?.as_str()?;
                Some(Violation {
                    pointer: pointer(field),
                    detail: detail.to_owned(),
                })
            })
            .collect();
        if text("/reason") == Some("AlreadyExists") {
            problem.errors.push(Violation {
                pointer: "/metadata/name".to_owned(),
                detail: detail.to_owned(),
            });
        }
        problem
    }

    /// What the platform's policy does not allow.
    pub fn of_policy(errors: Vec<Violation>) -> Self {
        let said = errors.iter().map(|error| error.detail.as_str());
        let detail = said.collect::<Vec<_>>().join("; ");
        let mut problem = Self::new(422, "policy", "The platform does not allow this", detail);
        problem.errors = errors;
        problem
    }

    /// The same about a body `{name, namespace, parameters}`, from which the claim was made.
    #[must_use]
    pub fn of_body(mut self) -> Self {
        for error in &mut self.errors {
            error.pointer = in_body(&error.pointer);
        }
        self
    }

    /// The same in the shape of the first API: one text.
    pub fn plain(&self) -> PlainProblem {
        PlainProblem {
            error: self.detail.clone(),
        }
    }
}

/// A pointer into a claim as one into the body from which the claim was made.
fn in_body(pointer: &str) -> String {
    if let Some(name) = pointer.strip_prefix("/metadata/") {
        return format!("/{name}");
    }
    let in_spec = pointer.strip_prefix("/spec/parameters");
    in_spec.map_or_else(|| pointer.to_owned(), |rest| format!("/parameters{rest}"))
}

impl Violation {
    /// A field of a claim, such as `spec.parameters.keys[0]`, and what is wrong with it.
    pub fn of_field(field: &str, detail: impl Into<String>) -> Self {
        Self {
            pointer: in_body(&pointer(field)),
            detail: detail.into(),
        }
    }
}

/// A field of Kubernetes, such as `spec.parameters.keys[0]`, as a JSON pointer.
fn pointer(field: &str) -> String {
    let steps = field.split(['.', '[']).map(|step| {
        let step = step.strip_suffix(']').unwrap_or(step);
        let step = step.trim_matches(['"', '\'']);
        format!("/{}", step.replace('~', "~0").replace('/', "~1"))
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_of_the_api_server_marks_the_field() {
        let answer = json!({
            "kind": "Status",
            "message": "GpuDevWorkspaceClaim is invalid",
            "details": {"causes": [
                {"field": "spec.parameters.sshPublicKeys[1]", "message": "is no key"},
                {"message": "no field"},
            ]},
        });
        let problem = Problem::of_api_server(422, &answer);
        assert_eq!(problem.kind, "/problems/invalid");
        assert_eq!(
            problem.errors,
            [Violation {
                pointer: "/spec/parameters/sshPublicKeys/1".into(),
                detail: "is no key".into(),
            }]
        );
    }

    #[test]
    fn a_refused_body_is_marked_at_its_own_fields() {
        let answer = json!({"details": {"causes": [
            {"field": "spec.parameters.ssh.publicKeys[1]", "message": "is no key"},
            {"field": "metadata.name", "message": "is too long"},
        ]}});
        let problem = Problem::of_api_server(422, &answer).of_body();
        let pointers: Vec<_> = problem.errors.iter().map(|one| &*one.pointer).collect();
        assert_eq!(pointers, ["/parameters/ssh/publicKeys/1", "/name"]);
        let taken = json!({"message": "claim vision already exists", "reason": "AlreadyExists"});
        let taken = Problem::of_api_server(409, &taken).of_body();
        assert_eq!(taken.errors[0].pointer, "/name");
        let conflict = Problem::of_api_server(409, &json!({"reason": "Conflict"})).of_body();
        assert_eq!(conflict.errors, []);
        let other = Problem::of_api_server(403, &json!({"message": "no"})).of_body();
        assert_eq!(other.errors, []);
    }

    #[test]
    fn a_pointer_has_the_escapes_of_its_rule() {
        assert_eq!(
            pointer("metadata.labels[a/b~c]"),
            "/metadata/labels/a~1b~0c"
        );
    }

    #[test]
    fn a_problem_has_the_names_of_its_rule() {
        let problem = serde_json::to_value(Problem::invalid("/owner", "is another person"));
        assert_eq!(
            problem.unwrap(),
            json!({
                "type": "/problems/invalid", "title": "A field is wrong", "status": 400,
                "detail": "is another person",
                "errors": [{"pointer": "/owner", "detail": "is another person"}],
            })
        );
        assert_eq!(
            Problem::signed_out().plain().error,
            "sign in at /login, and try again"
        );
    }
}
