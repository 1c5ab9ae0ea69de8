//! Sessions: temporary credentials from STS or from EKS's agent.
//!
//! The SDK's own providers for STS take no endpoint, and do not pass transitive tags on. The SDK's
//! client caches these credentials until shortly before they expire.

use std::error::Error;
use std::path::PathBuf;

use aws_config::ecs::EcsCredentialsProvider;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{self, ProvideCredentials, future};
use aws_sdk_sts::types::Tag;
use provider_core::ErrorClass;

use crate::Ec2Error;
use crate::credentials::{Role, Token, WebIdentity};

/// The name of this provider's sessions in AWS's logs. It is the same for all sessions: AWS's
/// messages about a session become a condition's message, which must not flap.
const SESSION: &str = "provider-gpu-spot";

/// Exchanges a web identity token for a role's session.
#[derive(Debug)]
pub(crate) struct ByToken {
    /// Does not sign requests: the token is the proof.
    pub(crate) sts: aws_sdk_sts::Client,
    pub(crate) identity: WebIdentity,
}

impl ByToken {
    async fn exchange(&self) -> provider::Result {
        const OPERATION: &str = "AssumeRoleWithWebIdentity";
        let role = &self.identity.role_arn;
        let token = match &self.identity.token {
            Token::Given(token) => token.clone(),
            Token::File(path) => read_token(OPERATION, path).await.map_err(failed)?,
        };
        let name = self.identity.session_name.as_deref().unwrap_or(SESSION);
        let answer = self
            .sts
            .assume_role_with_web_identity()
            .role_arn(role)
            .role_session_name(name)
            .web_identity_token(token.trim())
            .send()
            .await
            .map_err(|error| failed(Ec2Error::of(OPERATION, &error).about(role)))?;
        credentials(OPERATION, answer.credentials)
    }
}

impl ProvideCredentials for ByToken {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.exchange())
    }
}

/// Assumes a role with other credentials.
#[derive(Debug)]
pub(crate) struct ByRole {
    /// Signs requests with those credentials.
    pub(crate) sts: aws_sdk_sts::Client,
    pub(crate) role: Role,
}

impl ByRole {
    async fn assume(&self) -> provider::Result {
        const OPERATION: &str = "AssumeRole";
        let role = &self.role;
        let tags = role.tags.iter().map(|(key, value)| {
            let tag = Tag::builder().key(key).value(value).build();
            tag.map_err(CredentialsError::invalid_configuration)
        });
        let tags = tags.collect::<Result<Vec<_>, _>>()?;
        let answer = self
            .sts
            .assume_role()
            .role_arn(&role.arn)
            .role_session_name(SESSION)
            .set_external_id(role.external_id.clone())
            .set_tags((!tags.is_empty()).then_some(tags))
            .set_transitive_tag_keys(
                (!role.transitive_tag_keys.is_empty()).then(|| role.transitive_tag_keys.clone()),
            )
            .send()
            .await
            .map_err(|error| failed(Ec2Error::of(OPERATION, &error).about(&role.arn)))?;
        credentials(OPERATION, answer.credentials)
    }
}

impl ProvideCredentials for ByRole {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.assume())
    }
}

/// Asks EKS's Pod Identity agent at the address from the pod's environment. The SDK's provider
/// refuses agents that are neither EKS's nor reached by TLS.
#[derive(Debug)]
pub(crate) struct ByPod {
    agent: EcsCredentialsProvider,
}

impl ByPod {
    pub(crate) fn new() -> Self {
        Self {
            agent: EcsCredentialsProvider::builder().build(),
        }
    }

    async fn ask(&self) -> provider::Result {
        let answer = self.agent.provide_credentials().await;
        answer.map_err(|error| failed(of_agent(&error)))
    }
}

impl ProvideCredentials for ByPod {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.ask())
    }
}

/// The agent's refusal, reported under the operation that the agent calls at AWS for the pod.
fn of_agent(error: &CredentialsError) -> Ec2Error {
    let refused = matches!(
        error,
        CredentialsError::ProviderError(_) | CredentialsError::InvalidConfiguration(_)
    );
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    Ec2Error {
        operation: "AssumeRoleForPodIdentity",
        code: if refused { "Refused" } else { "Dispatch" }.into(),
        message: innermost.to_string(),
        class: if refused {
            ErrorClass::Denied
        } else {
            ErrorClass::Transient
        },
    }
}

async fn read_token(operation: &'static str, path: &PathBuf) -> Result<String, Ec2Error> {
    let read = tokio::fs::read_to_string(path).await;
    read.map_err(|error| Ec2Error {
        operation,
        code: "Token".into(),
        message: format!("the provider's pod cannot read {}: {error}", path.display()),
        class: ErrorClass::Denied,
    })
}

fn credentials(
    operation: &'static str,
    session: Option<aws_sdk_sts::types::Credentials>,
) -> provider::Result {
    let session = session.ok_or_else(|| failed(Ec2Error::malformed(operation, "credentials")))?;
    let expiry = session.expiration.try_into();
    let expiry = expiry.map_err(CredentialsError::unhandled)?;
    Ok(aws_credential_types::Credentials::new(
        session.access_key_id,
        session.secret_access_key,
        Some(session.session_token),
        Some(expiry),
        "STS",
    ))
}

/// Wraps an error so that [`Ec2Error::of`] finds it in the error of the call that needed the
/// credentials.
fn failed(error: Ec2Error) -> CredentialsError {
    CredentialsError::provider_error(error)
}
