//! EC2's events, which EventBridge sends to a queue.

use async_trait::async_trait;
use aws_sdk_sqs::types::DeleteMessageBatchRequestEntry;
use jiff::Timestamp;
use provider_core::{Notice, NoticeKind};
use serde::Deserialize;

use crate::Ec2Error;

/// The number of messages in one call, which is SQS's maximum.
const BATCH: i32 = 10;
/// How long SQS holds a call open, which is SQS's maximum. A message ends the call at once.
const WAIT_SECONDS: i32 = 20;

/// A queue of EC2's events.
#[async_trait]
pub trait Events: Send + Sync {
    /// The next messages. The list is empty if no message came for a while.
    async fn receive(&self) -> Result<Vec<Message>, Ec2Error>;

    /// Deletes messages of one call of `receive` from the queue.
    async fn done(&self, receipts: Vec<String>) -> Result<(), Ec2Error>;
}

/// One message of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The receipt that deletes the message from the queue.
    pub receipt: String,
    /// The event in the message. `None` if the provider does not need it or cannot read it.
    pub event: Option<Event>,
}

/// An event of an instance. The instance may belong to others: AWS cannot filter events by tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// EC2's id.
    pub instance_id: String,
    /// The announcement. `None` for a change of state.
    pub notice: Option<Notice>,
}

/// The queue through aws-sdk-sqs.
#[derive(Clone, Debug)]
pub struct SqsEvents {
    pub(crate) client: aws_sdk_sqs::Client,
    pub(crate) url: String,
}

#[async_trait]
impl Events for SqsEvents {
    async fn receive(&self) -> Result<Vec<Message>, Ec2Error> {
        let answer = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(BATCH)
            .wait_time_seconds(WAIT_SECONDS)
            .send()
            .await
            .map_err(|e| Ec2Error::of("ReceiveMessage", &e))?;
        let messages = answer.messages.unwrap_or_default().into_iter();
        Ok(messages
            .filter_map(|message| {
                Some(Message {
                    receipt: message.receipt_handle?,
                    event: message.body.as_deref().and_then(parse),
                })
            })
            .collect())
    }

    async fn done(&self, receipts: Vec<String>) -> Result<(), Ec2Error> {
        if receipts.is_empty() {
            return Ok(());
        }
        let entries = receipts.into_iter().enumerate();
        let entries = entries.map(|(number, receipt)| {
            DeleteMessageBatchRequestEntry::builder()
                .id(number.to_string())
                .receipt_handle(receipt)
                .build()
                .map_err(|_| Ec2Error::malformed("ReceiveMessage", "receipt"))
        });
        // A message whose deletion failed comes again, and is deleted then.
        self.client
            .delete_message_batch()
            .queue_url(&self.url)
            .set_entries(Some(entries.collect::<Result<_, _>>()?))
            .send()
            .await
            .map_err(|e| Ec2Error::of("DeleteMessageBatch", &e))?;
        Ok(())
    }
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "detail-type")]
    kind: String,
    source: String,
    time: Timestamp,
    detail: Detail,
}

#[derive(Deserialize)]
struct Detail {
    #[serde(rename = "instance-id")]
    instance_id: String,
}

/// The shapes come from "Monitor Amazon EC2 events" in EC2's user guide.
fn parse(body: &str) -> Option<Event> {
    let envelope: Envelope = serde_json::from_str(body).ok()?;
    let announced = |kind| {
        let at = envelope.time;
        Some(Notice { kind, at })
    };
    let notice = match (envelope.source.as_str(), envelope.kind.as_str()) {
        ("aws.ec2", "EC2 Spot Instance Interruption Warning") => {
            announced(NoticeKind::Interruption)
        }
        ("aws.ec2", "EC2 Instance Rebalance Recommendation") => announced(NoticeKind::Rebalance),
        ("aws.ec2", "EC2 Instance State-change Notification") => None,
        _ => return None,
    };
    Some(Event {
        instance_id: envelope.detail.instance_id,
        notice,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(source: &str, kind: &str) -> String {
        format!(
            r#"{{"version":"0","id":"1","detail-type":"{kind}","source":"{source}",
               "account":"123456789012","time":"2026-11-21T10:00:00Z","region":"us-east-1",
               "resources":[],"detail":{{"instance-id":"i-1","instance-action":"terminate"}}}}"#
        )
    }

    #[test]
    fn a_warning_and_a_recommendation_are_told_apart_and_keep_their_time() {
        for (kind, expected) in [
            (
                "EC2 Spot Instance Interruption Warning",
                NoticeKind::Interruption,
            ),
            (
                "EC2 Instance Rebalance Recommendation",
                NoticeKind::Rebalance,
            ),
        ] {
            let event = parse(&body("aws.ec2", kind)).unwrap();
            assert_eq!(event.instance_id, "i-1");
            let notice = event.notice.unwrap();
            assert_eq!(
                (notice.kind, notice.at.as_second()),
                (expected, 1_795_255_200)
            );
        }
        let change = parse(&body("aws.ec2", "EC2 Instance State-change Notification"));
        assert_eq!(change.unwrap().notice, None);
    }

    #[test]
    fn messages_that_are_not_from_ec2_or_not_readable_are_ignored() {
        let warning = "EC2 Spot Instance Interruption Warning";
        assert_eq!(parse(&body("aws.health", warning)), None);
        assert_eq!(parse(&body("aws.ec2", "AWS API Call via CloudTrail")), None);
        for text in ["", "{}", "[]", r#"{"detail-type":1}"#] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
