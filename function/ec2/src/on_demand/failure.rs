//! Failed EC2 calls of upbound's provider, with the next step for the person who can mend them.

use function_workspace::cause::{Cause, Reason};
use function_workspace::provider_error::ProviderError;
use provider_core::{ErrorClass, Market, Offering};

/// A failed EC2 call, as read from a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(ProviderError);

impl Failure {
    /// Reads the message of a condition that upjet wrote.
    pub fn read(message: &str) -> Self {
        Self(ProviderError::read(message))
    }

    /// The error class; none if the provider did not reach EC2 or got no answer.
    pub fn class(&self) -> Option<ErrorClass> {
        let code = self.0.code.as_deref()?;
        Some(ErrorClass::of_error(code, &self.0.text))
    }

    /// Whether retries are useless until a person changes something.
    pub fn needs_person(&self) -> bool {
        self.class().is_some_and(ErrorClass::needs_person)
    }

    /// Whether the resource is gone from EC2 and upjet must not create it again. upjet reports this
    /// case with no reason of its own: the message compares the desired values with empty ones.
    pub fn is_of_missing_resource(&self) -> bool {
        self.0.text.contains("requires replacing it") && self.0.text.contains("from \"\" to ")
    }

    /// The cause with the next step. `what` names the resource that could not be created.
    pub fn cause(&self, what: &str, instance_type: Option<&str>) -> Cause {
        let reason = self.class().map_or(Reason::ReconcileError, |class| {
            Reason::Reported(class.as_str().to_owned())
        });
        let next = match (self.class(), instance_type) {
            (Some(ErrorClass::Quota), Some(type_)) if self.is_vcpu_limit() => quota(type_),
            (Some(ErrorClass::Capacity), _) => {
                "; it is tried again, or ask for another spec.parameters.instanceType".to_owned()
            }
            (Some(ErrorClass::Denied), _) => {
                "; check the permissions of the identity in onDemandProviderConfigRef of the \
                 Composition's policy"
                    .to_owned()
            }
            _ => String::new(),
        };
        Cause::new(reason, format!("{what}: {}{next}", self.0))
    }

    fn is_vcpu_limit(&self) -> bool {
        matches!(
            self.0.code.as_deref(),
            Some("VcpuLimitExceeded" | "InstanceLimitExceeded")
        )
    }
}

fn quota(instance_type: &str) -> String {
    let offering = Offering {
        instance_type: instance_type.to_owned(),
        zone: String::new(),
        market: Market::OnDemand,
    };
    format!("; {}", offering.vcpus_to_raise())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: &str = "create failed: async create failed: failed to create the resource: \
        [{0 creating EC2 Instance: operation error EC2: RunInstances, https response error \
        StatusCode: 400, RequestID: 5c1f0d63-5c53-4b6a-9d1b-0d1b6ef0a7c5, api error \
        VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit \
        of 0 allows. []}]";

    #[test]
    fn a_reached_quota_names_the_code_to_raise() {
        let cause = Failure::read(LIMIT).cause("an on-demand g5.xlarge", Some("g5.xlarge"));
        assert_eq!(cause.reason.as_str(), "Quota");
        assert_eq!(
            cause.message,
            "an on-demand g5.xlarge: VcpuLimitExceeded: You have requested more vCPU capacity \
             than your current vCPU limit of 0 allows.; raise the quota L-DB2E81BA (Running \
             On-Demand G and VT instances) in this region"
        );
        assert!(Failure::read(LIMIT).needs_person());
    }

    #[test]
    fn a_denial_needs_a_person() {
        let failure = Failure::read("api error UnauthorizedOperation: no");
        assert_eq!(failure.class(), Some(ErrorClass::Denied));
    }

    #[test]
    fn an_error_without_a_code_is_told_as_it_is() {
        let failure = Failure::read("cannot get ClusterProviderConfig \"default\"");
        assert_eq!(failure.class(), None);
        let cause = failure.cause("the home volume", None);
        assert_eq!(cause.reason, Reason::ReconcileError);
        assert_eq!(
            cause.message,
            "the home volume: cannot get ClusterProviderConfig \"default\""
        );
    }
}
