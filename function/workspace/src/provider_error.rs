//! Reads a provider's reports of failed calls, and reduces them to text that stays the same for each
//! attempt.
//!
//! AWS's SDK for Go writes `operation error EC2: RunInstances, https response error StatusCode:
//! 400, RequestID: …, api error CODE: TEXT`. Each attempt has another request id, so a condition
//! with the whole text would change with every attempt.

use std::fmt;

/// A failed call of a provider to AWS, as read from a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderError {
    /// The operation of EC2 that failed, such as `RunInstances`; none if the message names none.
    pub operation: Option<String>,
    /// The service's error code; none if the message has no code.
    pub code: Option<String>,
    /// The text of the message, without parts that change with each attempt.
    pub text: String,
}

impl ProviderError {
    /// Reads the message of a condition. An instance that EC2 ended while it launched it has no
    /// error of an API: terraform's waiter reports EC2's state reason (hashicorp/terraform#5909).
    pub fn read(message: &str) -> Self {
        let of_api = message.rsplit_once("api error ").map(|(_, error)| error);
        let of_state = || {
            let (_, reason) = message.rsplit_once("last error: ")?;
            let is_reason = reason.starts_with("Client.") || reason.starts_with("Server.");
            is_reason.then_some(reason)
        };
        let operation = operation(message).map(str::to_owned);
        match of_api.or_else(of_state) {
            Some(error) => {
                let (code, text) = error.split_once(": ").unwrap_or((error, ""));
                Self {
                    operation,
                    code: Some(code.trim().to_owned()),
                    text: stable(text),
                }
            }
            None => Self {
                operation,
                code: None,
                text: stable(message),
            },
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.code, self.text.as_str()) {
            (Some(code), "") => f.write_str(code),
            (Some(code), text) => write!(f, "{code}: {text}"),
            (None, text) => f.write_str(text),
        }
    }
}

fn operation(message: &str) -> Option<&str> {
    let (_, rest) = message.rsplit_once("operation error EC2: ")?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
    Some(&rest[..end.unwrap_or(rest.len())]).filter(|name| !name.is_empty())
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
    fn a_message_does_not_change_with_the_request_id() {
        let other = LIMIT.replace("5c1f0d63", "00000000");
        assert_eq!(ProviderError::read(&other), ProviderError::read(LIMIT));
        let unanswered = |id: &str| {
            ProviderError::read(&format!(
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
    fn an_instance_that_dies_at_birth_has_ec2s_own_cause() {
        let message = "create failed: waiting for EC2 Instance (i-1) create: unexpected state \
            'terminated', wanted target 'running'. last error: Client.VolumeLimitExceeded: Volume \
            limit exceeded";
        let failure = ProviderError::read(message);
        assert_eq!(failure.code.as_deref(), Some("Client.VolumeLimitExceeded"));
        assert_eq!(failure.text, "Volume limit exceeded");
    }

    #[test]
    fn a_denial_reads_the_same_every_time() {
        let message = "create failed: operation error EC2: RunInstances, https response error \
            StatusCode: 403, RequestID: 1, api error UnauthorizedOperation: You are not \
            authorized to perform this operation. Encoded authorization failure message: 4wTX";
        let failure = ProviderError::read(message);
        assert_eq!(
            failure.text,
            "You are not authorized to perform this operation."
        );
        assert_eq!(failure.code.as_deref(), Some("UnauthorizedOperation"));
        assert_eq!(failure.operation.as_deref(), Some("RunInstances"));
    }
}
