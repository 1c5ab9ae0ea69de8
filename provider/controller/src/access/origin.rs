//! Next steps after a refusal that concerns credentials.

use api::provider_config::CredentialSource;
use provider_aws::Ec2Error;
use provider_core::ErrorClass;

use super::config::Config;
use super::config_name::ConfigName;

/// The objects that a pool's access comes from: the place to correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    config: ConfigName,
    renewal: String,
}

impl Origin {
    pub(super) fn of(config: &Config) -> Self {
        // A configuration without its Secret is refused before AWS is called.
        let secret = config.secret().ok().flatten();
        let file = config.credentials.web_identity.as_ref();
        let file = file.and_then(|w| w.token_config.as_ref()?.fs.as_ref());
        let what = match config.credentials.source {
            CredentialSource::Secret => "fresh keys",
            _ => "a fresh token",
        };
        let renewal = match (secret, file) {
            (Some(at), _) => format!(
                "put {what} into Secret {}/{}, key {:?}",
                at.namespace, at.name, at.key
            ),
            (None, Some(file)) => format!("see that {} is kept fresh", file.path),
            (None, None) => "the provider renews its session by itself: compare the clock of its \
                             node with AWS's"
                .to_owned(),
        };
        Self {
            config: config.name.clone(),
            renewal,
        }
    }

    /// The origin for the default configuration with the pod's own identity.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self {
            config: (&api::managed::ProviderConfigReference::default()).into(),
            renewal: "renew it".into(),
        }
    }

    /// The configuration, with its kind.
    pub(crate) fn config(&self) -> impl std::fmt::Display {
        &self.config
    }

    /// AWS's error, with a next step if it is about credentials.
    pub fn explain(&self, error: &Ec2Error) -> String {
        match error.class {
            ErrorClass::Denied => {
                let next_step = self.next_step(Some(error.operation), &error.code);
                format!("{error}; {next_step}")
            }
            _ => error.to_string(),
        }
    }

    /// The next step after a denial with this code. Without an operation, the denial is one of a
    /// launch.
    pub fn next_step(&self, operation: Option<&str>, code: &str) -> String {
        format!("{}: {}", self.config, self.step(operation, code))
    }

    fn step(&self, operation: Option<&str>, code: &str) -> String {
        match (code, operation) {
            ("ExpiredToken" | "ExpiredTokenException" | "RequestExpired", _) => {
                self.renewal.clone()
            }
            (
                "AuthFailure"
                | "IncompleteSignature"
                | "InvalidClientTokenId"
                | "MissingAuthenticationToken"
                | "SignatureDoesNotMatch"
                | "UnrecognizedClientException",
                _,
            ) => format!("AWS does not take its credentials: {}", self.renewal),
            ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", _) => {
                "create the role once, by `aws iam create-service-linked-role \
                 --aws-service-name spot.amazonaws.com`"
                    .to_owned()
            }
            (
                "Blocked" | "OptInRequired" | "PendingVerification" | "RegionDisabledException",
                _,
            ) => "AWS holds the account back; its owner has to ask AWS".to_owned(),
            (_, Some("GetCallerIdentity")) => {
                "AWS needs no permission for it: let the provider's pod reach sts in the region"
                    .to_owned()
            }
            (_, Some("AssumeRole")) => {
                "let the role's trust policy admit the identity before it in assumeRoleChain"
                    .to_owned()
            }
            (_, Some("AssumeRoleWithWebIdentity")) => {
                "let the role's trust policy admit the token's issuer, subject and audience"
                    .to_owned()
            }
            (_, Some("AssumeRoleForPodIdentity")) => {
                "check the EKS Pod Identity association of the provider's ServiceAccount".to_owned()
            }
            (_, Some(operation)) => {
                format!("check the permissions of its identity: it needs ec2:{operation}")
            }
            (_, None) => "check the permissions of its identity: a launch needs ec2:CreateFleet, \
                          ec2:RunInstances and ec2:CreateTags"
                .to_owned(),
        }
    }
}
