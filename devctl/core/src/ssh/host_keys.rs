//! The host keys that ssh accepts: those in the claim's status, pinned by the claim's UID.
//!
//! `devctl proxy` writes them before it opens the connection, and ssh reads them afterwards. A line of
//! the file has the pin as its comment (`sshd(8)`, "`SSH_KNOWN_HOSTS` FILE FORMAT"):
//!
//! ```text
//! my-dev.ws ssh-ed25519 AAAA… uid=<UID of the claim> machine=<instance, or pods>
//! ```

use api::workspace::Placement;

use crate::name::Host;
use crate::problem::{Code, Problem};
use crate::workspace::Workspace;

/// The machine of pods. All pods of a workspace share a key, which a Secret keeps.
const PODS: &str = "pods";

/// The file with the keys of one host replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The content of the file.
    pub content: String,
    /// Whether the workspace has another machine with another key than before.
    pub is_new_machine: bool,
}

/// Puts the keys of a workspace into the file with the keys of all hosts.
///
/// A new claim of the same name has a new UID, and new keys. The same claim has new keys only where a
/// new machine brings them: on EC2, without a home that keeps them. Otherwise another key is refused.
pub fn pin(content: &str, host: &Host, workspace: Workspace<'_>) -> Result<Pinned, Problem> {
    let object = workspace.reference().to_string();
    let keys: Vec<&str> = workspace
        .host_keys()
        .into_iter()
        .filter(|key| is_key(key))
        .collect();
    if keys.is_empty() {
        return Err(Problem::new(Code::Failed, "HostKeyUnknown", UNKNOWN)
            .of(object)
            .field("status.hostKeys")
            .next("ask the platform team for an agent in the policy: lifecycle.agent"));
    }
    let name = host.to_string();
    let (own, others): (Vec<&str>, Vec<&str>) = content
        .lines()
        .partition(|line| line.split(' ').next() == Some(&name));
    let machine = machine(workspace);
    let known: Vec<Known<'_>> = own.iter().filter_map(|line| Known::read(line)).collect();
    let same_claim = known.iter().filter(|known| known.uid == workspace.uid());
    let changed = same_claim
        .filter(|known| !keys.contains(&known.key.as_str()))
        .collect::<Vec<_>>();
    let is_kept = machine == PODS || keeps_keys(workspace);
    if let Some(known) = changed
        .iter()
        .find(|known| is_kept || known.machine == machine)
    {
        let message = format!(
            "its host key changed from {} although its machine keeps it: somebody may answer in its \
             place",
            known.key
        );
        return Err(Problem::new(Code::Refused, "HostKeyChanged", message)
            .of(object)
            .field("status.hostKeys")
            .next(format!(
                "ask the platform team; if they know why: devctl known-hosts --forget {}",
                workspace.name()
            )));
    }
    let uid = workspace.uid();
    let lines = keys
        .iter()
        .map(|key| format!("{name} {key} uid={uid} machine={machine}"));
    let lines = others.iter().map(|line| (*line).to_owned()).chain(lines);
    Ok(Pinned {
        content: lines.map(|line| line + "\n").collect(),
        is_new_machine: !changed.is_empty(),
    })
}

/// The file without the keys of a workspace, of all its pods and in all namespaces.
pub fn forget(content: &str, workspace: &str) -> String {
    let is_other = |line: &&str| {
        let host = line
            .trim_end()
            .split(' ')
            .next()
            .and_then(|name| name.parse::<Host>().ok());
        host.is_none_or(|host| host.workspace.as_str() != workspace)
    };
    let lines = content.split_inclusive('\n');
    lines.filter(is_other).collect()
}

const UNKNOWN: &str = "the platform does not know its SSH host key, so devctl cannot tell whether the \
                       right machine answers";

/// A pinned key.
struct Known<'a> {
    key: String,
    uid: &'a str,
    machine: &'a str,
}

impl<'a> Known<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, kind, key, uid, machine] = fields[..] else {
            return None;
        };
        Some(Self {
            key: format!("{kind} {key}"),
            uid: uid.strip_prefix("uid=")?,
            machine: machine.strip_prefix("machine=")?,
        })
    }
}

fn machine(workspace: Workspace<'_>) -> &str {
    match workspace.placement() {
        Placement::Cluster => PODS,
        Placement::Ec2 => {
            let id = workspace.status("instanceId").filter(|id| is_id(id));
            id.unwrap_or("unknown")
        }
    }
}

/// Whether a text is an id that cannot begin another line or field of the file.
fn is_id(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Whether each machine of the workspace has the same keys: an agent keeps them in the home.
fn keeps_keys(workspace: Workspace<'_>) -> bool {
    let has_agent = workspace.claim().pointer("/status/activity").is_some();
    workspace.has_home() && has_agent
}

/// Whether a text is one host key, and nothing else that ssh would read from the file.
fn is_key(text: &str) -> bool {
    let fields: Vec<&str> = text.split(' ').collect();
    let [kind, key] = fields[..] else {
        return false;
    };
    let is_kind = |c: char| c.is_ascii_alphanumeric() || "-@.".contains(c);
    let is_key = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    !kind.is_empty()
        && kind.chars().all(is_kind)
        && !kind.starts_with('@')
        && !key.is_empty()
        && key.chars().all(is_key)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(uid: &str, instance: &str, key: &str) -> Value {
        json!({
            "metadata": {"name": "my-dev", "namespace": "team", "uid": uid},
            "spec": {"parameters": {"placement": "EC2"}},
            "status": {"hostKeys": [format!("ssh-ed25519 {key}")], "instanceId": instance},
        })
    }

    fn pinned(content: &str, claim: &Value) -> Result<Pinned, Problem> {
        pin(
            content,
            &"my-dev.ws".parse().unwrap(),
            Workspace::new(claim),
        )
    }

    #[test]
    fn the_keys_of_other_hosts_stay() {
        let other = "other.ws ssh-ed25519 OTHER uid=x machine=pods\n";
        let content = pinned(other, &claim("1", "i-1", "KEY")).unwrap().content;
        assert_eq!(
            content,
            format!("{other}my-dev.ws ssh-ed25519 KEY uid=1 machine=i-1\n")
        );
        assert_eq!(
            pinned(&content, &claim("1", "i-1", "KEY")).unwrap().content,
            content
        );
        assert_eq!(forget(&content, "my-dev"), other);
    }

    #[test]
    fn another_key_of_the_same_machine_is_refused() {
        let before = pinned("", &claim("1", "i-1", "KEY")).unwrap().content;
        let refused = pinned(&before, &claim("1", "i-1", "EVIL")).unwrap_err();
        assert_eq!(refused.reason, "HostKeyChanged");
        assert!(refused.lines()[0].text().contains("team/my-dev"));
    }

    #[test]
    fn a_new_machine_without_a_home_brings_a_new_key() {
        let before = pinned("", &claim("1", "i-1", "KEY")).unwrap().content;
        let after = pinned(&before, &claim("1", "i-2", "NEW")).unwrap();
        assert!(after.is_new_machine && !after.content.contains("KEY"));
    }

    #[test]
    fn a_machine_whose_home_keeps_the_keys_never_has_another_one() {
        let mut kept = claim("1", "i-1", "KEY");
        kept["spec"]["parameters"]["home"] = json!({"size": "10Gi"});
        kept["status"]["activity"] = json!({"verdict": "Active"});
        let before = pinned("", &kept).unwrap().content;
        let mut swapped = kept;
        swapped["status"]["instanceId"] = json!("i-2");
        assert_eq!(
            pinned(&before, &swapped)
                .unwrap()
                .content
                .matches("i-2")
                .count(),
            1
        );
        swapped["status"]["hostKeys"] = json!(["ssh-ed25519 EVIL"]);
        assert_eq!(
            pinned(&before, &swapped).unwrap_err().reason,
            "HostKeyChanged"
        );
    }

    #[test]
    fn a_status_adds_no_line_to_the_file() {
        let hostile = claim("1", "i-1\n*.ws ssh-ed25519 EVIL", "KEY");
        let content = pinned("", &hostile).unwrap().content;
        assert_eq!(content, "my-dev.ws ssh-ed25519 KEY uid=1 machine=unknown\n");
    }

    #[test]
    fn pods_keep_their_key() {
        let mut pods = claim("1", "", "KEY");
        pods["spec"]["parameters"]["placement"] = json!("Cluster");
        let before = pinned("", &pods).unwrap().content;
        pods["status"]["hostKeys"] = json!(["ssh-ed25519 EVIL"]);
        assert_eq!(pinned(&before, &pods).unwrap_err().reason, "HostKeyChanged");
    }

    #[test]
    fn a_new_claim_of_the_same_name_is_not_refused() {
        let before = pinned("", &claim("1", "i-1", "KEY")).unwrap().content;
        let after = pinned(&before, &claim("2", "i-1", "NEW")).unwrap();
        assert!(!after.is_new_machine);
        assert!(!after.content.contains("KEY"));
    }

    #[test]
    fn a_workspace_whose_key_nobody_knows_is_refused() {
        for keys in [
            json!([]),
            json!(["ssh-ed25519 A\nother.ws ssh-ed25519 B"]),
            json!(["x"]),
        ] {
            let mut unknown = claim("1", "i-1", "KEY");
            unknown["status"]["hostKeys"] = keys;
            assert_eq!(pinned("", &unknown).unwrap_err().reason, "HostKeyUnknown");
        }
    }
}
