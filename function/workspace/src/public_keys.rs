//! The SSH public keys that may log in to a workspace.

use api::catalogue::Catalogue;
use api::policy::WorkspacePolicy;
use api::workspace::WorkspaceParameters;

use crate::authorities;

/// Who may log in to a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicKeys {
    /// The owner's keys in the catalogue, then the keys of the claim, then further keys. Each key
    /// occurs once.
    pub keys: Vec<String>,
    /// A line of `authorized_keys` for each of the policy's certificate authorities.
    pub authorities: Vec<String>,
}

impl PublicKeys {
    /// The keys of a workspace of `owner`. `further` keys come after those of the claim.
    pub fn of(
        owner: &str,
        parameters: &WorkspaceParameters,
        catalogue: &Catalogue,
        policy: &WorkspacePolicy,
        further: &[String],
    ) -> Self {
        let known = catalogue.owners.get(owner).map(|owner| &owner.public_keys);
        let claimed = parameters.ssh.as_ref().map(|ssh| &ssh.public_keys);
        let mut keys: Vec<String> = Vec::new();
        for key in known.into_iter().chain(claimed).flatten().chain(further) {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        Self {
            keys,
            authorities: authorities::lines(policy, owner),
        }
    }

    /// All lines of `authorized_keys`.
    pub fn lines(self) -> Vec<String> {
        [self.keys, self.authorities].concat()
    }
}

/// The message for a workspace without a key. `elsewhere` names another place for keys.
pub fn missing(elsewhere: &str) -> String {
    format!("nobody can log in: add a key to spec.parameters.ssh.publicKeys, or to {elsewhere}")
}

/// The place of the owner's keys in the catalogue, for messages.
pub fn in_catalogue(policy: &WorkspacePolicy, owner: &str) -> String {
    let catalogue = &policy.catalogue.name;
    format!("data.owners.{owner}.publicKeys of EnvironmentConfig {catalogue}")
}
