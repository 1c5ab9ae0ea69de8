//! EC2's errors and their classes, in one table.

use std::error::Error;
use std::fmt;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use provider_core::{ErrorClass, Refusal, stable_message};

/// An error of EC2, with its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ec2Error {
    /// The API operation, for example `RunInstances`.
    pub operation: &'static str,
    /// EC2's code. If there was no readable answer: `Timeout`, `Dispatch` or `Response`.
    pub code: String,
    /// EC2's message, without the parts that change from call to call.
    pub message: String,
    /// The class of the error.
    pub class: ErrorClass,
}

impl Ec2Error {
    /// The error of an SDK call.
    ///
    /// EC2's errors are not modelled in its API description: they arrive as
    /// `Unhandled`, with their code in the metadata.
    pub fn of<E, R>(operation: &'static str, error: &SdkError<E, R>) -> Self
    where
        E: ProvideErrorMetadata,
    {
        let Some(service) = error.as_service_error() else {
            return Self::unanswered(operation, error);
        };
        let meta = service.meta();
        let code = meta.code().unwrap_or("Response").to_owned();
        let message = stable_message(meta.message().unwrap_or_default());
        Self {
            operation,
            class: ErrorClass::of_error(&code, &message),
            code,
            message,
        }
    }

    /// The error for an answer that lacks a field that EC2 promises.
    pub(crate) fn malformed(operation: &'static str, what: &str) -> Self {
        Self {
            operation,
            code: "Response".into(),
            message: format!("the answer has no {what}"),
            class: ErrorClass::Transient,
        }
    }

    /// Whether EC2 refused to take a rule away because the rule is gone.
    pub fn is_rule_gone(&self) -> bool {
        matches!(
            self.code.as_str(),
            "InvalidPermission.NotFound" | "InvalidSecurityGroupRuleId.NotFound"
        )
    }

    /// Whether EC2 says that the resource does not exist. Right after the resource's creation,
    /// eventual consistency may be the cause.
    pub fn is_not_found(&self) -> bool {
        self.code.ends_with(".NotFound")
    }

    /// Whether EC2 may answer differently for fewer instances. EC2 says of a young instance that it
    /// does not exist, although a describe showed it ("Eventual consistency in the Amazon EC2 API").
    pub fn may_concern_some(&self) -> bool {
        let is_of_state = self.is_not_found() || self.code == "IncorrectInstanceState";
        is_of_state || !matches!(self.class, ErrorClass::Throttled | ErrorClass::Transient)
    }

    /// Whether the call may have failed because a zone of the region is down: EC2 answered, and
    /// neither the caller nor the number of calls was the reason.
    pub fn may_be_of_a_zone(&self) -> bool {
        let is_answer = !matches!(self.code.as_str(), "Timeout" | "Dispatch" | "Response");
        is_answer && self.class == ErrorClass::Transient
    }

    /// Whether the resource or rule exists already.
    pub fn is_duplicate(&self) -> bool {
        self.code.ends_with(".Duplicate")
    }

    /// Whether a launch template with the name exists already.
    pub fn is_template_taken(&self) -> bool {
        self.code == "InvalidLaunchTemplateName.AlreadyExistsException"
    }

    /// The error for a launch template that exists without the pool's tags. EC2 may show the tags
    /// only later, so the launch is tried again.
    #[must_use]
    pub fn of_template(self, name: &str) -> Self {
        Self {
            message: format!(
                "launch template {name} exists, and EC2 does not show it with the pool's tags yet; if \
                 that lasts, somebody else made it: delete it"
            ),
            ..self.for_now()
        }
    }

    /// See [`Refusal::is_group_missing`].
    pub fn is_group_missing(&self) -> bool {
        self.refusal().is_group_missing()
    }

    /// The same error, after which the call is made again soon.
    #[must_use]
    pub fn for_now(self) -> Self {
        Self {
            class: ErrorClass::Transient,
            ..self
        }
    }

    /// Whether the token was used with other parameters before. The launch happened with those
    /// parameters.
    pub fn is_token_mismatch(&self) -> bool {
        self.code == "IdempotentParameterMismatch"
    }

    /// Whether EC2 says that it has deleted the resource of this token (aws-ebs-csi-driver#3010,
    /// crossplane-contrib/provider-aws#1858). It creates none for the token any more.
    pub fn is_token_of_deleted(&self) -> bool {
        self.is_token_mismatch() && self.message.contains("already deleted")
    }

    /// Whether EC2 says that the instances of this token have ended. It starts none for the token
    /// any more.
    pub fn is_token_over(&self) -> bool {
        self.code == "IdempotentInstanceTerminated"
    }

    /// Whether the launch template of a request does not exist.
    pub fn is_template_missing(&self) -> bool {
        self.code.starts_with("InvalidLaunchTemplateName.NotFound")
            || self.code.starts_with("InvalidLaunchTemplateId.NotFound")
    }

    /// Whether another resource still uses this one.
    pub fn is_dependency_violation(&self) -> bool {
        self.code == "DependencyViolation"
    }

    /// The refusal, for the cache of unavailable offerings.
    pub fn refusal(&self) -> Refusal {
        Refusal {
            class: self.class,
            code: self.code.clone(),
            message: self.message.clone(),
        }
    }

    /// Adds the subject of the call to the message: AWS's message does not always name it.
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.message = match self.message.as_str() {
            "" => what.to_owned(),
            message => format!("{what}: {message}"),
        };
        self
    }

    fn unanswered<E, R>(operation: &'static str, error: &SdkError<E, R>) -> Self {
        if let Some(cause) = credentials_error(error) {
            return Self::unsigned(operation, cause);
        }
        let (code, message) = match error {
            SdkError::TimeoutError(_) => ("Timeout", "AWS did not answer in time".to_owned()),
            SdkError::ConstructionFailure(_) => {
                ("Request", "the request could not be built".to_owned())
            }
            SdkError::DispatchFailure(failure) if failure.is_timeout() => {
                ("Timeout", "AWS did not answer in time".to_owned())
            }
            SdkError::DispatchFailure(_) => (
                "Dispatch",
                "AWS could not be reached; check the endpoint and the network".to_owned(),
            ),
            _ => ("Response", "AWS's answer could not be read".to_owned()),
        };
        Self {
            operation,
            code: code.into(),
            message,
            class: ErrorClass::Transient,
        }
    }

    /// The error of a call that was never made, because there were no credentials to sign it with.
    /// If an exchange for credentials failed, that error is returned, because it says more.
    fn unsigned(operation: &'static str, cause: &CredentialsError) -> Self {
        let Some(exchange) = find::<Self>(cause) else {
            return Self {
                operation,
                code: "Credentials".into(),
                message: cause.to_string(),
                class: ErrorClass::Denied,
            };
        };
        let class = match exchange.class {
            ErrorClass::Throttled | ErrorClass::Transient => exchange.class,
            // No other error of the exchange is caused by the pool's spec.
            _ => ErrorClass::Denied,
        };
        Self {
            class,
            ..exchange.clone()
        }
    }
}

impl fmt::Display for Ec2Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.code)?;
        if self.message.is_empty() {
            Ok(())
        } else {
            write!(f, ": {}", self.message)
        }
    }
}

impl Error for Ec2Error {}

fn credentials_error<E, R>(error: &SdkError<E, R>) -> Option<&CredentialsError> {
    match error {
        SdkError::DispatchFailure(failure) => find(failure.as_connector_error()?),
        _ => None,
    }
}

/// The first error of type `T` among an error and its causes.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_error_is_not_a_capacity_error() {
        for code in ["MaxSpotInstanceCountExceeded", "VcpuLimitExceeded"] {
            assert_eq!(ErrorClass::of(code), ErrorClass::Quota);
        }
        assert_eq!(
            ErrorClass::of("InsufficientInstanceCapacity"),
            ErrorClass::Capacity
        );
    }

    #[test]
    fn an_unknown_code_is_repeated_with_the_same_token() {
        assert!(!ErrorClass::of("SomethingNew").is_definite());
        assert!(!ErrorClass::of("InternalError").is_definite());
        assert!(!ErrorClass::of("RequestLimitExceeded").is_definite());
    }
}
