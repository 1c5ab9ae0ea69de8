//! EC2's events, as EventBridge sends them to a queue.

use async_trait::async_trait;
use aws_sdk_sqs::types::DeleteMessageBatchRequestEntry;
use jiff::Timestamp;
use provider_core::{Notice, NoticeKind};
use serde::Deserialize;

use crate::Ec2Error;

/// Messages of one call; SQS gives no more.
const BATCH: i32 = 10;
/// How long SQS holds a call open, its longest. A message ends it at once.
const WAIT_SECONDS: i32 = 20;

/// A queue of EC2's events.
#[async_trait]
pub trait Events: Send + Sync {
    /// The next messages; none when there was none for a while.
    async fn receive(&self) -> Result<Vec<Message>, Ec2Error>;

    /// Takes messages out of the queue, those of one call of `receive`.
    async fn done(&self, receipts: Vec<String>) -> Result<(), Ec2Error>;
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// By which it is taken out of the queue.
    pub receipt: String,
    /// What it tells; nothing of interest, or nothing that can be read.
    pub event: Option<Event>,
}

/// What happens to an instance, of this control plane or of somebody else: AWS
/// cannot filter events by tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// EC2's id.
    pub instance_id: String,
    /// What is announced; nothing for a change of state.
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
        // A message that is not taken out comes again, and is taken out then.
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

/// Shapes from "Monitor Amazon EC2 events" of EC2's user guide.
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
    fn what_is_not_ec2_s_or_cannot_be_read_interrupts_nothing() {
        let warning = "EC2 Spot Instance Interruption Warning";
        assert_eq!(parse(&body("aws.health", warning)), None);
        assert_eq!(parse(&body("aws.ec2", "AWS API Call via CloudTrail")), None);
        for text in ["", "{}", "[]", r#"{"detail-type":1}"#] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
