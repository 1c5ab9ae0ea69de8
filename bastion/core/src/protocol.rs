//! The messages between a login's process and the broker: one line of JSON each, over a Unix socket.

use std::time::Duration;

use devctl_core::host::{Change, Effect, Refused, Scope};
use devctl_core::name::Host;
use devctl_core::object::{Kind, Reference, text};
use devctl_core::problem::Problem;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest message in bytes. The API server takes objects of 1.5 MiB at most, and a list has many.
pub const LONGEST: usize = 64 * 1024 * 1024;
/// The `ConfigMap` that users may read.
const ACCOUNT: &str = "gpu-workspaces.account";

/// A question to the broker.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub enum Ask {
    /// sshd is about to listen.
    Listen,
    /// sshd asks whether a key opens an account.
    Keys {
        /// The name of the account.
        user: String,
        /// The type of the key.
        kind: String,
        /// The key in base64.
        blob: String,
    },
    /// sshd asks whether a certificate opens an account.
    Certificate {
        /// The name of the account.
        user: String,
        /// The certificate in base64.
        blob: String,
    },
    /// A session begins.
    Login {
        /// The secret of its grant.
        grant: String,
        /// The address of the client.
        source: String,
    },
    /// The session is about to run a command.
    Command {
        /// The words.
        words: Vec<String>,
    },
    /// The session does not run a command line.
    Refuse {
        /// Why.
        reason: String,
    },
    /// Connect to a workspace.
    Connect {
        /// The host, as a person writes it.
        host: String,
    },
    /// The connection to the workspace ended.
    Closed {
        /// Bytes to the workspace.
        up: u64,
        /// Bytes from it.
        down: u64,
    },
    /// A request to the API server.
    Api(Call),
    /// A prompt wants to know when the replica is about to end. The answer comes then.
    Notice,
    /// Kubernetes wants the replica to end. The answer comes when no session is open. Only the broker's own
    /// user may begin the end; another one just waits for it.
    Drain,
}

/// The broker's answer.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub enum Answer {
    /// Lines of `authorized_keys`, or of principals. It is empty if the key opens no account.
    Keys(String),
    /// The session may go on.
    Welcome(Welcome),
    /// It is recorded.
    Recorded,
    /// The workspace is connected. The socket comes with this message.
    Connected,
    /// The broker does not do it.
    Refused(Problem),
    /// What the API server answered.
    Api(Result<Reply, Refused>),
}

/// What a session knows of itself.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Welcome {
    /// The name of the person.
    pub user: String,
    /// The person's namespace.
    pub namespace: String,
    /// The id of the session.
    pub session: String,
    /// Whether the bastion logs in to workspaces for the person: `devctl ssh` behind its login.
    pub enters: bool,
}

/// An operation of the API server.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub enum Call {
    /// Reads an object.
    Get(Reference),
    /// Reads all objects of a kind.
    List(Kind, Scope),
    /// Creates an object.
    Create(Value, Effect),
    /// Changes an object.
    Patch(Reference, Value, Effect),
    /// Deletes an object.
    Delete(Reference, String),
    /// Waits for a change.
    Changed(Reference, String, Duration),
    /// Whether the person may do something.
    May(String, Kind, String),
    /// The time of the API server.
    Time,
}

/// The result of an operation.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub enum Reply {
    /// An object.
    Object(Value),
    /// Objects.
    Objects(Vec<Value>),
    /// What became of an object.
    Change(Change),
    /// Yes or no.
    Flag(bool),
    /// A time.
    Time(Timestamp),
    /// Nothing.
    Done,
}

/// Whether an operation stays in the person's namespace and among the kinds of devctl. The API server
/// checks the person's rights as well.
pub fn permitted(call: &Call, namespace: &str) -> Result<(), Refused> {
    let is_ours = |object: &Reference| match object.kind {
        Kind::Flavor => true,
        Kind::ConfigMap => object.namespace == namespace && object.name == ACCOUNT,
        Kind::Claim | Kind::Event | Kind::Home | Kind::Pod => object.namespace == namespace,
        // The broker itself reads pools, to find instances.
        Kind::SpotPool => false,
    };
    let is_permitted = match call {
        Call::Get(object) | Call::Changed(object, ..) => is_ours(object),
        Call::List(Kind::Flavor, _) | Call::Time => true,
        Call::List(Kind::ConfigMap | Kind::SpotPool, _) | Call::List(_, Scope::Cluster) => false,
        Call::List(_, Scope::Namespace(of)) | Call::May(_, _, of) => of == namespace,
        Call::Create(object, _) => {
            text(object, "/kind") == Some(Kind::Claim.kind())
                && text(object, "/apiVersion") == Some(&Kind::Claim.api_version())
                && text(object, "/metadata/namespace") == Some(namespace)
        }
        Call::Patch(object, ..) => object.kind == Kind::Claim && is_ours(object),
        Call::Delete(object, _) => {
            matches!(object.kind, Kind::Claim | Kind::Home) && is_ours(object)
        }
    };
    if is_permitted && names(call).all(is_path_segment) {
        return Ok(());
    }
    Err(Refused {
        status: Some(403),
        reason: "Forbidden".to_owned(),
        message: format!("the bastion asks about workspaces of namespace {namespace} only"),
        fields: Vec::new(),
    })
}

/// Whether a host is in the person's namespace.
pub fn is_own(host: &Host, namespace: &str) -> bool {
    let named = host.namespace.as_ref();
    named.is_none_or(|named| named.as_str() == namespace)
}

/// What becomes a part of a path.
fn names(call: &Call) -> impl Iterator<Item = &str> {
    let reference = match call {
        Call::Get(object)
        | Call::Changed(object, ..)
        | Call::Patch(object, ..)
        | Call::Delete(object, _) => Some(object),
        _ => None,
    };
    let version = match call {
        Call::Changed(_, version, _) => Some(version.as_str()),
        _ => None,
    };
    let version = version.filter(|version| !version.is_empty());
    let name = reference.map(|object| object.name.as_str());
    name.into_iter().chain(version)
}

/// Whether a text is one segment of a path and nothing else in a URL.
fn is_path_segment(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    !text.is_empty() && text.chars().all(is_plain) && text.chars().any(|c| c != '.')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(kind: Kind, namespace: &str, name: &str) -> Reference {
        Reference::new(kind, namespace, name)
    }

    fn claim(namespace: &str) -> Value {
        json!({
            "apiVersion": Kind::Claim.api_version(), "kind": Kind::Claim.kind(),
            "metadata": {"name": "a", "namespace": namespace},
        })
    }

    #[test]
    fn a_person_asks_about_their_own_namespace() {
        for call in [
            Call::Get(of(Kind::Claim, "mine", "a")),
            Call::Get(of(Kind::Flavor, "", "t4")),
            Call::Get(of(Kind::ConfigMap, "mine", ACCOUNT)),
            Call::List(Kind::Claim, Scope::Namespace("mine".into())),
            Call::List(Kind::Flavor, Scope::Cluster),
            Call::Create(claim("mine"), Effect::Stored),
            Call::Patch(of(Kind::Claim, "mine", "a"), json!({}), Effect::Stored),
            Call::Delete(of(Kind::Home, "mine", "home-a"), "uid".into()),
            Call::Changed(of(Kind::Claim, "mine", "a"), "17".into(), Duration::ZERO),
            Call::May("get".into(), Kind::Claim, "mine".into()),
            Call::Time,
        ] {
            assert_eq!(permitted(&call, "mine"), Ok(()), "{call:?}");
        }
    }

    #[test]
    fn no_operation_leaves_the_namespace_or_the_kinds_of_devctl() {
        let mut service_account = claim("mine");
        service_account["kind"] = json!("ServiceAccount");
        let mut other_group = claim("mine");
        other_group["apiVersion"] = json!("evil.example.org/v1alpha1");
        for call in [
            Call::Get(of(Kind::Claim, "theirs", "a")),
            Call::Get(of(Kind::Claim, "", "a")),
            Call::Get(of(Kind::ConfigMap, "mine", "kube-root-ca.crt")),
            Call::Get(of(Kind::Claim, "mine", "../../secrets/x")),
            Call::Get(of(Kind::Claim, "mine", "..")),
            Call::Get(of(Kind::Claim, "mine", "a?x=y")),
            Call::Get(of(Kind::Claim, "mine", "a%2fb")),
            Call::Get(of(Kind::Flavor, "", "../secrets")),
            Call::List(Kind::ConfigMap, Scope::Namespace("mine".into())),
            Call::List(Kind::SpotPool, Scope::Namespace("mine".into())),
            Call::Get(of(Kind::SpotPool, "mine", "a")),
            Call::List(Kind::Claim, Scope::Cluster),
            Call::List(Kind::Pod, Scope::Namespace("theirs".into())),
            Call::Create(claim("theirs"), Effect::Stored),
            Call::Create(service_account, Effect::Stored),
            Call::Create(other_group, Effect::Trial),
            Call::Patch(of(Kind::Home, "mine", "a"), json!({}), Effect::Stored),
            Call::Patch(of(Kind::Pod, "mine", "a"), json!({}), Effect::Stored),
            Call::Delete(of(Kind::Pod, "mine", "a"), "uid".into()),
            Call::Delete(of(Kind::Claim, "theirs", "a"), "uid".into()),
            Call::Changed(
                of(Kind::Claim, "mine", "a"),
                "1&limit=9".into(),
                Duration::ZERO,
            ),
            Call::May("get".into(), Kind::Claim, "theirs".into()),
        ] {
            let refused = permitted(&call, "mine").unwrap_err();
            assert_eq!(refused.status, Some(403), "{call:?}");
        }
    }

    #[test]
    fn a_host_of_another_namespace_is_not_ones_own() {
        let is_own = |host: &str| is_own(&host.parse().unwrap(), "mine");
        assert!(is_own("a.ws") && is_own("0.a.ws") && is_own("a.mine.ws"));
        assert!(!is_own("a.theirs.ws") && !is_own("0.a.theirs.ws"));
    }
}
