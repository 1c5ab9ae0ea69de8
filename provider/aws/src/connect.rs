//! A client of one region from credentials and an endpoint.

use std::path::PathBuf;
use std::time::Duration;

use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{self, ProvideCredentials, SharedCredentialsProvider, future};
use aws_sdk_ec2::config::retry::RetryConfig;
use aws_sdk_ec2::config::timeout::TimeoutConfig;
use aws_types::region::Region;

use crate::{AwsEc2, SqsEvents, StaticCredentials, TagKeys};

/// Attempts of the SDK at one call, the first one included.
const MAX_ATTEMPTS: u32 = 3;
/// Bound on one call with its repetitions.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(45);
/// Bound on one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
/// Bound on one call of a queue, which SQS holds open for 20 seconds.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(35);

/// How AWS is reached.
#[derive(Clone, Debug)]
pub struct Access {
    /// Who asks.
    pub credentials: Credentials,
    /// Where, when it is not AWS's own endpoint.
    pub endpoint: Option<String>,
}

/// Who asks.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// Keys.
    Static(StaticCredentials),
    /// A web identity token in a file, exchanged at STS for a role's session.
    WebIdentity {
        /// The file that the kubelet keeps fresh.
        token_file: PathBuf,
        /// The role to assume.
        role_arn: String,
    },
}

/// Why no credentials can be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The pod has no web identity.
    #[error(
        "source is IRSA, and the provider's pod has no {0}: annotate its ServiceAccount with \
         eks.amazonaws.com/role-arn through a DeploymentRuntimeConfig"
    )]
    NoWebIdentity(&'static str),
}

impl Credentials {
    /// The web identity that EKS gives a pod, from its environment.
    pub fn irsa(environment: impl Fn(&str) -> Option<String>) -> Result<Self, AccessError> {
        let read = |key: &'static str| environment(key).ok_or(AccessError::NoWebIdentity(key));
        Ok(Self::WebIdentity {
            token_file: read("AWS_WEB_IDENTITY_TOKEN_FILE")?.into(),
            role_arn: read("AWS_ROLE_ARN")?,
        })
    }
}

/// A client of `region` that sees what carries `cluster` under `keys.cluster`.
pub async fn connect(access: &Access, region: &str, keys: TagKeys, cluster: &str) -> AwsEc2 {
    let config = configuration(access, region).await;
    AwsEc2::new(aws_sdk_ec2::Client::new(&config), keys, cluster.to_owned())
}

/// A client of the queue with EC2's events of `region`.
pub async fn connect_events(access: &Access, region: &str, url: &str) -> SqsEvents {
    let config = configuration(access, region).await;
    // SQS holds a call open for longer than EC2 may take to answer.
    let timeouts = timeouts(EVENTS_TIMEOUT, EVENTS_TIMEOUT);
    let config = aws_sdk_sqs::config::Builder::from(&config)
        .timeout_config(timeouts)
        .build();
    SqsEvents {
        client: aws_sdk_sqs::Client::from_conf(config),
        url: url.to_owned(),
    }
}

async fn configuration(access: &Access, region: &str) -> SdkConfig {
    let provider = match &access.credentials {
        Credentials::Static(keys) => {
            SharedCredentialsProvider::new(aws_credential_types::Credentials::new(
                &keys.access_key_id,
                &keys.secret_access_key,
                keys.session_token.clone(),
                None,
                "Secret",
            ))
        }
        Credentials::WebIdentity {
            token_file,
            role_arn,
        } => {
            // The exchange itself is not signed.
            let unsigned = loader(access, region).no_credentials().load().await;
            SharedCredentialsProvider::new(WebIdentity {
                sts: aws_sdk_sts::Client::new(&unsigned),
                token_file: token_file.clone(),
                role_arn: role_arn.clone(),
            })
        }
    };
    loader(access, region)
        .credentials_provider(provider)
        .load()
        .await
}

fn timeouts(operation: Duration, attempt: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .operation_timeout(operation)
        .operation_attempt_timeout(attempt)
        .build()
}

fn loader(access: &Access, region: &str) -> ConfigLoader {
    let loader = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new(region.to_owned()))
        .retry_config(RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS))
        .timeout_config(timeouts(OPERATION_TIMEOUT, ATTEMPT_TIMEOUT));
    match &access.endpoint {
        Some(endpoint) => loader.endpoint_url(endpoint),
        None => loader,
    }
}

/// Exchanges the pod's token at STS. The SDK's own provider of this kind takes
/// no endpoint, and the token file changes: it is read at every exchange.
#[derive(Debug)]
struct WebIdentity {
    sts: aws_sdk_sts::Client,
    token_file: PathBuf,
    role_arn: String,
}

impl WebIdentity {
    async fn exchange(&self) -> provider::Result {
        let token = tokio::fs::read_to_string(&self.token_file)
            .await
            .map_err(CredentialsError::provider_error)?;
        let answer = self
            .sts
            .assume_role_with_web_identity()
            .role_arn(&self.role_arn)
            .role_session_name("provider-gpu-spot")
            .web_identity_token(token.trim())
            .send()
            .await
            .map_err(CredentialsError::provider_error)?;
        let session = answer
            .credentials
            .ok_or_else(|| CredentialsError::unhandled("STS answered without credentials"))?;
        let expiry = session
            .expiration
            .try_into()
            .map_err(CredentialsError::unhandled)?;
        Ok(aws_credential_types::Credentials::new(
            session.access_key_id,
            session.secret_access_key,
            Some(session.session_token),
            Some(expiry),
            "IRSA",
        ))
    }
}

impl ProvideCredentials for WebIdentity {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.exchange())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_without_a_web_identity_is_told_what_to_annotate() {
        let error = Credentials::irsa(|_| None).unwrap_err();
        assert!(error.to_string().contains("AWS_WEB_IDENTITY_TOKEN_FILE"));
        assert!(error.to_string().contains("eks.amazonaws.com/role-arn"));
    }
}
