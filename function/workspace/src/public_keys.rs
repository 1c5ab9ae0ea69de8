//! The SSH public keys that may log in to a workspace.

use api::catalogue::Catalogue;
use api::policy::WorkspacePolicy;
use api::workspace::WorkspaceParameters;

/// The owner's keys in the catalogue, then the keys of the claim, then `further` keys, then the
/// policy's certificate authorities. Each key occurs once.
pub fn of(
    parameters: &WorkspaceParameters,
    catalogue: &Catalogue,
    policy: &WorkspacePolicy,
    further: &[String],
) -> Vec<String> {
    let known = catalogue
        .owners
        .get(&parameters.owner)
        .map(|owner| &owner.public_keys);
    let claimed = parameters.ssh.as_ref().map(|ssh| &ssh.public_keys);
    let mut keys: Vec<String> = Vec::new();
    for key in known.into_iter().chain(claimed).flatten().chain(further) {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys.extend(authorities(policy, &parameters.owner));
    keys
}

/// A line of `authorized_keys` for each certificate authority (sshd(8), section about the format of
/// that file). It names the owner as the only principal. The pattern of owners' names has no character
/// that could end the quotes.
fn authorities(policy: &WorkspacePolicy, owner: &str) -> impl Iterator<Item = String> {
    let authorities = policy.ssh.iter().flat_map(|ssh| &ssh.user_authorities);
    authorities.map(move |key| format!("cert-authority,principals=\"{owner}\" {key}"))
}

/// The message for a workspace without a key. `elsewhere` names another place for keys.
pub fn missing(elsewhere: &str) -> String {
    format!("nobody can log in: add a key to spec.parameters.ssh.publicKeys, or to {elsewhere}")
}

/// The place of the owner's keys in the catalogue, for messages.
pub fn in_catalogue(policy: &WorkspacePolicy, parameters: &WorkspaceParameters) -> String {
    let catalogue = &policy.catalogue.name;
    let owner = &parameters.owner;
    format!("data.owners.{owner}.publicKeys of EnvironmentConfig {catalogue}")
}
