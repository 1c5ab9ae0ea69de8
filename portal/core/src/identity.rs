//! Who a person is, from the claims of an ID token.
//!
//! The rules are those of Kubernetes' `AuthenticationConfiguration` (Kubernetes, "Authenticating"), and
//! are read from the same file as the API server's, so the portal and `kubectl` agree on a person's name.
//! The portal refuses more: what would be a person of Kubernetes' own, or what HTTP would change.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The longest name of a person, in bytes.
const LONGEST: usize = 256;
/// The most groups that count. More would not fit into the headers of a request.
const MOST_GROUPS: usize = 200;

/// A person, as the API server knows them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, Deserialize)]
pub struct Person {
    /// The name of the user.
    pub user: String,
    /// The names of the groups.
    pub groups: Vec<String>,
    /// The e-mail address, if the provider of identities has verified it.
    pub email: Option<String>,
}

/// How claims become a person: a part of an entry of `jwt` in an `AuthenticationConfiguration`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mapping {
    /// The names of claims.
    pub claim_mappings: ClaimMappings,
    /// Claims that a token must have.
    #[serde(default)]
    pub claim_validation_rules: Vec<ClaimRule>,
}

/// Which claims are the name and the groups.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimMappings {
    /// The claim with the name.
    pub username: Prefixed,
    /// The claim with the groups.
    #[serde(default)]
    pub groups: Option<Prefixed>,
}

/// A claim, and what is put in front of its value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefixed {
    /// The name of the claim.
    pub claim: String,
    /// The prefix. Kubernetes demands that it is written, even if it is empty.
    pub prefix: String,
}

/// A claim that has one value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaimRule {
    /// The name of the claim.
    pub claim: String,
    /// The value that it must have.
    #[serde(default)]
    pub required_value: String,
}

/// Why the portal refuses a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The claim is missing, or is no text.
    #[error("the token has no text in the claim `{0}`")]
    Missing(String),
    /// A rule of the platform is not met.
    #[error("the claim `{claim}` of the token must be `{required}`")]
    Rule {
        /// The claim.
        claim: String,
        /// The value that it must have.
        required: String,
    },
    /// The provider of identities has not verified the e-mail address.
    #[error("the provider of identities has not verified the address in the claim `email`")]
    Unverified,
    /// The claim has no name that Kubernetes and HTTP carry unchanged.
    #[error("the claim `{claim}` is no name: {problem}")]
    Name {
        /// The claim.
        claim: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The provider has left the groups out (Microsoft Entra, "group overage").
    #[error(
        "the token names no groups because there are too many; ask the platform team to let the \
         provider of identities filter them"
    )]
    Overage,
    /// There are more groups than a request carries.
    #[error("the claim `{0}` has more than {MOST_GROUPS} groups that count")]
    TooManyGroups(String),
}

impl Person {
    /// The person whom the API server knows by a token. `counts` says which groups count; the others are left
    /// out, as are those of Kubernetes itself.
    ///
    /// # Errors
    ///
    /// The user is no person, or has too many groups.
    pub fn of_api_server(
        user: &str,
        groups: &[String],
        counts: impl Fn(&str) -> bool,
    ) -> Result<Self, Refused> {
        if let Some(problem) = problem(user) {
            let claim = "username".to_owned();
            return Err(Refused::Name { claim, problem });
        }
        let counted = groups.iter().filter(|group| problem(group).is_none());
        let counted = counted.filter(|group| counts(group));
        let mut groups: Vec<String> = counted.cloned().collect();
        groups.sort_unstable();
        groups.dedup();
        if groups.len() > MOST_GROUPS {
            return Err(Refused::TooManyGroups("groups".to_owned()));
        }
        Ok(Self {
            user: user.to_owned(),
            groups,
            // The API server does not tell it.
            email: None,
        })
    }
}

impl Mapping {
    /// The person of some claims. `counts` says which groups count; the others are left out.
    pub fn person(
        &self,
        claims: &Map<String, Value>,
        counts: impl Fn(&str) -> bool,
    ) -> Result<Person, Refused> {
        for rule in &self.claim_validation_rules {
            if claims.get(&rule.claim).and_then(Value::as_str) != Some(&rule.required_value) {
                return Err(Refused::Rule {
                    claim: rule.claim.clone(),
                    required: rule.required_value.clone(),
                });
            }
        }
        let username = &self.claim_mappings.username;
        let is_verified = claims.get("email_verified") == Some(&Value::Bool(true));
        if username.claim == "email" && !is_verified {
            return Err(Refused::Unverified);
        }
        let bare = claims.get(&username.claim).and_then(Value::as_str);
        let bare = bare.ok_or_else(|| Refused::Missing(username.claim.clone()))?;
        let user = username.name(bare)?;
        let groups = match &self.claim_mappings.groups {
            Some(groups) => groups.groups(claims, counts)?,
            None => Vec::new(),
        };
        let email = claims.get("email").and_then(Value::as_str);
        let email = email.filter(|_| is_verified).map(str::to_owned);
        Ok(Person {
            user,
            groups,
            email,
        })
    }
}

impl Prefixed {
    fn name(&self, bare: &str) -> Result<String, Refused> {
        let name = format!("{}{bare}", self.prefix);
        match problem(bare).or_else(|| problem(&name)) {
            None => Ok(name),
            Some(problem) => Err(Refused::Name {
                claim: self.claim.clone(),
                problem,
            }),
        }
    }

    fn groups(
        &self,
        claims: &Map<String, Value>,
        counts: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>, Refused> {
        let is_elsewhere = |names: &Value| names.get(&self.claim).is_some();
        if claims.get("_claim_names").is_some_and(is_elsewhere) {
            return Err(Refused::Overage);
        }
        let bare: Vec<&str> = match claims.get(&self.claim) {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let mut groups = Vec::new();
        for bare in bare {
            // Kubernetes' own groups are refused even if they would not count.
            let name = self.name(bare)?;
            if counts(&name) {
                groups.push(name);
            }
        }
        groups.sort_unstable();
        groups.dedup();
        if groups.len() > MOST_GROUPS {
            return Err(Refused::TooManyGroups(self.claim.clone()));
        }
        Ok(groups)
    }
}

/// What is wrong with the name of a person or a group.
fn problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it is empty");
    }
    if name.len() > LONGEST {
        return Some("it has more than 256 bytes");
    }
    if name.chars().any(char::is_control) {
        return Some("it has a control character");
    }
    if name.trim() != name {
        // HTTP removes blanks at the ends of a header (RFC 9110, section 5.5), which would make
        // another name.
        return Some("it begins or ends with a blank");
    }
    if name.starts_with("system:") {
        return Some("names that begin with system: are Kubernetes' own");
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        strict.claim_validation_rules = vec![ClaimRule {
            claim: "hd".into(),
            required_value: "acme.io".into(),
        }];
        let of = json!({"sub": "alice", "hd": "evil.io"});
        assert!(matches!(refused(&strict, &of), Refused::Rule { .. }));
        let of = claims(&json!({"sub": "alice", "hd": "acme.io"}));
        assert!(strict.person(&of, |_| true).is_ok());
    }

    #[test]
    fn a_rule_that_the_portal_does_not_know_is_refused_and_not_ignored() {
        for unknown in [
            json!({"claimMappings": {"username": {"expression": "claims.sub"}}}),
            json!({"claimMappings": {"username": {"claim": "sub"}}}),
            json!({
                "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
                "userValidationRules": [{"expression": "true"}],
            }),
            json!({
                "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
                "claimValidationRules": [{"expression": "claims.hd == 'acme.io'"}],
            }),
        ] {
            let read: Result<Mapping, _> = serde_json::from_value(unknown.clone());
            assert!(read.is_err(), "{unknown}");
        }
    }
}
