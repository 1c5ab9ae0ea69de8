//! The credentials for AWS, and where they come from.

use std::fmt;
use std::path::PathBuf;

use crate::StaticCredentials;

/// The file with the web identity token that EKS or another system mounts in the pod.
const TOKEN_FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
/// The role from the annotation of the pod's service account, set by EKS.
const ROLE: &str = "AWS_ROLE_ARN";
/// The address of EKS's Pod Identity agent.
const AGENT: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";

/// How the provider reaches AWS.
#[derive(Clone, Debug)]
pub struct Access {
    /// The credentials to begin with.
    pub credentials: Credentials,
    /// The roles to assume, in order.
    pub roles: Vec<Role>,
    /// The endpoint, if it is not AWS's own.
    pub endpoint: Option<String>,
}

impl Access {
    /// Whether requests to EC2 go out without a signature.
    pub(crate) fn is_unsigned(&self) -> bool {
        self.roles.is_empty() && matches!(self.credentials, Credentials::Unsigned)
    }
}

/// The source of credentials.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// None: requests are not signed, and the endpoint has to accept that.
    Unsigned,
    /// Keys from a Secret.
    Static(StaticCredentials),
    /// A web identity token, exchanged for a role's session.
    WebIdentity(WebIdentity),
    /// The identity of the provider's pod, from EKS's Pod Identity agent.
    PodIdentity,
}

/// A web identity token, which STS exchanges for a role's session.
#[derive(Clone, Debug)]
pub struct WebIdentity {
    /// The token.
    pub token: Token,
    /// The role to assume.
    pub role_arn: String,
    /// The name of the session. If unset, a constant name is used.
    pub session_name: Option<String>,
}

/// The source of a web identity token.
#[derive(Clone)]
pub enum Token {
    /// A file that another program keeps fresh. The provider reads it at every exchange.
    File(PathBuf),
    /// The token itself.
    Given(String),
}

/// Hides the token.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Given(_) => f.debug_tuple("Given").finish_non_exhaustive(),
        }
    }
}

/// A role that the previous credentials may assume.
#[derive(Clone, Debug)]
pub struct Role {
    /// The ARN of the role.
    pub arn: String,
    /// The external id that the role's trust policy requires of third parties.
    pub external_id: Option<String>,
    /// Keys and values of the session's tags.
    pub tags: Vec<(String, String)>,
    /// Keys of tags that later sessions inherit.
    pub transitive_tag_keys: Vec<String>,
}

/// The reason why the provider has no credentials: the pod's environment lacks a variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the provider's pod has no {variable}: {next_step}")]
pub struct AccessError {
    variable: &'static str,
    next_step: &'static str,
}

impl Credentials {
    /// IAM roles for service accounts: the web identity that EKS gives a pod.
    pub fn irsa(environment: impl Fn(&str) -> Option<String>) -> Result<Self, AccessError> {
        let read = |variable| {
            environment(variable).ok_or(AccessError {
                variable,
                next_step: "annotate its ServiceAccount with eks.amazonaws.com/role-arn through \
                            a DeploymentRuntimeConfig",
            })
        };
        Ok(Self::WebIdentity(WebIdentity {
            token: Token::File(read(TOKEN_FILE)?.into()),
            role_arn: read(ROLE)?,
            session_name: None,
        }))
    }

    /// EKS Pod Identity.
    pub fn pod_identity(environment: impl Fn(&str) -> Option<String>) -> Result<Self, AccessError> {
        environment(AGENT)
            .map(|_| Self::PodIdentity)
            .ok_or(AccessError {
                variable: AGENT,
                next_step: "create an EKS Pod Identity association for its ServiceAccount, then \
                        restart the pod",
            })
    }
}

impl Token {
    /// The token in the file that the pod's environment names.
    pub fn of_pod(environment: impl Fn(&str) -> Option<String>) -> Result<Self, AccessError> {
        let path = environment(TOKEN_FILE).ok_or(AccessError {
            variable: TOKEN_FILE,
            next_step: "say where the token is in spec.credentials.webIdentity.tokenConfig",
        })?;
        Ok(Self::File(path.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_without_an_identity_is_told_how_to_get_one() {
        let nothing = |_: &str| None;
        for (error, variable, next_step) in [
            (
                Credentials::irsa(nothing).unwrap_err(),
                TOKEN_FILE,
                "eks.amazonaws.com/role-arn",
            ),
            (
                Credentials::pod_identity(nothing).unwrap_err(),
                AGENT,
                "Pod Identity association",
            ),
            (
                Token::of_pod(nothing).unwrap_err(),
                TOKEN_FILE,
                "tokenConfig",
            ),
        ] {
            let said = error.to_string();
            assert!(
                said.contains(variable) && said.contains(next_step),
                "{said}"
            );
        }
    }

    #[test]
    fn debugging_never_prints_the_token() {
        let printed = format!("{:?}", Token::Given("hunter2".into()));
        assert!(!printed.contains("hunter2"), "{printed}");
    }
}
