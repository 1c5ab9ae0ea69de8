//! `why` about every workspace of the function's cases. Their responses are what claims show.
//!
//! `why.txt` has a line for each: the case, the phase, the reason, who can change it, the next step.
//! `UPDATE_GOLDENS=1` writes it anew.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use devctl_core::why;
use devctl_core::workspace::Workspace;
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../function/tests/cases")
}

/// The claim of a case, as the API server would show it after the response.
fn claim(case: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(case.join("response.yaml")).unwrap();
    let response: Value = serde_yaml::from_str(&text).unwrap();
    let mut status = response
        .pointer("/desired/composite/resource/status")?
        .clone();
    status.get("phase")?;
    let conditions = response["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|one| {
            let status = match one["status"].as_str() {
                Some("STATUS_CONDITION_TRUE") => "True",
                Some("STATUS_CONDITION_FALSE") => "False",
                _ => "Unknown",
            };
            json!({"type": one["type"], "status": status, "reason": one["reason"], "message": one["message"]})
        })
        .collect();
    status["conditions"] = json!(conditions);
    Some(json!({
        "metadata": {"name": "my-dev", "namespace": "team-vision", "uid": "1"},
        "spec": {"parameters": {}},
        "status": status,
    }))
}

fn cases() -> Vec<(String, Value)> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut cases: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            Some((name, claim(&path)?))
        })
        .collect();
    cases.sort_by(|a, b| a.0.cmp(&b.0));
    cases
}

#[test]
fn every_workspace_that_is_not_ready_has_a_cause_and_a_next_step() {
    let mut reasons = BTreeSet::new();
    for (name, claim) in cases() {
        let workspace = Workspace::new(&claim);
        let answer = why::answer(workspace, &[]);
        let Some(cause) = answer.causes.first() else {
            assert!(
                workspace.is_ready(),
                "{name} is {}, and nothing says why",
                workspace.phase_text()
            );
            continue;
        };
        assert!(
            cause.rule.is_some(),
            "{name}: no rule for {}={}",
            cause.condition,
            cause.reason
        );
        assert!(
            !cause.next.is_empty(),
            "{name}: nothing to do for {}",
            cause.reason
        );
        assert!(!cause.message.is_empty(), "{name}: no message");
        reasons.insert((cause.condition.clone(), cause.reason.clone()));
    }
    assert!(
        reasons.len() >= 30,
        "only {} situations: {reasons:?}",
        reasons.len()
    );
}

#[test]
fn the_answers_are_those_that_were_read() {
    let lines: Vec<String> = cases()
        .iter()
        .map(|(name, claim)| {
            let workspace = Workspace::new(claim);
            let answer = why::answer(workspace, &[]);
            let phase = workspace.phase_text();
            match answer.causes.first() {
                None => format!("{name}: {phase}"),
                Some(cause) => format!(
                    "{name}: {phase}: {}={}: {}: {}",
                    cause.condition,
                    cause.reason,
                    cause.who.word(),
                    cause.next[0]
                        .split(": workspace ")
                        .next()
                        .unwrap_or_default()
                ),
            }
        })
        .collect();
    let text = lines.join("\n") + "\n";
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/why.txt");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&golden, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    for (is, was) in text.lines().zip(expected.lines()) {
        assert_eq!(is, was, "UPDATE_GOLDENS=1 writes the answers anew");
    }
    assert_eq!(text.lines().count(), expected.lines().count());
}
