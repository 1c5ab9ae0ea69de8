//! EC2's errors and what they mean: one table.

use std::error::Error;
use std::fmt;

use aws_credential_types::provider::error::CredentialsError;
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

    /// What the call was about, which AWS's message need not name.
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

    /// The call was never made, for there were no credentials to sign it with. What
    /// the exchange for them was answered says more than that.
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
            // Whatever else is wrong with it, it is no fault of the pool's spec.
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

/// EC2's words without what changes from call to call: a condition's message
/// must not flap. A denial carries an encoded message of its own each time.
pub(crate) fn stable(message: &str) -> String {
    let cut = [
        ("", "Encoded authorization failure message"),
        ("", "(Service:"),
        ("", "Request ID"),
        ("Token expired", ": current date/time"),
        ("Signature expired", ": "),
        ("Request has expired.", " "),
    ]
    .iter()
    .filter_map(|(kept, dropped)| {
        let at = message.find(&format!("{kept}{dropped}"))?;
        Some(at + kept.len())
    })
    .min()
    .unwrap_or(message.len());
    message[..cut].trim().to_owned()
}

fn credentials_error<E, R>(error: &SdkError<E, R>) -> Option<&CredentialsError> {
    match error {
        SdkError::DispatchFailure(failure) => find(failure.as_connector_error()?),
        _ => None,
    }
}

/// The first error of that type among an error and its causes.
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
        let said = "Token expired: current date/time 1795267200 must be before the \
                    expiration date/time 1795263600";
        assert_eq!(stable(said), "Token expired");
        let said = "Signature expired: 20261121T120000Z is now earlier than 20261121T121500Z";
        assert_eq!(stable(said), "Signature expired");
        let said = "Request has expired. Timestamp date is 2026-11-21T12:00:00Z.";
        assert_eq!(stable(said), "Request has expired.");
        assert_eq!(stable("No capacity."), "No capacity.");
    }
}
