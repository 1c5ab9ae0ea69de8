//! EC2's errors and what they mean: one table.

use std::fmt;

use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use provider_core::{ErrorClass, Refusal};

/// An error of EC2, classified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ec2Error {
    /// The API operation, for example `RunInstances`.
    pub operation: &'static str,
    /// EC2's code; `Timeout`, `Dispatch` or `Response` when there was no answer
    /// that could be read.
    pub code: String,
    /// What EC2 said, without what changes from call to call.
    pub message: String,
    /// What it means.
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
        let message = stable(meta.message().unwrap_or_default());
        Self {
            operation,
            class: ErrorClass::of(&code),
            code,
            message,
        }
    }

    /// An answer that lacks what EC2 promises.
    pub(crate) fn malformed(operation: &'static str, what: &str) -> Self {
        Self {
            operation,
            code: "Response".into(),
            message: format!("the answer has no {what}"),
            class: ErrorClass::Transient,
        }
    }

    /// Whether EC2 says that the resource does not exist. Right after its
    /// creation that may be eventual consistency.
    pub fn is_not_found(&self) -> bool {
        self.code.ends_with(".NotFound")
    }

    /// Whether the resource or rule exists already.
    pub fn is_duplicate(&self) -> bool {
        self.code.ends_with(".Duplicate")
    }

    /// Whether the token was used with other parameters: the launch happened,
    /// as it was asked for then.
    pub fn is_token_mismatch(&self) -> bool {
        self.code == "IdempotentParameterMismatch"
    }

    /// Whether the launch template of a request does not exist.
    pub fn is_template_missing(&self) -> bool {
        self.code.starts_with("InvalidLaunchTemplateName.NotFound")
            || self.code.starts_with("InvalidLaunchTemplateId.NotFound")
    }

    /// Whether something still uses the resource.
    pub fn is_dependency_violation(&self) -> bool {
        self.code == "DependencyViolation"
    }

    /// The refusal, for an offering's memory.
    pub fn refusal(&self) -> Refusal {
        Refusal {
            class: self.class,
            code: self.code.clone(),
            message: self.message.clone(),
        }
    }

    fn unanswered<E, R>(operation: &'static str, error: &SdkError<E, R>) -> Self {
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
        let class = if is_credentials(error) {
            ErrorClass::Denied
        } else {
            ErrorClass::Transient
        };
        Self {
            operation,
            code: code.into(),
            message,
            class,
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

impl std::error::Error for Ec2Error {}

/// EC2's words without what changes from call to call: a condition's message
/// must not flap. A denial carries an encoded message of its own each time.
pub(crate) fn stable(message: &str) -> String {
    let cut = [
        "Encoded authorization failure message",
        "(Service:",
        "Request ID",
    ]
    .iter()
    .filter_map(|marker| message.find(marker))
    .min()
    .unwrap_or(message.len());
    message[..cut].trim().to_owned()
}

fn is_credentials<E, R>(error: &SdkError<E, R>) -> bool {
    let mut source: Option<&dyn std::error::Error> = match error {
        SdkError::DispatchFailure(failure) => failure
            .as_connector_error()
            .map(|e| e as &dyn std::error::Error),
        _ => None,
    };
    while let Some(cause) = source {
        if cause
            .downcast_ref::<aws_credential_types::provider::error::CredentialsError>()
            .is_some()
        {
            return true;
        }
        source = cause.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_error_is_not_taken_for_bad_luck() {
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

    #[test]
    fn a_denial_reads_the_same_every_time() {
        let said = "You are not authorized to perform this operation. \
                    Encoded authorization failure message: 4wTX…";
        assert_eq!(
            stable(said),
            "You are not authorized to perform this operation."
        );
        assert_eq!(stable("No capacity."), "No capacity.");
    }
}
