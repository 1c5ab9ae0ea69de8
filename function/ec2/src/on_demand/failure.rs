//! Reads upjet's reports of failed EC2 calls, and reduces them to text that stays the same for each
//! attempt.
//!
//! AWS's SDK for Go writes `operation error EC2: RunInstances, https response error StatusCode:
//! 400, RequestID: …, api error CODE: TEXT`. Each attempt has another request id, so a condition
//! with the whole text would change with every attempt.

use function_workspace::cause::{Cause, Reason};
use provider_core::{ErrorClass, Market, Offering};

/// A failed EC2 call, as read from a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// EC2's error code; none if the message has no code.
    pub code: Option<String>,
    /// The text of the message, without parts that change with each attempt.
    pub text: String,
}

impl Failure {
    /// Reads the message of a condition that upjet wrote.
    pub fn read(message: &str) -> Self {
        match message.rsplit_once("api error ") {
            Some((_, error)) => {
                let (code, text) = error.split_once(": ").unwrap_or((error, ""));
                Self {
                    code: Some(code.trim().to_owned()),
                    text: stable(text),
                }
            }
            None => Self {
                code: None,
                text: stable(message),
            },
        }
    }

    /// The error class; none if the provider did not reach EC2 or got no answer.
    pub fn class(&self) -> Option<ErrorClass> {
        self.code.as_deref().map(ErrorClass::of)
    }

    /// Whether retries are useless until a person changes something.
    pub fn needs_person(&self) -> bool {
        self.class().is_some_and(ErrorClass::needs_person)
    }

    /// Whether the resource is gone from EC2 and upjet must not create it again. upjet reports this
    /// case with no reason of its own: the message compares the desired values with empty ones.
    pub fn is_of_missing_resource(&self) -> bool {
        self.text.contains("requires replacing it") && self.text.contains("from \"\" to ")
    }

    /// The cause with the next step. `what` names the resource that could not be created.
    pub fn cause(&self, what: &str, instance_type: Option<&str>) -> Cause {
        let said = match (&self.code, self.text.as_str()) {
            (Some(code), "") => code.clone(),
            (Some(code), text) => format!("{code}: {text}"),
            (None, text) => text.to_owned(),
        };
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
        Cause::new(reason, format!("{what}: {said}{next}"))
    }

    fn is_vcpu_limit(&self) -> bool {
        matches!(
            self.code.as_deref(),
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
    let (market, family) = offering.quota();
    let (name, code) = family.limit(market);
    format!("; raise the quota {code} ({name}) in this region")
}

/// The text without parts that change with each attempt, and without the end of terraform's list of
/// diagnostics.
fn stable(text: &str) -> String {
    let mut text = text;
    for end in ["Encoded authorization failure message", " []}", "\n"] {
        text = text.split(end).next().unwrap_or_default();
    }
    let mut kept = String::with_capacity(text.len());
    while let Some((before, after)) = text.split_once("RequestID: ") {
        kept.push_str(before);
        let id = after.find(|c: char| !(c.is_ascii_hexdigit() || c == '-'));
        text = after[id.unwrap_or(after.len())..].trim_start_matches([',', ' ']);
    }
    kept.push_str(text);
    kept.trim().to_owned()
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
    fn a_message_does_not_change_with_the_request_id() {
        let other = LIMIT.replace("5c1f0d63", "00000000");
        assert_eq!(Failure::read(&other), Failure::read(LIMIT));
        let unanswered = |id: &str| {
            Failure::read(&format!(
                "observe failed: https response error StatusCode: 503, RequestID: {id}, deserialization failed"
            ))
        };
        assert_eq!(unanswered("1-a"), unanswered("2-b"));
        assert_eq!(
            unanswered("1-a").text,
            "observe failed: https response error StatusCode: 503, deserialization failed"
        );
    }

    #[test]
    fn a_denial_reads_the_same_every_time() {
        let message = "create failed: operation error EC2: RunInstances, https response error \
            StatusCode: 403, RequestID: 1, api error UnauthorizedOperation: You are not \
            authorized to perform this operation. Encoded authorization failure message: 4wTX";
        let failure = Failure::read(message);
        assert_eq!(
            failure.text,
            "You are not authorized to perform this operation."
        );
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
