//! What a person asks for, as a claim.

use devctl_core::name::Name;
use devctl_core::object::Kind;
use serde_json::{Map, Value, json};

use crate::account::Account;
use crate::identity::Person;
use crate::problem::Problem;

/// The fields of the first API.
const PLAIN: [&str; 3] = ["owner", "instanceType", "opencvVersion"];
/// The fields of a workspace in the versioned API.
const FIELDS: [&str; 3] = ["name", "namespace", "parameters"];
/// How much of an owner's name is in the name of a workspace.
const OWNER_IN_NAME: usize = 30;

/// The claim for a body of the first API: `{owner, instanceType, opencvVersion}`. The owner is the
/// person's own e-mail address, or the name of their `DevUser`. `suffix` makes the name one of its own.
pub fn plain(
    body: &Value,
    person: &Person,
    account: &Account,
    suffix: &str,
) -> Result<Value, Problem> {
    let fields = object(body, &PLAIN)?;
    let owner = text(fields, "owner")?.unwrap_or_default();
    if owner.is_empty() {
        return Err(Problem::invalid("/owner", "Owner field is required."));
    }
    let is_address = person
        .email
        .as_deref()
        .is_some_and(|email| email.eq_ignore_ascii_case(owner));
    if !is_address && owner != account.owner {
        let you = person.email.as_deref().unwrap_or(&account.owner);
        let detail = format!("owner: you are {you}, and create workspaces for yourself only");
        return Err(Problem::invalid("/owner", detail));
    }
    let mut parameters = Map::new();
    for field in ["instanceType", "opencvVersion"] {
        if let Some(value) = text(fields, field)?.filter(|value| !value.is_empty()) {
            parameters.insert(field.to_owned(), value.into());
        }
    }
    let kept = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let short: String = account
        .owner
        .chars()
        .filter(kept)
        .take(OWNER_IN_NAME)
        .collect();
    let name = format!("ws-{short}-{suffix}");
    Ok(claim(&name, account, parameters))
}

/// Where a person may make workspaces.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The person's account, if they have one.
    pub account: Option<&'a Account>,
    /// Whether they may name another namespace. Kubernetes decides what they may do there.
    pub chooses_namespace: bool,
}

/// The claim for a body of the versioned API: `{name, namespace, parameters}`. In the namespace of the person's
/// account, the owner is the account's.
pub fn workspace(body: &Value, place: Place<'_>) -> Result<Value, Problem> {
    let fields = object(body, &FIELDS)?;
    let name = text(fields, "name")?.unwrap_or_default();
    let name: Name = name
        .parse()
        .map_err(|problem: String| Problem::invalid("/name", format!("name: {problem}")))?;
    let parameters = match fields.get("parameters") {
        None => Map::new(),
        Some(Value::Object(parameters)) => parameters.clone(),
        Some(_) => {
            let detail = "parameters: must be an object";
            return Err(Problem::invalid("/parameters", detail));
        }
    };
    let namespace = namespace(text(fields, "namespace")?, place)?;
    let Some(account) = place.account.filter(|one| one.namespace == namespace) else {
        return Ok(manifest(name.as_str(), &namespace, &parameters));
    };
    if parameters
        .get("owner")
        .is_some_and(|owner| owner != account.owner.as_str())
    {
        let detail = format!(
            "owner: you are {}, and create workspaces for yourself only",
            account.owner
        );
        return Err(Problem::invalid("/parameters/owner", detail));
    }
    Ok(claim(name.as_str(), account, parameters))
}

fn namespace(asked: Option<&str>, place: Place<'_>) -> Result<Name, Problem> {
    let wrong = |detail: String| Problem::invalid("/namespace", format!("namespace: {detail}"));
    let own = place.account.map(|account| &account.namespace);
    let Some(asked) = asked else {
        return own
            .cloned()
            .ok_or_else(|| wrong("name one, because you have none of your own".into()));
    };
    let asked: Name = asked.parse().map_err(wrong)?;
    if place.chooses_namespace || own == Some(&asked) {
        return Ok(asked);
    }
    let own = own.map_or_else(String::new, |own| format!(": yours is {own}"));
    Err(wrong(format!("workspaces are made in one's own{own}")))
}

/// A claim of the person's account.
fn claim(name: &str, account: &Account, mut parameters: Map<String, Value>) -> Value {
    parameters.insert("owner".into(), account.owner.clone().into());
    manifest(name, &account.namespace, &parameters)
}

/// A claim has a name and parameters. Crossplane's own fields are the platform's.
fn manifest(name: &str, namespace: &Name, parameters: &Map<String, Value>) -> Value {
    json!({
        "apiVersion": Kind::Claim.api_version(),
        "kind": Kind::Claim.kind(),
        "metadata": {"name": name, "namespace": namespace.as_str()},
        "spec": {"parameters": parameters},
    })
}

fn object<'a>(body: &'a Value, known: &[&str]) -> Result<&'a Map<String, Value>, Problem> {
    let Value::Object(fields) = body else {
        return Err(Problem::invalid("", "the body must be an object"));
    };
    match fields.keys().find(|field| !known.contains(&field.as_str())) {
        None => Ok(fields),
        Some(field) => {
            let pointer = format!("/{}", field.replace('~', "~0").replace('/', "~1"));
            let detail = format!("{field}: unknown field; there are {}", known.join(", "));
            Err(Problem::invalid(&pointer, detail))
        }
    }
}

fn text<'a>(fields: &'a Map<String, Value>, field: &str) -> Result<Option<&'a str>, Problem> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => {
            let detail = format!("{field}: must be a text");
            Err(Problem::invalid(&format!("/{field}"), detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> (Person, Account) {
        let person = Person {
            user: "alice@acme.io".into(),
            groups: vec![],
            email: Some("alice@acme.io".into()),
        };
        let account = Account {
            owner: "alice".into(),
            namespace: "dev-alice".parse().unwrap(),
        };
        (person, account)
    }

    fn placed(body: &Value, chooses_namespace: bool) -> Result<Value, Problem> {
        let account = alice().1;
        let place = Place {
            account: Some(&account),
            chooses_namespace,
        };
        workspace(body, place)
    }

    fn plainly(body: &Value) -> Result<Value, Problem> {
        let (person, account) = alice();
        plain(body, &person, &account, "1700000000123")
    }

    #[test]
    fn the_first_apis_form_asks_by_e_mail_address() {
        let body = json!({"owner": "Alice@acme.io", "instanceType": "g4dn.xlarge"});
        assert_eq!(
            plainly(&body).unwrap(),
            json!({
                "apiVersion": "platform.acme.io/v1alpha1",
                "kind": "GpuDevWorkspaceClaim",
                "metadata": {"name": "ws-alice-1700000000123", "namespace": "dev-alice"},
                "spec": {"parameters": {"owner": "alice", "instanceType": "g4dn.xlarge"}},
            })
        );
        assert!(plainly(&json!({"owner": "alice", "opencvVersion": "4.8.0"})).is_ok());
    }

    #[test]
    fn nobody_creates_a_workspace_for_somebody_else() {
        for owner in ["bob@acme.io", "bob", "alice@acme.io ", "ALICE"] {
            let problem = plainly(&json!({"owner": owner})).unwrap_err();
            assert_eq!(
                (problem.status, problem.errors[0].pointer.as_str()),
                (400, "/owner")
            );
            assert!(
                problem.detail.contains("alice@acme.io"),
                "{}",
                problem.detail
            );
        }
        let body = json!({"name": "x", "parameters": {"owner": "bob"}});
        let problem = placed(&body, false).unwrap_err();
        assert_eq!(problem.errors[0].pointer, "/parameters/owner");
    }

    #[test]
    fn an_address_that_is_not_verified_is_nobodys() {
        let (mut person, account) = alice();
        person.email = None;
        let body = json!({"owner": "alice@acme.io"});
        assert!(plain(&body, &person, &account, "x").is_err());
    }

    #[test]
    fn a_body_that_makes_no_claim_names_its_field() {
        for (body, pointer) in [
            (json!({}), "/owner"),
            (json!({"owner": ""}), "/owner"),
            (json!({"owner": 7}), "/owner"),
            (
                json!({"owner": "alice", "instanceType": ["a"]}),
                "/instanceType",
            ),
            (
                json!({"owner": "alice", "compositionRef": {}}),
                "/compositionRef",
            ),
            (json!([]), ""),
        ] {
            let problem = plainly(&body).unwrap_err();
            assert_eq!(problem.errors[0].pointer, pointer, "{body}");
        }
        assert_eq!(
            plainly(&json!({})).unwrap_err().plain().error,
            "Owner field is required."
        );
        for (body, pointer) in [
            (json!({"parameters": {}}), "/name"),
            (json!({"name": "-a"}), "/name"),
            (json!({"name": "A"}), "/name"),
            (json!({"name": "a/../b"}), "/name"),
            (json!({"name": "a", "parameters": []}), "/parameters"),
            (json!({"name": "a", "namespace": "dev-bob"}), "/namespace"),
            (
                json!({"name": "a", "compositionRef": {"name": "lax"}}),
                "/compositionRef",
            ),
        ] {
            let problem = placed(&body, false).unwrap_err();
            assert_eq!(problem.errors[0].pointer, pointer, "{body}");
        }
    }

    #[test]
    fn a_claim_has_the_owner_and_the_namespace_of_the_account() {
        let body = json!({"name": "vision", "parameters": {"flavor": "t4"}});
        let claim = placed(&body, false).unwrap();
        assert_eq!(
            claim["metadata"],
            json!({"name": "vision", "namespace": "dev-alice"})
        );
        assert_eq!(
            claim["spec"],
            json!({"parameters": {"flavor": "t4", "owner": "alice"}})
        );
    }

    #[test]
    fn who_has_rights_of_their_own_may_name_a_namespace_and_nobody_else() {
        let body = json!({"name": "vision", "namespace": "team", "parameters": {"flavor": "t4"}});
        let claim = placed(&body, true).unwrap();
        assert_eq!(claim["metadata"]["namespace"], "team");
        // The owner is the one whom the platform binds to the namespace.
        assert_eq!(claim["spec"], json!({"parameters": {"flavor": "t4"}}));
        let problem = placed(&body, false).unwrap_err();
        assert_eq!(problem.errors[0].pointer, "/namespace");
        let own = json!({"name": "vision", "namespace": "dev-alice"});
        for chooses_namespace in [true, false] {
            let claim = placed(&own, chooses_namespace).unwrap();
            assert_eq!(claim["spec"]["parameters"]["owner"], "alice");
        }
        let nobody = Place {
            account: None,
            chooses_namespace: true,
        };
        let problem = workspace(&json!({"name": "vision"}), nobody).unwrap_err();
        assert_eq!(problem.errors[0].pointer, "/namespace");
        assert!(placed(&json!({"name": "a", "namespace": "../b"}), true).is_err());
    }
}
