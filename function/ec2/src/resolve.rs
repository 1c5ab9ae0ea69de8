//! Resolves a workspace: combines policy, catalogue and parameters, or says why that is not
//! possible.

use api::capacity::CapacityType;
use api::catalogue::{Catalogue, Network};
use api::policy::{BehaviourVersion, OnDemandProvider, WorkspacePolicy};
use api::workspace::{Placement, WorkspaceHome, WorkspaceParameters};
use function_runtime::composite::Origin;
use function_runtime::outcome::{Hold, Problem, Refusal, Unresolved};
use function_runtime::request::Request;
use function_runtime::validation::{Violation, Violations};
use function_workspace::access::Access;
use function_workspace::catalogue::Known;
use function_workspace::placed::Claimed;
use function_workspace::{catalogue, claim, homes, owner, placement};
use thiserror::Error;

use crate::access::Sources;
use crate::choice::Choice;
use crate::claim_paths::ClaimPaths;
use crate::compose::Seen;
use crate::resolved::{Resolved, is_of_provider_aws};
use crate::user_data::UserData;
use crate::{access, capacity, image, instance_types, keys, region, resource_names, software};

/// The message about an on-demand workspace without a home volume.
const NOT_KEPT: &str = "each stop deletes the machine's disk with all files on it, because the \
                        workspace has no home: set spec.parameters.home to keep files";

/// A resolved workspace with its messages.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The resolved workspace.
    pub resolved: Resolved,
    /// The sources of the pool's fields, for messages.
    pub paths: ClaimPaths,
    /// Whether anybody can reach the workspace; none if its behaviour version does not decide.
    pub access: Option<Access>,
    /// Messages about settings that lock the owner out or have no effect. They are not errors.
    pub notices: Vec<String>,
}

/// Resolves a workspace. Errors of the claim are found before the catalogue is read.
pub fn workspace(
    policy: &WorkspacePolicy,
    claimed: &Claimed<'_>,
    parameters: &WorkspaceParameters,
    seen: &Seen<'_>,
) -> Result<Workspace, Unresolved> {
    let (request, composite) = (claimed.request, claimed.composite);
    let recorded = claimed.previous.image.as_ref();
    let origin = claim::origin(composite)?;
    placement::check(request, parameters, Placement::Ec2, resource_names::owns)?;
    root_is_apart(policy)
        .and_then(|()| keys::tags_are_valid(policy))
        .map_err(|violation| Refusal::policy(&violation.into()))?;
    let region = seen.region(Some(parameters), Some(policy));
    region::check(parameters, policy, region).map_err(Refusal::parameters)?;
    let recorded_choice = claimed.previous.choice.as_ref();
    let choice = Choice::of(parameters, policy, region, recorded_choice, request)?;
    let types = &choice.instance_types;
    let named = image::Named::of(parameters, &choice);
    image::check(named, policy).map_err(Refusal::parameters)?;
    let allowed =
        allowed(policy, parameters, &choice, region, seen).map_err(Refusal::parameters)?;
    let owner = &claimed.owner;
    owner::check(policy, claimed.composite, owner, &origin, request)?;

    let Known {
        catalogue,
        notices: told,
    } = catalogue::read(policy, request)?;
    instance_types::check_prices(types, region, policy, &catalogue)?;
    let network = network(
        policy,
        &catalogue,
        region,
        allowed.is_of_provider_aws(),
        request,
    )?;
    let booted = seen.booted_image();
    let image = image::choose(recorded, booted, named, region, &catalogue, policy)?;
    let packages = catalogue.packages.as_ref();
    let software = software::choose(parameters, policy, &image, packages)?;
    let keys = access::keys(policy, claimed, parameters, &catalogue)?;
    let (access, locked_out) = access::of(policy, claimed, &keys, &allowed.sources, Some(&network));
    let keys = keys::placed(keys, policy).map_err(Refusal::parameters)?;
    let user_data = UserData {
        behaviour: policy.behaviour_version,
        owner,
        public_keys: &keys.in_user_data,
        sudo: policy.instance.sudo,
        software: &software,
        ca_certificates: packages.map_or(&[], |packages| &packages.ca_certificates),
        package_index: packages.and_then(|packages| packages.index_url.as_deref()),
        image_id: &image.id,
        home: allowed.has_home,
        agent: policy.lifecycle.agent.as_ref(),
    };
    let ineffective = ineffective(policy, parameters, region, &allowed, &network);
    let loses_disk = allowed.is_on_demand_of_pool() && !allowed.has_home;
    let not_kept = loses_disk.then(|| NOT_KEPT.to_owned());
    Ok(Workspace {
        notices: told
            .into_iter()
            .chain(locked_out)
            .chain(ineffective)
            .chain(not_kept)
            .collect(),
        access,
        paths: ClaimPaths {
            catalogue: policy.catalogue.name.clone(),
            region: region.to_owned(),
            image: image.name.clone(),
            instance_types: types.clone(),
        },
        resolved: Resolved {
            composite: composite.id(),
            user_data: user_data.document()?,
            keys_in_tags: keys.in_tags,
            capacity_type: allowed.capacity_type,
            on_demand: allowed.on_demand,
            ssh_cidrs: allowed.sources.cidrs,
            bastion_group: allowed.sources.bastion_group,
            has_home: allowed.has_home,
            home_size_gib: parameters.home.as_ref().map(WorkspaceHome::gib),
            instance_types: types.iter().map(|t| t.name.clone()).collect(),
            owner: owner.clone(),
            region: region.to_owned(),
            is_image_named: named.is_some(),
            image,
            root_volume_size_gib: choice
                .root_volume_size_gib
                .or(policy.instance.root_volume_size_gib),
            instance_profile: instance_profile(policy, &catalogue, owner, &origin),
            choice: choice.record.clone(),
            opencv: software.opencv.clone(),
            pytorch: software.pytorch.map(|pytorch| pytorch.version),
            network,
            origin,
        },
    })
}

/// Refuses version v1 for owners without sudo. Its setup puts a folder of the owner on the `PATH` of
/// root, so a program there would run as root at root's next login.
fn root_is_apart(policy: &WorkspacePolicy) -> Result<(), Violation> {
    if policy.behaviour_version != BehaviourVersion::V1 || policy.instance.sudo {
        return Ok(());
    }
    let problem = "v1 needs input.instance.sudo, since its setup gives owners the rights of root: \
                   use v2 or later";
    Err(Violation::new("input.behaviourVersion", problem))
}

/// The claim's parameters that the policy allows.
struct Allowed {
    has_home: bool,
    capacity_type: CapacityType,
    on_demand: OnDemandProvider,
    sources: Sources,
}

impl Allowed {
    fn is_on_demand_of_pool(&self) -> bool {
        self.capacity_type == CapacityType::OnDemand && !self.is_of_provider_aws()
    }

    fn is_of_provider_aws(&self) -> bool {
        is_of_provider_aws(self.capacity_type, self.on_demand)
    }
}

fn allowed(
    policy: &WorkspacePolicy,
    parameters: &WorkspaceParameters,
    choice: &Choice,
    region: &str,
    seen: &Seen<'_>,
) -> Result<Allowed, Violations> {
    instance_types::check(&choice.instance_types, policy)?;
    homes::check(parameters, policy)?;
    let sources = Sources::of(parameters, policy, region, seen.is_on())?;
    Ok(Allowed {
        has_home: parameters.home.is_some() || seen.home_keeper().is_some(),
        capacity_type: capacity::capacity_type(parameters, policy, choice, seen.home_keeper())?,
        on_demand: capacity::on_demand_provider(policy, seen.maker()),
        sources,
    })
}

/// The network in the catalogue for the region.
fn network(
    policy: &WorkspacePolicy,
    catalogue: &Catalogue,
    region: &str,
    is_of_provider_aws: bool,
    request: &Request,
) -> Result<Network, Hold> {
    let network = catalogue.networks.get(region).cloned().unwrap_or_default();
    let needs_group = is_of_provider_aws
        && network.security_group_ids.is_empty()
        && !request
            .observed
            .contains_key(resource_names::SECURITY_GROUP);
    if needs_group && !network.subnet_ids.is_empty() && network.vpc_id.is_none() {
        return Err(Hold::from(NetworkIncomplete {
            name: policy.catalogue.name.clone(),
            region: region.to_owned(),
        }));
    }
    Ok(network)
}

/// The instance profile of the owner, or else of the namespace, or else of the policy.
fn instance_profile(
    policy: &WorkspacePolicy,
    catalogue: &Catalogue,
    owner: &str,
    origin: &Origin,
) -> Option<String> {
    let listed = catalogue.instance_profiles.as_ref();
    let listed = listed.and_then(|profiles| {
        let of_owner = profiles.owners.get(owner);
        of_owner.or_else(|| profiles.namespaces.get(&origin.namespace))
    });
    listed
        .or(policy.instance.iam_instance_profile.as_ref())
        .cloned()
}

/// Messages about settings of the claim that have no effect.
fn ineffective(
    policy: &WorkspacePolicy,
    parameters: &WorkspaceParameters,
    region: &str,
    allowed: &Allowed,
    network: &Network,
) -> Vec<String> {
    let catalogue = &policy.catalogue.name;
    let claims_networks = parameters
        .ssh
        .as_ref()
        .is_some_and(|ssh| !ssh.allowed_cidrs.is_empty());
    let mut messages = Vec::from_iter(allowed.sources.closed.clone());
    if claims_networks && !network.security_group_ids.is_empty() {
        messages.push(format!(
            "spec.parameters.ssh.allowedCidrs has no effect: region {region} uses the security \
             groups of EnvironmentConfig {catalogue}"
        ));
    }
    let chooser = [
        ("flavor", parameters.flavor.is_some()),
        ("gpu", parameters.gpu.is_some()),
    ];
    let chooser = chooser.into_iter().find(|(_, is_set)| *is_set);
    if let (Some((field, _)), Some(_)) = (chooser, &parameters.instance_type) {
        messages.push(format!(
            "spec.parameters.instanceType has no effect beside spec.parameters.{field}"
        ));
    }
    if allowed.is_of_provider_aws() && !parameters.instance_types.is_empty() {
        messages.push(
            "spec.parameters.instanceTypes has no effect with capacityType OnDemand".to_owned(),
        );
    }
    messages
}

/// The catalogue names subnets without their VPC, but the workspace needs a security group.
#[derive(Clone, Debug, Error)]
#[error(
    "EnvironmentConfig {name} has data.networks.{region}.subnetIds and neither vpcId nor \
         securityGroupIds: an on-demand workspace needs a group in the subnets' VPC, add one of \
         the two"
)]
struct NetworkIncomplete {
    /// The name of the `EnvironmentConfig`.
    name: String,
    /// The region of the workspace.
    region: String,
}

impl Problem for NetworkIncomplete {
    fn reason(&self) -> &'static str {
        "NetworkIncomplete"
    }
}
