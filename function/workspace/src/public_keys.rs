//! The SSH keys that open a workspace.

use api::catalogue::Catalogue;
use api::policy::WorkspacePolicy;
use api::workspace::WorkspaceParameters;

/// The owner's keys from the catalogue, then the claim's and further ones, each once.
pub fn of(
    parameters: &WorkspaceParameters,
    catalogue: &Catalogue,
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
    keys
}

/// What is missing without a key, which may be added `elsewhere` as well.
pub fn missing(elsewhere: &str) -> String {
    format!("nobody can log in: add a key to spec.parameters.ssh.publicKeys, or to {elsewhere}")
}

/// Where the catalogue has the owner's keys.
pub fn in_catalogue(policy: &WorkspacePolicy, parameters: &WorkspaceParameters) -> String {
    let catalogue = &policy.catalogue.name;
    let owner = &parameters.owner;
    format!("data.owners.{owner}.publicKeys of EnvironmentConfig {catalogue}")
}
