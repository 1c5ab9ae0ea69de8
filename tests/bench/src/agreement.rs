//! Checks that the programs do the same work: each gives the same answer to the same request.

use bytes::Bytes;
use function_sdk_rust::proto::v1::{RunFunctionRequest, RunFunctionResponse};
use prost::Message as _;
use serde_json::Value;

use crate::Outcome;

/// The first line of a user data document.
const CLOUD_CONFIG: &str = "#cloud-config\n";
/// The most differences that an error message shows.
const SHOWN: usize = 8;

/// Checks that every field of an answer is the same as in this function's own answer.
pub(crate) fn check(name: &str, answer: &Bytes, own: &Bytes) -> Outcome<()> {
    let (answer, own) = (comparable(answer)?, comparable(own)?);
    let differences = json_patch::diff(&own, &answer);
    if differences.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = differences
        .iter()
        .take(SHOWN)
        .map(|difference| format!("  {difference}"))
        .collect();
    let count = differences.len();
    Err(format!(
        "{name} answers differently in {count} places, so that its figures prove nothing:\n{}",
        shown.join("\n")
    )
    .into())
}

/// Checks that an answer has the same bytes as this function's own answer.
pub(crate) fn check_recorded(answer: &Bytes, own: Option<&Bytes>) -> Outcome<()> {
    if Some(answer) == own {
        return Ok(());
    }
    Err("the bare transport does not answer what this function answers".into())
}

/// Checks that an answer has the tag and the desired state of the request.
pub(crate) fn check_echo(answer: &Bytes, request: &RunFunctionRequest) -> Outcome<()> {
    let answer = RunFunctionResponse::decode(answer.clone())?;
    let tag = request.meta.as_ref().map(|meta| &meta.tag);
    if answer.meta.as_ref().map(|meta| &meta.tag) == tag && answer.desired == request.desired {
        return Ok(());
    }
    Err("the empty function does not echo the request".into())
}

/// A response without differences that have no meaning: the order of maps, an empty context instead
/// of none, and the layout that a serializer gives to user data.
fn comparable(answer: &Bytes) -> Outcome<Value> {
    let mut response = RunFunctionResponse::decode(answer.clone())?;
    response.context = response
        .context
        .filter(|context| !context.fields.is_empty());
    let mut response = serde_json::to_value(response)?;
    parse_user_data(&mut response)?;
    Ok(response)
}

fn parse_user_data(value: &mut Value) -> Outcome<()> {
    match value {
        Value::Object(fields) => fields.values_mut().try_for_each(parse_user_data),
        Value::Array(items) => items.iter_mut().try_for_each(parse_user_data),
        Value::String(text) => {
            if let Some(document) = text.strip_prefix(CLOUD_CONFIG) {
                *value = serde_yaml::from_str(document)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(user_data: &str, ready: &str) -> Bytes {
        let response: RunFunctionResponse = serde_json::from_value(json!({
            "desired": {"resources": {"instance": {
                "ready": ready,
                "resource": {"spec": {"forProvider": {"userData": user_data}}}
            }}}
        }))
        .unwrap();
        Bytes::from(response.encode_to_vec())
    }

    #[test]
    fn layout_of_user_data_is_no_difference_and_everything_else_is_one() {
        let own = answer("#cloud-config\nusers: [{name: a}]\n", "READY_TRUE");
        let same = answer("#cloud-config\nusers:\n- name: a\n", "READY_TRUE");
        check("go", &same, &own).unwrap();

        let user = answer("#cloud-config\nusers: [{name: b}]\n", "READY_TRUE");
        let message = check("go", &user, &own).unwrap_err().to_string();
        assert!(message.contains("userData/users/0/name"), "{message}");
        let unready = answer("#cloud-config\nusers: [{name: a}]\n", "READY_FALSE");
        check("go", &unready, &own).unwrap_err();
    }

    #[test]
    fn a_function_that_drops_what_others_desire_is_no_echo() {
        let request = |resources: Value| -> RunFunctionRequest {
            serde_json::from_value(json!({
                "meta": {"tag": "a"},
                "desired": {"resources": resources}
            }))
            .unwrap()
        };
        let echo = |request: &RunFunctionRequest| {
            let response = function_sdk_rust::response::to(request, std::time::Duration::ZERO);
            Bytes::from(response.encode_to_vec())
        };
        let full = request(json!({"other": {"ready": "READY_TRUE"}}));
        check_echo(&echo(&full), &full).unwrap();
        check_echo(&echo(&request(json!({}))), &full).unwrap_err();
    }
}
