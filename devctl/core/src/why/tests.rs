use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::*;

fn claim(phase: &str, conditions: &Value) -> Value {
    json!({
        "metadata": {"name": "my-dev", "namespace": "team"},
        "spec": {"parameters": {"placement": "EC2"}},
        "status": {"phase": phase, "conditions": conditions},
    })
}

fn open(name: &str, reason: &str) -> Value {
    json!({"type": name, "status": "False", "reason": reason, "message": format!("about {reason}")})
}

/// The pairs of condition and reason in the tables of docs/conditions.md and docs/cost.md.
fn documented() -> BTreeSet<(String, String)> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut found = BTreeSet::new();
    let conditions = std::fs::read_to_string(docs.join("conditions.md")).unwrap();
    let mut condition = String::new();
    for line in conditions.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.split(['=', ' ']).next().unwrap_or_default();
            condition = name.to_owned();
        }
        add(&mut found, &condition, line);
    }
    let cost = std::fs::read_to_string(docs.join("cost.md")).unwrap();
    let reasons = cost.split("`NotRunning`, and `False`").nth(1).unwrap();
    let reasons = reasons.split("## ").next().unwrap();
    reasons
        .lines()
        .for_each(|line| add(&mut found, "WithinBudget", line));
    found
}

fn add(found: &mut BTreeSet<(String, String)>, condition: &str, line: &str) {
    // SoftwareReady's table has the status first. A satisfied condition needs no advice.
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let cell = match cells.as_slice() {
        [_, "`True`", ..] => return,
        [_, "`False`" | "`Unknown`", reasons, ..] | [_, reasons, ..] => *reasons,
        _ => return,
    };
    for reason in cell.split(',').map(str::trim) {
        let Some(reason) = reason
            .strip_prefix('`')
            .and_then(|one| one.strip_suffix('`'))
        else {
            continue;
        };
        if condition.is_empty() || reason.contains(' ') || reason.ends_with("Ready") {
            continue;
        }
        found.insert((condition.to_owned(), reason.to_owned()));
    }
}

#[test]
fn every_documented_reason_says_who_can_change_it() {
    let documented = documented();
    assert!(documented.len() > 60, "{documented:?}");
    let unknown: Vec<_> = documented
        .iter()
        .filter(|(condition, reason)| rules::rule(condition, reason).is_none())
        .collect();
    assert!(unknown.is_empty(), "no rule for {unknown:?}");
}

#[test]
fn no_reason_has_two_rules() {
    let mut seen = BTreeSet::new();
    for rule in rules::RULES {
        assert!(seen.insert((rule.condition, rule.reason)), "{rule:?}");
    }
}

#[test]
fn the_first_cause_is_the_one_that_causes_the_others() {
    let conditions = json!([
        open("Ready", "Waiting"),
        open("SoftwareReady", "NotRunning"),
        open("ComputeReady", "ConfigUnresolved"),
        open("ConfigResolved", "FlavorMissing"),
    ]);
    let claim = claim("Failed", &conditions);
    let answer = answer(Workspace::new(&claim), &[]);
    assert_eq!(answer.causes.len(), 1);
    assert_eq!(answer.causes[0].reason, "FlavorMissing");
    assert_eq!(
        answer.causes[0].next,
        [
            "devctl flavors",
            "kubectl edit gpuws my-dev --namespace team"
        ]
    );
}

#[test]
fn what_only_the_platform_team_can_do_has_a_message_for_them() {
    let claim = claim("Provisioning", &json!([open("ComputeReady", "Quota")]));
    let answer = answer(Workspace::new(&claim), &[]);
    assert_eq!(answer.causes[0].who, Who::Platform);
    assert_eq!(
        answer.causes[0].next,
        ["send this to the platform team: workspace team/my-dev: ComputeReady=Quota: about Quota"]
    );
}

#[test]
fn a_stop_is_explained_by_its_reason() {
    for (reason, step) in [
        ("Idle", "devctl start my-dev"),
        ("MaxLifetime", "devctl start my-dev"),
        ("Requested", "devctl start my-dev"),
        (
            "State",
            "kubectl edit gpuws my-dev --namespace team: lifecycle.state: Running",
        ),
    ] {
        let mut claim = claim("Stopped", &json!([open("ComputeReady", "Stopped")]));
        claim["status"]["lifecycle"] = json!({"stoppedBecause": reason});
        claim["status"]["message"] = json!("stopped, since nobody used it for 2h");
        let answer = answer(Workspace::new(&claim), &[]);
        assert_eq!(answer.causes[0].reason, reason);
        assert_eq!(answer.causes[0].next, [step]);
    }
}

#[test]
fn a_claim_from_git_is_changed_in_git() {
    let mut claim = claim(
        "Failed",
        &json!([open("ConfigResolved", "ParametersInvalid")]),
    );
    claim["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": "x"});
    let answer = answer(Workspace::new(&claim), &[]);
    assert_eq!(answer.causes[0].next, ["change the claim of my-dev in git"]);
}

#[test]
fn an_interruption_is_named_while_the_workspace_is_ready() {
    let warned = json!({"type": "Interrupting", "status": "True", "reason": "InterruptionWarning", "message": "until 10:00"});
    let claim = claim("Ready", &json!([warned]));
    let answer = answer(Workspace::new(&claim), &[]);
    assert_eq!(answer.causes[0].message, "until 10:00");
    assert_eq!(answer.state, "my-dev is Ready");
}

#[test]
fn another_machine_than_asked_for_is_a_remark() {
    let mut claim = claim("Ready", &json!([]));
    claim["spec"]["parameters"]["instanceType"] = json!("g5.xlarge");
    claim["status"]["instanceType"] = json!("g4dn.xlarge");
    let answer = answer(Workspace::new(&claim), &[]);
    assert!(answer.causes.is_empty());
    assert!(answer.remarks[0].starts_with("it has g4dn.xlarge, not g5.xlarge"));
}

#[test]
fn a_claim_that_nobody_answered_has_the_event_or_says_so() {
    let new = json!({"metadata": {"name": "a", "namespace": "n"}});
    let silent = answer(Workspace::new(&new), &[]);
    assert_eq!(silent.causes[0].reason, "NotRendered");
    let event = json!({"type": "Warning", "message": "cannot select Composition"});
    let told = answer(Workspace::new(&new), &[event]);
    assert_eq!(told.causes[0].message, "cannot select Composition");
}

#[test]
fn an_unknown_reason_still_shows_the_platforms_words() {
    let claim = claim("Failed", &json!([open("ComputeReady", "Brandnew")]));
    let answer = answer(Workspace::new(&claim), &[]);
    assert_eq!(answer.causes[0].message, "about Brandnew");
    assert_eq!(answer.causes[0].who, Who::Platform);
}

#[test]
fn a_workspace_that_works_past_its_bastion_has_a_remark() {
    let message = "the policy's bastion does not reach machines on EC2";
    let past = json!([
        {"type": "AccessReady", "status": "True", "reason": "BastionOutOfReach", "message": message},
    ]);
    let claim = claim("Ready", &past);
    let answer = answer(Workspace::new(&claim), &[]);
    assert_eq!(answer.causes, []);
    assert_eq!(answer.remarks, [message]);
}
