//! Failed EC2 calls of upbound's provider, with the next step for the person who can mend them.

use function_workspace::cause::{Cause, Reason};
use function_workspace::provider_error::ProviderError;
use provider_core::{ErrorClass, Market, Offering, Refusal, stable_message};

/// A failed EC2 call, as read from a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(ProviderError);

impl Failure {
    /// Reads the message of a condition that upjet wrote. EC2's own text may change with each attempt.
    pub fn read(message: &str) -> Self {
        let read = ProviderError::read(message);
        Self(ProviderError {
            text: stable_message(&read.text),
            ..read
        })
    }

    /// The error class; none if the provider did not reach EC2 or got no answer.
    pub fn class(&self) -> Option<ErrorClass> {
        self.refusal().map(|refusal| refusal.class)
    }

    /// EC2's refusal; none without a code of EC2's.
    fn refusal(&self) -> Option<Refusal> {
        let code = self.0.code.as_deref()?;
        Some(Refusal::of(code, &self.0.text))
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

    /// Whether EC2 has the rule already that upjet was to create. Such a rule of a workspace's own
    /// group is the workspace's.
    pub fn is_of_duplicate_rule(&self) -> bool {
        self.0.code.as_deref() == Some("InvalidPermission.Duplicate")
    }

    /// Whether EC2 has a security group of this name already.
    pub fn is_of_duplicate_group(&self, name: &str) -> bool {
        // EC2's text is "The security group 'NAME' already exists for VPC 'ID'".
        self.0.code.as_deref() == Some("InvalidGroup.Duplicate")
            && self.0.text.contains(&format!("'{name}'"))
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
            (Some(ErrorClass::Denied), _) => self.permission(),
            (Some(ErrorClass::Configuration), _) if self.may_be_of_volume_key() => {
                "; the account's key for volumes may not permit this: see docs/install.md"
                    .to_owned()
            }
            _ => String::new(),
        };
        Cause::new(reason, format!("{what}: {}{next}", self.0))
    }

    fn permission(&self) -> String {
        let identity = "the identity in onDemandProviderConfigRef of the Composition's policy";
        match &self.0.operation {
            Some(operation) => format!("; allow ec2:{operation} to {identity}"),
            None => format!("; check the permissions of {identity}"),
        }
    }

    fn may_be_of_volume_key(&self) -> bool {
        self.refusal()
            .is_some_and(|refusal| refusal.may_be_of_volume_key())
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
    fn a_duplicate_group_is_known_by_its_whole_name() {
        let failure = Failure::read(
            "create failed: failed to create the resource: [{0 creating Security Group (a#2): \
             operation error EC2: CreateSecurityGroup, https response error StatusCode: 400, \
             RequestID: 5c1f0d63-5c53-4b6a-9d1b-0d1b6ef0a7c5, api error InvalidGroup.Duplicate: The \
             security group 'a#2' already exists for VPC 'vpc-1'  []}]",
        );
        assert!(failure.is_of_duplicate_group("a#2"));
        assert!(!failure.is_of_duplicate_group("a"));
        let other = Failure::read("api error InvalidPermission.Duplicate: the rule 'a#2'");
        assert!(!other.is_of_duplicate_group("a#2"));
    }

    #[test]
    fn a_denial_needs_a_person() {
        let failure = Failure::read("api error UnauthorizedOperation: no");
        assert_eq!(failure.class(), Some(ErrorClass::Denied));
    }

    #[test]
    fn a_lack_of_capacity_says_that_the_provider_tries_again() {
        let failure = Failure::read("api error InsufficientInstanceCapacity: none here");
        assert!(!failure.needs_person());
        let cause = failure.cause("an on-demand g5.xlarge", Some("g5.xlarge"));
        assert_eq!(cause.reason.as_str(), "Capacity");
        assert!(
            cause.message.contains("is tried again") && cause.message.contains("instanceType"),
            "{}",
            cause.message
        );
    }

    #[test]
    fn a_lack_of_capacity_reads_the_same_whichever_zones_have_some() {
        let read = |others: &str| {
            Failure::read(&format!(
                "api error InsufficientInstanceCapacity: We currently do not have sufficient \
                 g5.xlarge capacity in the Availability Zone you requested (us-east-1d). You can \
                 currently get g5.xlarge capacity by choosing {others}."
            ))
        };
        assert_eq!(read("us-east-1a"), read("us-east-1b, us-east-1c"));
    }

    #[test]
    fn a_denial_reads_the_same_for_each_session() {
        let read = |session: &str| {
            Failure::read(&format!(
                "api error UnauthorizedOperation: User: \
                 arn:aws:sts::111122223333:assumed-role/upbound/{session} is not authorized to \
                 perform: ec2:RunInstances"
            ))
        };
        assert_eq!(read("1795267200"), read("1795270800"));
    }

    #[test]
    fn an_instance_that_dies_at_birth_points_to_the_key() {
        let failure = Failure::read(
            "create failed: waiting for EC2 Instance (i-1) create: unexpected state 'terminated', \
             wanted target 'running'. last error: Client.InternalError: Client error on launch",
        );
        let cause = failure.cause("an on-demand g5.xlarge", Some("g5.xlarge"));
        assert_eq!(cause.reason.as_str(), "Configuration");
        assert!(
            cause.message.ends_with("see docs/install.md"),
            "{}",
            cause.message
        );
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
