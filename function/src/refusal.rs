//! Why a workspace cannot be rendered: a person has to change something.

use thiserror::Error;

use crate::schema::Violations;

/// A fatal result. Crossplane applies nothing of the pipeline, so nothing is
/// dropped either.
#[derive(Clone, Debug, Error)]
pub enum Refusal {
    /// The Composition's input is no usable policy.
    #[error("the Composition's policy is not usable: {0}")]
    Policy(Violations),
    /// The request carries no composite.
    #[error("the request has no observed composite resource")]
    NoComposite,
    /// Neither a claim nor the XR itself says where to compose.
    #[error(
        "metadata.namespace: {kind} {name} has no namespace to compose into; create a \
         GpuDevWorkspaceClaim in a namespace instead of the {kind} itself"
    )]
    NoNamespace {
        /// The XR's kind.
        kind: String,
        /// The XR's name.
        name: String,
    },
    /// The claim asks for something that is malformed or not allowed.
    #[error("{0}")]
    Parameters(Violations),
    /// User data would exceed what EC2 takes.
    #[error(
        "spec.parameters.ssh.publicKeys: with the owner's keys of the catalogue they make user \
         data larger than EC2's {limit} bytes; remove some, or use shorter ones such as ssh-ed25519"
    )]
    UserDataTooLarge {
        /// EC2's limit.
        limit: usize,
    },
    /// A value could not be written as JSON or YAML.
    #[error(
        "cannot write {what}: {problem}; please report this as a bug of function-gpu-workspace"
    )]
    Unwritable {
        /// What was to be written.
        what: &'static str,
        /// The serializer's message.
        problem: String,
    },
}

impl Refusal {
    /// The condition's reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Policy(_) => "PolicyInvalid",
            Self::NoComposite | Self::NoNamespace { .. } => "CompositeInvalid",
            Self::Parameters(_) | Self::UserDataTooLarge { .. } => "ParametersInvalid",
            Self::Unwritable { .. } => "Unwritable",
        }
    }
}
