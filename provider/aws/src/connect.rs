//! Builds the clients of one region from credentials and an endpoint.

use std::time::Duration;

use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_ec2::config::retry::RetryConfig;
use aws_sdk_ec2::config::timeout::TimeoutConfig;
use aws_types::region::Region;

use crate::sessions::{ByPod, ByRole, ByToken};
use crate::{Access, AwsEc2, Credentials, SqsEvents, TagKeys};

/// The SDK's attempts at one call, including the first one.
const MAX_ATTEMPTS: u32 = 3;
/// Timeout of one call with all its attempts.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(45);
/// Timeout of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of one call to a queue. SQS holds such a call open for 20 seconds.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(35);

/// The configuration of a call that the SDK must not repeat by itself. If EC2 carries such a call out,
/// its answer is lost, and EC2 refuses the second attempt, then the caller would learn of a refusal
/// only, and would not look for what the first attempt created.
pub(crate) fn one_attempt() -> aws_sdk_ec2::config::Builder {
    aws_sdk_ec2::config::Builder::default().retry_config(RetryConfig::disabled())
}

/// A client of `region` that lists only resources with the value `cluster` in the tag
/// `keys.cluster`.
pub async fn connect(access: &Access, region: &str, keys: TagKeys, cluster: &str) -> AwsEc2 {
    let config = configuration(access, region).await;
    let sts = sts(&config);
    let mut config = aws_sdk_ec2::config::Builder::from(&config);
    if access.is_unsigned() {
        config = config.allow_no_auth();
    }
    let client = aws_sdk_ec2::Client::from_conf(config.build());
    AwsEc2::new(client, sts, keys, cluster.to_owned())
}

/// A client of the queue that receives EC2's events of `region`.
pub async fn connect_events(access: &Access, region: &str, url: &str) -> SqsEvents {
    let config = configuration(access, region).await;
    // SQS holds a call open for longer than EC2 may take to answer.
    let timeouts = timeouts(EVENTS_TIMEOUT, EVENTS_TIMEOUT);
    let mut config = aws_sdk_sqs::config::Builder::from(&config).timeout_config(timeouts);
    if access.is_unsigned() {
        config = config.allow_no_auth();
    }
    SqsEvents {
        client: aws_sdk_sqs::Client::from_conf(config.build()),
        url: url.to_owned(),
    }
}

/// The configuration that every client of a region shares. It uses the last role's session, or the
/// credentials themselves if there is no role.
async fn configuration(access: &Access, region: &str) -> SdkConfig {
    let unsigned = loader(access, region).no_credentials().load().await;
    let signed = |provider| loader(access, region).credentials_provider(provider).load();
    let mut config = match source(&access.credentials, &unsigned) {
        Some(provider) => signed(provider).await,
        None => unsigned,
    };
    for role in &access.roles {
        let provider = ByRole {
            sts: sts(&config),
            role: role.clone(),
        };
        config = signed(SharedCredentialsProvider::new(provider)).await;
    }
    config
}

/// The provider of credentials that signs requests. `None` if requests are not signed.
fn source(credentials: &Credentials, unsigned: &SdkConfig) -> Option<SharedCredentialsProvider> {
    Some(match credentials {
        Credentials::Unsigned => return None,
        Credentials::Static(keys) => {
            SharedCredentialsProvider::new(aws_credential_types::Credentials::new(
                &keys.access_key_id,
                &keys.secret_access_key,
                keys.session_token.clone(),
                None,
                "Secret",
            ))
        }
        Credentials::WebIdentity(identity) => SharedCredentialsProvider::new(ByToken {
            sts: sts(unsigned),
            identity: identity.clone(),
        }),
        Credentials::PodIdentity => SharedCredentialsProvider::new(ByPod::new()),
    })
}

/// A client of STS. It does not sign requests if there are no credentials.
fn sts(config: &SdkConfig) -> aws_sdk_sts::Client {
    let mut sts = aws_sdk_sts::config::Builder::from(config);
    if config.credentials_provider().is_none() {
        sts = sts.allow_no_auth();
    }
    aws_sdk_sts::Client::from_conf(sts.build())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instances::tests::KEYS;
    use crate::wire::{Asked, Wire};
    use crate::{Ec2 as _, Role, StaticCredentials, Token, WebIdentity};

    /// STS's answer to one of its calls. `key` is the id of the session's access key.
    fn session(call: &str, key: &str) -> (u16, String) {
        let body = format!(
            "<{call}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{call}Result>\
             <Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>any</SecretAccessKey>\
             <SessionToken>any</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>\
             </Credentials></{call}Result></{call}Response>"
        );
        (200, body)
    }

    fn no_volumes() -> (u16, String) {
        let space = "http://ec2.amazonaws.com/doc/2016-11-15/";
        let body = format!(
            "<DescribeVolumesResponse xmlns=\"{space}\"><volumeSet/></DescribeVolumesResponse>"
        );
        (200, body)
    }

    /// The calls, the keys that signed them, and a field of each.
    fn calls<'a>(asked: &'a [Asked], field: &str) -> Vec<(&'a str, &'a str, &'a str)> {
        let calls = asked.iter().map(|asked| {
            (
                asked.field("Action").unwrap_or_default(),
                asked.signed_by.as_deref().unwrap_or_default(),
                asked.field(field).unwrap_or_default(),
            )
        });
        calls.collect()
    }

    fn role(name: &str) -> Role {
        Role {
            arn: format!("arn:aws:iam::111122223333:role/{name}"),
            external_id: None,
            tags: Vec::new(),
            transitive_tag_keys: Vec::new(),
        }
    }

    async fn ask_for_volumes(wire: &Wire, credentials: Credentials, roles: Vec<Role>) {
        let access = Access {
            credentials,
            roles,
            endpoint: Some(wire.endpoint.clone()),
        };
        let ec2 = connect(&access, "us-east-1", KEYS, "cluster-uid").await;
        ec2.volumes().await.unwrap();
    }

    /// An account that only the second role reaches would stay without machines.
    #[tokio::test]
    async fn each_role_is_assumed_with_the_session_of_the_one_before() {
        let wire = Wire::answering(vec![
            session("AssumeRole", "AKIAFIRST"),
            session("AssumeRole", "AKIASECOND"),
            no_volumes(),
        ]);
        let keys = StaticCredentials {
            access_key_id: "AKIAOWN".to_owned(),
            secret_access_key: "any".to_owned(),
            session_token: None,
        };
        let roles = vec![role("first"), role("second")];
        ask_for_volumes(&wire, Credentials::Static(keys), roles).await;
        let arn = |name| format!("arn%3Aaws%3Aiam%3A%3A111122223333%3Arole%2F{name}");
        let (first, second) = (arn("first"), arn("second"));
        assert_eq!(
            calls(&wire.asked(), "RoleArn"),
            [
                ("AssumeRole", "AKIAOWN", first.as_str()),
                ("AssumeRole", "AKIAFIRST", second.as_str()),
                ("DescribeVolumes", "AKIASECOND", ""),
            ]
        );
    }

    /// AWS's logs and policies of the platform team look for the session's name.
    #[tokio::test]
    async fn a_token_is_exchanged_for_a_session_with_the_name_of_the_configuration() {
        for (name, expected) in [
            (Some("gpu-pools"), "gpu-pools"),
            (None, "provider-gpu-spot"),
        ] {
            let wire = Wire::answering(vec![
                session("AssumeRoleWithWebIdentity", "AKIATOKEN"),
                no_volumes(),
            ]);
            let identity = WebIdentity {
                token: Token::Given("any".to_owned()),
                role_arn: role("of-the-token").arn,
                session_name: name.map(str::to_owned),
            };
            ask_for_volumes(&wire, Credentials::WebIdentity(identity), Vec::new()).await;
            assert_eq!(
                calls(&wire.asked(), "RoleSessionName"),
                [
                    ("AssumeRoleWithWebIdentity", "", expected),
                    ("DescribeVolumes", "AKIATOKEN", ""),
                ]
            );
        }
    }
}
