//! Who can enter a machine: the sources that may connect to it, and the keys that log in.

use api::catalogue::{Catalogue, Network};
use api::policy::{BehaviourVersion, WorkspacePolicy};
use api::workspace::{Placement, WorkspaceParameters};
use function_runtime::outcome::{Hold, Refusal, Unresolved};
use function_runtime::validation::Violations;
use function_workspace::access::Access;
use function_workspace::cause::Cause;
use function_workspace::placed::Claimed;
use function_workspace::public_keys::PublicKeys;
use function_workspace::reach::{Admitted, Reach};
use function_workspace::ssh_networks::Networks;
use function_workspace::{bastion, catalogue, claim, dev_user, owner, public_keys, ssh_networks};

use crate::compose::Seen;
use crate::requirements;

/// The access to a machine and, where the behaviour version does not decide it, the messages about who
/// is locked out.
pub type AccessAndMessages = (Option<Access>, Vec<String>);

/// The sources that a workspace admits to port 22.
pub struct Sources {
    /// The networks of the workspace, then those of the bastion.
    pub cidrs: Vec<String>,
    /// The security group of the bastion.
    pub bastion_group: Option<String>,
    /// The message about closed networks of the claim.
    pub closed: Option<String>,
    /// Whether the bastion may connect.
    admits_bastion: bool,
}

impl Sources {
    /// The sources of a workspace in a region. `is_on` says whether it has a machine.
    ///
    /// # Errors
    ///
    /// The policy does not allow the claim's networks.
    pub fn of(
        parameters: &WorkspaceParameters,
        policy: &WorkspacePolicy,
        region: &str,
        is_on: bool,
    ) -> Result<Self, Violations> {
        let Networks { mut cidrs, closed } = ssh_networks::of(parameters, policy, is_on)?;
        let bastion = bastion::sources(policy, region);
        let admits_bastion = !bastion.is_empty();
        for network in bastion.cidrs {
            if !cidrs.contains(&network) {
                cidrs.push(network);
            }
        }
        Ok(Self {
            cidrs,
            bastion_group: bastion.security_group_id,
            closed,
            admits_bastion,
        })
    }

    /// Who may connect to the machine. Whom the security groups of others admit is not known.
    fn reach(&self, policy: &WorkspacePolicy, network: Option<&Network>) -> Reach {
        let is_of_others = network.is_some_and(|network| !network.security_group_ids.is_empty());
        let admitted = Admitted {
            anybody: is_of_others || !self.cidrs.is_empty() || self.bastion_group.is_some(),
            bastion: is_of_others || self.admits_bastion,
        };
        Reach::of(policy, Placement::Ec2, admitted)
    }
}

/// The keys that log in to a workspace.
///
/// # Errors
///
/// Crossplane has not fetched the owner's `DevUser`.
pub fn keys(
    policy: &WorkspacePolicy,
    claimed: &Claimed<'_>,
    parameters: &WorkspaceParameters,
    catalogue: &Catalogue,
) -> Result<PublicKeys, Hold> {
    let owner = &claimed.owner;
    let counts = requirements::with_keys_of_dev_users(policy);
    let user = dev_user::of(counts, claimed.request, owner)?;
    let further = dev_user::public_keys(user);
    Ok(PublicKeys::of(
        owner, parameters, catalogue, policy, &further,
    ))
}

/// The access to a machine with these keys, sources and the catalogue's network.
pub fn of(
    policy: &WorkspacePolicy,
    claimed: &Claimed<'_>,
    keys: &PublicKeys,
    sources: &Sources,
    network: Option<&Network>,
) -> AccessAndMessages {
    let suspended = claimed.suspended.as_ref();
    let has_keys = *keys != PublicKeys::default();
    let no_keys = no_keys(suspended, has_keys, policy, &claimed.owner);
    let reach = sources.reach(policy, network);
    let access = Access::of(policy, suspended, no_keys.as_deref(), &reach);
    let closed = reach.closed.map(|closed| closed.message);
    let locked_out = no_keys.into_iter().chain(closed.or(reach.without_bastion));
    // From v3 on, `AccessReady` says who is locked out.
    let locked_out = locked_out.filter(|_| access.is_none());
    let locked_out = locked_out.collect();
    (access, locked_out)
}

/// The access that a workspace at rest would have; none before v3, which reports none.
///
/// # Errors
///
/// The claim's owner or networks are not allowed, or Crossplane has not fetched the catalogue or the
/// owner's `DevUser`.
pub fn at_rest(
    policy: &WorkspacePolicy,
    claimed: &Claimed<'_>,
    parameters: &WorkspaceParameters,
    seen: &Seen<'_>,
) -> Result<Option<Access>, Unresolved> {
    match policy.behaviour_version {
        BehaviourVersion::V1 | BehaviourVersion::V2 => return Ok(None),
        BehaviourVersion::V3 => {}
    }
    let (request, composite) = (claimed.request, claimed.composite);
    let origin = claim::origin(composite)?;
    owner::check(policy, composite, &claimed.owner, &origin, request)?;
    let region = seen.region(Some(parameters), Some(policy));
    let sources = Sources::of(parameters, policy, region, seen.is_on());
    let sources = sources.map_err(Refusal::parameters)?;
    let catalogue = catalogue::read(policy, request)?.catalogue;
    let keys = keys(policy, claimed, parameters, &catalogue)?;
    let network = catalogue.networks.get(region);
    Ok(of(policy, claimed, &keys, &sources, network).0)
}

/// Why no key may log in; none if one may.
fn no_keys(
    suspended: Option<&Cause>,
    has_keys: bool,
    policy: &WorkspacePolicy,
    owner: &str,
) -> Option<String> {
    let missing = || public_keys::missing(&public_keys::in_catalogue(policy, owner));
    let of_suspended = suspended.map(|cause| cause.message.clone());
    of_suspended.or_else(|| (!has_keys).then(missing))
}
