//! Why a step of a reconcile failed.

use std::time::Duration;

use provider_runtime::connection::ConnectionError;
use provider_runtime::policies;

use crate::access::{ConnectError, Origin};
use crate::seals::Unproven;

/// The time before the next reconcile after an error that a person or AWS has to correct.
pub(crate) const AFTER_ERROR: Duration = Duration::from_secs(20);

/// Why a step failed. It becomes `Synced=False`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Identify(#[from] Unproven),
    #[error(transparent)]
    Observe(provider_aws::Ec2Error),
    #[error(transparent)]
    Policies(#[from] policies::Unsupported),
    #[error(transparent)]
    Publish(#[from] ConnectionError),
}

impl StepError {
    /// The error, with a next step if AWS refused the credentials.
    pub(crate) fn explain(&self, origin: &Origin) -> String {
        match self {
            Self::Observe(error) => origin.explain(error),
            other => other.to_string(),
        }
    }

    /// The name of the step, with crossplane-runtime's prefix.
    pub(crate) fn step(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::Identify(_) => "identify",
            Self::Observe(_) => "observe",
            Self::Policies(_) => "update",
            Self::Publish(_) => "publish",
        }
    }
}
