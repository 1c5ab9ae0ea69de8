//! Tests of who a person is.

use serde_json::{Map, Value, json};

use super::*;

fn mapping(username: &str, prefix: &str) -> Mapping {
    serde_json::from_value(json!({
        "claimMappings": {
            "username": {"claim": username, "prefix": prefix},
            "groups": {"claim": "groups", "prefix": ""},
        },
    }))
    .unwrap()
}

fn claims(claims: &Value) -> Map<String, Value> {
    claims.as_object().unwrap().clone()
}

fn refused(mapping: &Mapping, of: &Value) -> Refused {
    mapping.person(&claims(of), |_| true).unwrap_err()
}

#[test]
fn a_person_has_the_name_and_the_groups_that_kubectl_has() {
    let of = claims(&json!({
        "email": "alice@acme.io", "email_verified": true, "groups": ["vision", "all"],
    }));
    let person = mapping("email", "acme:").person(&of, |group| group != "all");
    assert_eq!(
        person.unwrap(),
        Person {
            user: "acme:alice@acme.io".into(),
            groups: vec!["vision".into()],
            email: Some("alice@acme.io".into()),
        }
    );
    // Kubernetes takes one group as a text, too.
    let of = claims(&json!({"sub": "a", "groups": "vision"}));
    let person = mapping("sub", "").person(&of, |_| true).unwrap();
    assert_eq!(person.groups, ["vision"]);
    assert_eq!(person.email, None);
}

#[test]
fn an_address_that_nobody_verified_logs_nobody_in() {
    for verified in [json!(null), json!(false), json!("true"), json!(1)] {
        let of = json!({"email": "alice@acme.io", "email_verified": verified});
        assert_eq!(refused(&mapping("email", ""), &of), Refused::Unverified);
        let of = claims(&json!({"sub": "x", "email": "a@b.c", "email_verified": verified}));
        let person = mapping("sub", "").person(&of, |_| true).unwrap();
        assert_eq!(person.email, None, "{verified}");
    }
    let of = json!({"email": "alice@acme.io"});
    assert_eq!(refused(&mapping("email", ""), &of), Refused::Unverified);
}

#[test]
fn no_token_makes_a_person_of_kubernetes_own() {
    let long = "a".repeat(257);
    for name in [
        "system:masters",
        "system:serviceaccount:kube-system:default",
        "",
        " alice",
        "alice ",
        "alice\u{a0}",
        "alice\n",
        "a\0b",
        "alice\r\nImpersonate-Group: system:masters",
        long.as_str(),
    ] {
        let of = json!({"sub": name});
        let refused = refused(&mapping("sub", ""), &of);
        assert!(matches!(refused, Refused::Name { .. }), "{name:?}");
        let of = json!({"sub": "alice", "groups": ["vision", name]});
        let refused = self::refused(&mapping("sub", ""), &of);
        assert!(matches!(refused, Refused::Name { .. }), "group {name:?}");
    }
    // The prefix does not hide them, and does not make them.
    let of = json!({"sub": "masters"});
    let by_prefix = refused(&mapping("sub", "system:"), &of);
    assert!(matches!(by_prefix, Refused::Name { .. }));
    let of = json!({"sub": "system:masters"});
    assert!(matches!(
        refused(&mapping("sub", "acme:"), &of),
        Refused::Name { .. }
    ));
}

#[test]
fn the_api_servers_user_is_a_person_with_the_groups_that_count() {
    let all = ["b", "system:authenticated", "a", "other", "a"].map(str::to_owned);
    let counts = |group: &str| group != "other";
    let person = Person::of_api_server("alice", &all, counts).unwrap();
    assert_eq!((person.user.as_str(), person.email), ("alice", None));
    assert_eq!(person.groups, ["a", "b"]);
    for nobody in ["system:serviceaccount:a:b", "system:admin", "", "alice "] {
        let refused = Person::of_api_server(nobody, &[], |_| true);
        assert!(matches!(refused, Err(Refused::Name { .. })), "{nobody}");
    }
    let many: Vec<String> = (0..=MOST_GROUPS).map(|n| format!("g{n}")).collect();
    let refused = Person::of_api_server("alice", &many, |_| true);
    assert_eq!(refused, Err(Refused::TooManyGroups("groups".to_owned())));
}

#[test]
fn a_claim_that_is_no_text_is_named() {
    for value in [json!(null), json!(7), json!(["alice"]), json!({"a": 1})] {
        let refused = refused(&mapping("sub", ""), &json!({"sub": value}));
        assert_eq!(refused, Refused::Missing("sub".into()));
        assert!(refused.to_string().contains("`sub`"));
    }
}

#[test]
fn groups_that_were_left_out_are_not_taken_for_none() {
    let of = json!({"sub": "alice", "_claim_names": {"groups": "src1"}});
    assert_eq!(refused(&mapping("sub", ""), &of), Refused::Overage);
    let many: Vec<_> = (0..5000).map(|n| format!("g{n}")).collect();
    let of = json!({"sub": "alice", "groups": many});
    assert_eq!(
        refused(&mapping("sub", ""), &of),
        Refused::TooManyGroups("groups".into())
    );
    let person = mapping("sub", "").person(&claims(&of), |group| group == "g7");
    assert_eq!(person.unwrap().groups, ["g7"]);
}

#[test]
fn a_rule_of_the_platform_keeps_out_who_does_not_meet_it() {
    let mut strict = mapping("sub", "");
    strict.claim_validation_rules = vec![ClaimRule::Value {
        claim: "hd".into(),
        required: "acme.io".into(),
    }];
    let of = json!({"sub": "alice", "hd": "evil.io"});
    assert!(matches!(refused(&strict, &of), Refused::Rule { .. }));
    let of = claims(&json!({"sub": "alice", "hd": "acme.io"}));
    assert!(strict.person(&of, |_| true).is_ok());
}

/// A mapping as the API server's file has it.
fn written(entry: Value) -> Mapping {
    serde_json::from_value(entry).unwrap()
}

#[test]
fn expressions_give_the_names_that_the_api_server_gives() {
    let mapping = written(json!({
        "claimMappings": {
            "username": {"expression": "'acme:' + claims.sub.lowerAscii()"},
            "groups": {"expression": "claims.?roles.orValue([]).map(role, 'acme:' + role)"},
            "uid": {"claim": "sub"},
            "extra": [{"key": "acme.io/team", "valueExpression": "claims.?team.orValue('')"}],
        },
        "claimValidationRules": [
            {"expression": "claims.level >= 2", "message": "your level is too low"},
        ],
        "userValidationRules": [
            {"expression": "user.groups.all(group, group != 'acme:banned')", "message": "banned"},
            {"expression": "!('acme.io/team' in user.extra) || user.extra['acme.io/team'] != ['x']"},
        ],
    }));
    let person = |of: Value| mapping.person(&claims(&of), |_| true);
    let alice = person(json!({"sub": "Alice", "level": 2, "roles": ["b", "a", "b"]})).unwrap();
    assert_eq!(alice.user, "acme:alice");
    assert_eq!(alice.groups, ["acme:a", "acme:b"]);
    let bob = person(json!({"sub": "bob", "level": 2.5})).unwrap();
    assert!(bob.groups.is_empty());

    let refused = |of: Value| person(of).unwrap_err().to_string();
    let low = refused(json!({"sub": "alice", "level": 1}));
    assert!(low.ends_with("your level is too low"), "{low}");
    let banned = refused(json!({"sub": "alice", "level": 2, "roles": ["banned"]}));
    assert!(banned.ends_with("banned"), "{banned}");
    // A rule without a message is its own message.
    let team = refused(json!({"sub": "alice", "level": 2, "team": "x"}));
    assert!(team.contains("user.extra"), "{team}");
    let missing = refused(json!({"level": 2}));
    assert!(missing.contains("`sub`"), "{missing}");
    // A rule that has no answer keeps everybody out.
    let unknown = refused(json!({"sub": "alice"}));
    assert!(unknown.contains("claimValidationRules"), "{unknown}");
    let text = refused(json!({"sub": "alice", "level": "high"}));
    assert!(text.contains("claimValidationRules"), "{text}");
}

#[test]
fn no_expression_makes_a_person_of_kubernetes_own() {
    let mapping = |username: &str, groups: &str| {
        written(json!({"claimMappings": {
            "username": {"expression": username}, "groups": {"expression": groups},
        }}))
    };
    for (username, groups) in [
        ("'system:' + claims.sub", "[]"),
        ("claims.sub + ' '", "[]"),
        ("''", "[]"),
        ("claims.sub", "['system:masters']"),
        ("claims.sub", "'system:' + claims.sub"),
    ] {
        let refused = refused(&mapping(username, groups), &json!({"sub": "masters"}));
        assert!(
            matches!(refused, Refused::Name { .. }),
            "{username} {groups}"
        );
    }
    // What is no text is not made one.
    for (username, groups) in [
        ("claims.n", "[]"),
        ("null", "[]"),
        ("claims.?n", "[]"),
        ("claims.sub", "[claims.n]"),
        ("claims.sub", "claims"),
    ] {
        let refused = refused(&mapping(username, groups), &json!({"sub": "alice", "n": 7}));
        assert!(
            matches!(refused, Refused::Expression { .. }),
            "{username} {groups}"
        );
    }
    let nobody =
        mapping("claims.sub", "['', 'a', '']").person(&claims(&json!({"sub": "alice"})), |_| true);
    assert_eq!(nobody.unwrap().groups, ["a"]);
}

#[test]
fn an_expression_takes_no_unverified_address_and_no_groups_that_were_left_out() {
    let mapping = written(json!({"claimMappings": {
        "username": {"expression": "claims.email"},
        "groups": {"expression": "claims.?groups.orValue([])"},
    }}));
    let of = json!({"email": "alice@acme.io"});
    assert_eq!(refused(&mapping, &of), Refused::Unverified);
    let of = json!({"email": "alice@acme.io", "email_verified": true});
    assert!(mapping.person(&claims(&of), |_| true).is_ok());
    let of = json!({
        "email": "alice@acme.io", "email_verified": true, "_claim_names": {"groups": "src1"},
    });
    assert_eq!(refused(&mapping, &of), Refused::Overage);
}

#[test]
fn a_field_that_the_portal_does_not_know_is_refused_and_not_ignored() {
    let username = json!({"claim": "sub", "prefix": ""});
    let with = |field: &str, value: Value| {
        let mut entry = json!({"claimMappings": {"username": username}});
        entry[field] = value;
        entry
    };
    let named = |username: Value| json!({"claimMappings": {"username": username}});
    let rule = |rule: Value| with("claimValidationRules", json!([rule]));
    for (unknown, word) in [
        (named(json!({"claim": "sub"})), "prefix"),
        (
            named(json!({"claim": "sub", "prefix": "", "expression": "claims.sub"})),
            "either",
        ),
        (
            named(json!({"claim": "sub", "prefix": "", "suffix": ""})),
            "suffix",
        ),
        (named(json!({"expression": "claims."})), "claims."),
        (named(json!({"expression": "string(claims.n)"})), "`string`"),
        (
            named(json!({"expression": "claims.a__dot__b"})),
            "underscores",
        ),
        (rule(json!({"claim": "hd", "expression": "true"})), "either"),
        (rule(json!({"claim": "hd", "message": "no"})), "either"),
        (rule(json!({"claim": "hd", "value": "a"})), "value"),
        (
            with(
                "userValidationRules",
                json!([{"expression": "true", "reason": "a"}]),
            ),
            "reason",
        ),
        (with("somethingElse", json!([])), "somethingElse"),
    ] {
        let read: Result<Mapping, _> = serde_json::from_value(unknown.clone());
        let error = read.unwrap_err().to_string();
        assert!(error.contains(word), "{unknown}: {error}");
    }
}
