//! The queue of EC2's events, in SQS's JSON protocol.

use std::time::Duration;

use serde_json::{Value, json};

use crate::account::Account;

/// The most messages that SQS gives in one answer.
const BATCH: usize = 10;

pub(super) async fn answer(account: &Account, operation: &str, body: &[u8]) -> String {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    account.lock().ledger.count(operation, 0, false);
    let answer = match operation {
        "ReceiveMessage" => receive(account, &request).await,
        "DeleteMessageBatch" => delete_batch(&request),
        // This queue removes a message when the provider receives it, so there is nothing to do for
        // other operations.
        _ => json!({}),
    };
    answer.to_string()
}

/// Long polling: returns as soon as there is a message, or without one after `WaitTimeSeconds`.
async fn receive(account: &Account, request: &Value) -> Value {
    let wait = request["WaitTimeSeconds"].as_u64().unwrap_or_default();
    let arrived = account.arrival(Duration::from_secs(wait));
    arrived.await;
    let mut state = account.lock();
    let count = state.queue.len().min(BATCH);
    let messages: Vec<Value> = state
        .queue
        .drain(..count)
        .map(|body| json!({"MessageId": "m", "ReceiptHandle": "r", "Body": body.to_string()}))
        .collect();
    json!({"Messages": messages})
}

fn delete_batch(request: &Value) -> Value {
    let entries = request["Entries"].as_array().cloned().unwrap_or_default();
    let done: Vec<Value> = entries.iter().map(|e| json!({"Id": e["Id"]})).collect();
    json!({"Successful": done, "Failed": []})
}
