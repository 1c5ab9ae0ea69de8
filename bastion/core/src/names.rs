//! The accounts of sshd: every name is one.
//!
//! OpenSSH asks for the keys of accounts that exist, and for no others. The question takes longer than the
//! least time that a refusal takes, so a stranger could tell by a clock which names people have. With an account
//! for every name, sshd asks the broker about every name. Only the broker's answer lets a person in.
//!
//! The system's name service asks by Varlink (systemd, "User/Group Record Lookup API via Varlink"): a message
//! is JSON and a zero byte.

use serde::Deserialize;
use serde_json::{Value, json};

/// The name of the socket, which is the name of the service in its answers.
pub const SERVICE: &str = "gpu.bastion";
/// The longest question in bytes. sshd takes no name that is nearly as long.
pub const LONGEST: u64 = 16 * 1024;
/// The shell of every account.
const SHELL: &str = "/usr/bin/gpu-bastion";
/// The home folder of every account.
const HOME: &str = "/";

#[derive(Deserialize)]
struct Question {
    method: String,
    #[serde(default)]
    parameters: Parameters,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Parameters {
    user_name: Option<String>,
}

/// Answers a question of the name service, both without the zero byte. All accounts have the user id of
/// sshd: without privileges, sshd cannot change to another one.
pub fn answer(question: &[u8], uid: u32) -> serde_json::Result<Value> {
    let question: Question = serde_json::from_slice(question)?;
    let asks_for_user = question.method == "io.systemd.UserDatabase.GetUserRecord";
    let Some(name) = question
        .parameters
        .user_name
        .filter(|name| asks_for_user && !name.is_empty())
    else {
        let none = json!({"error": "io.systemd.UserDatabase.NoRecordFound", "parameters": {}});
        return Ok(none);
    };
    let record = json!({
        "userName": name, "uid": uid, "gid": uid, "realName": "",
        "homeDirectory": HOME, "shell": SHELL, "service": SERVICE,
    });
    Ok(json!({"parameters": {"record": record, "incomplete": false}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, parameters: &Value) -> Value {
        let question = json!({
            "method": format!("io.systemd.UserDatabase.{method}"), "parameters": parameters,
        });
        answer(question.to_string().as_bytes(), 2000).unwrap()
    }

    #[test]
    fn a_stranger_has_an_account_like_anybody() {
        let of = |name: &str| {
            asked(
                "GetUserRecord",
                &json!({"userName": name, "service": SERVICE}),
            )
        };
        let mut record = of("nobody");
        assert_eq!(record["parameters"]["record"]["uid"], 2000);
        assert_eq!(record["parameters"]["record"]["shell"], SHELL);
        record["parameters"]["record"]["userName"] = json!("alice");
        assert_eq!(of("alice"), record);
    }

    #[test]
    fn other_questions_have_no_answer() {
        for (method, parameters) in [
            ("GetUserRecord", json!({"uid": 0})),
            ("GetUserRecord", json!({"userName": ""})),
            ("GetGroupRecord", json!({"groupName": "sudo"})),
            ("GetMemberships", json!({"userName": "alice"})),
        ] {
            let answer = asked(method, &parameters);
            assert!(answer.get("error").is_some(), "{method}: {answer}");
        }
        assert!(answer(b"{}", 2000).is_err());
    }
}
