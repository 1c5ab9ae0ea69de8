//! Policy, catalogue and parameters put together: the desired pool, or why there
//! is none.

use api::catalogue::{Catalogue, Network};
use api::policy::WorkspacePolicy;
use api::workspace::{ChosenImage, WorkspaceParameters};
use serde_json::Value;

use crate::claim_paths::ClaimPaths;
use crate::composite::Composite;
use crate::observed::ObservedPool;
use crate::pool::{self, Wanted};
use crate::refusal::Refusal;
use crate::render::Unresolved;
use crate::request::Required;
use crate::user_data::UserData;
use crate::{catalogue, image, limits, software};

/// A workspace about which everything is known.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The desired `SpotPool`.
    pub pool: Value,
    /// The image it boots.
    pub image: ChosenImage,
    /// Where the pool's fields come from.
    pub paths: ClaimPaths,
    /// What keeps the user out although nothing is wrong; empty for nothing.
    pub notice: String,
}

/// Resolves a workspace. What the claim got wrong is found before the catalogue
/// is needed.
pub fn workspace(
    policy: &WorkspacePolicy,
    composite: Composite<'_>,
    observed: Option<&ObservedPool>,
    required: &Required,
) -> Result<Workspace, Unresolved> {
    let origin = composite.origin()?;
    let parameters = composite.parameters().map_err(Refusal::Parameters)?;
    let types = limits::instance_types(&parameters);
    limits::check_instance_types(&types, policy).map_err(Refusal::Parameters)?;
    let ssh_cidrs = limits::ssh_cidrs(&parameters, policy).map_err(Refusal::Parameters)?;

    let catalogue = catalogue::read(required, &policy.catalogue.name)?;
    let recorded = composite.status().image;
    let booted = observed.and_then(|pool| pool.image_id.as_deref());
    let region = parameters.region.as_str();
    let image = image::choose(recorded.as_ref(), booted, region, &catalogue, policy)?;
    let software = software::choose(&parameters, &image)?;
    let public_keys = public_keys(&parameters, &catalogue);
    let network = catalogue.networks.get(region).cloned().unwrap_or_default();
    let user_data = UserData {
        owner: &parameters.owner,
        public_keys: &public_keys,
        sudo: policy.instance.sudo,
        software: &software,
    };
    let notice = notice(policy, &parameters, &public_keys, &ssh_cidrs, &network);
    let wanted = Wanted {
        origin: &origin,
        owner: &parameters.owner,
        region,
        capacity_type: parameters.capacity_type,
        instance_types: types.iter().map(|t| t.name.clone()).collect(),
        image: &image,
        user_data: user_data.document()?,
        ssh_cidrs,
        subnet_ids: network.subnet_ids,
        security_group_ids: network.security_group_ids,
    };
    Ok(Workspace {
        pool: pool::desired(wanted, policy)?,
        paths: ClaimPaths {
            catalogue: policy.catalogue.name.clone(),
            region: parameters.region.clone(),
            image: image.name.clone(),
            instance_types: types,
        },
        image,
        notice,
    })
}

/// The owner's keys from the catalogue, then the claim's, each once.
fn public_keys(parameters: &WorkspaceParameters, catalogue: &Catalogue) -> Vec<String> {
    let known = catalogue
        .owners
        .get(&parameters.owner)
        .map(|owner| &owner.public_keys);
    let claimed = parameters.ssh.as_ref().map(|ssh| &ssh.public_keys);
    let mut keys: Vec<String> = Vec::new();
    for key in known.into_iter().chain(claimed).flatten() {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

fn notice(
    policy: &WorkspacePolicy,
    parameters: &WorkspaceParameters,
    public_keys: &[String],
    ssh_cidrs: &[String],
    network: &Network,
) -> String {
    let catalogue = &policy.catalogue.name;
    let owner = &parameters.owner;
    let region = &parameters.region;
    let claims_networks = parameters
        .ssh
        .as_ref()
        .is_some_and(|ssh| !ssh.allowed_cidrs.is_empty());
    let mut notices = Vec::new();
    if public_keys.is_empty() {
        notices.push(format!(
            "nobody can log in: add a key to spec.parameters.ssh.publicKeys, or to \
             data.owners.{owner}.publicKeys of EnvironmentConfig {catalogue}"
        ));
    }
    if network.security_group_ids.is_empty() {
        if ssh_cidrs.is_empty() {
            notices.push(
                "nobody can connect: add the networks you connect from to \
                 spec.parameters.ssh.allowedCidrs"
                    .to_owned(),
            );
        }
    } else if claims_networks {
        notices.push(format!(
            "spec.parameters.ssh.allowedCidrs has no effect: region {region} uses the security \
             groups of EnvironmentConfig {catalogue}"
        ));
    }
    notices.join("; ")
}
