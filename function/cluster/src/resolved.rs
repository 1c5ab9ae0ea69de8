//! The resolved workspace in the cluster: policy, flavor and claim combined.

use std::collections::BTreeMap;

use api::flavor::WorkspaceFlavorSpec;
use api::home::HomeOnDelete;
use api::lifecycle::WorkspaceState;
use api::policy::{ClusterPolicy, WorkspacePolicy};
use api::workspace::{Placement, WorkspaceParameters};
use function_runtime::outcome::Refusal;
use function_runtime::outcome::Unresolved;
use function_runtime::request::Request;
use function_runtime::validation::Violation;
use function_workspace::access::Access;
use function_workspace::catalogue::Known;
use function_workspace::cause::Cause;
use function_workspace::claim;
use function_workspace::placed::{Claimed, Leftovers};
use function_workspace::public_keys::PublicKeys;
use function_workspace::reach::{Admitted, Reach};
use function_workspace::{
    bastion, catalogue, dev_user, flavor, homes, owner, placement, public_keys, ssh_networks,
};

use crate::names::{Names, Naming};
use crate::network::{self, Egress};
use crate::record::Record;
use crate::{choice, identity, required, resource_names};

/// A resolved workspace in the cluster.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The names of the workspace's objects.
    pub names: Names,
    /// The owner of the workspace.
    pub owner: String,
    /// The SSH public keys that may log in.
    pub public_keys: Vec<String>,
    /// The networks that may connect by SSH.
    pub ssh_cidrs: Vec<String>,
    /// The pods of the bastion, which may connect by SSH; none without a bastion.
    pub bastion: Option<bastion::Pods>,
    /// What the pods reach.
    pub egress: Egress,
    /// Whether the workspace is to run.
    pub state: WorkspaceState,
    /// Whether the workspace has been stopped for so long that its homes are deleted, and the
    /// policy allows that.
    pub deletes_what_is_left: bool,
    /// The record for the next start of the pods, or why they cannot start. An error here neither
    /// ends running pods nor prevents a stop.
    pub made_from: Result<Record, Unresolved>,
    /// The home; none if the claim has none.
    pub home: Option<ResolvedHome>,
    /// The owner's `DevUser`; none if the policy does not use `DevUser`s.
    pub dev_user: Option<OwnerUid>,
    /// The number of homes that the claim asks for.
    pub homes: i32,
    /// Whether the home is deleted with the claim.
    pub deletes_home: bool,
    /// Messages about settings that lock the owner out or lose files. They are not errors.
    pub notices: Vec<String>,
    /// Whether anybody can log in; none if the behaviour version does not decide.
    pub access: Option<Access>,
}

/// A home to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedHome {
    /// The size in GiB.
    pub size_gib: i32,
    /// The storage class; none for the default class of the cluster.
    pub storage_class: Option<String>,
    /// The UID of the owner's `DevUser`, with which the home is marked; none for a home without a
    /// mark.
    pub owner_uid: Option<String>,
}

/// The UID of the owner's `DevUser`; none if there is no such `DevUser`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerUid(pub Option<String>);

impl ResolvedHome {
    /// The annotations of a new home; none if there are none.
    pub fn annotations(&self) -> Option<BTreeMap<String, String>> {
        let uid = self.owner_uid.clone()?;
        Some([(identity::OWNER_UID.to_owned(), uid)].into())
    }
}

/// Resolves a workspace. Errors of the claim are found before required resources are read. `is_on`
/// tells whether pods run or are to run, so that the workspace must not end.
pub fn resolved(
    policy: &WorkspacePolicy,
    claimed: &Claimed<'_>,
    parameters: &WorkspaceParameters,
    state: WorkspaceState,
    leftovers: Leftovers,
    is_on: bool,
) -> Result<Resolved, Unresolved> {
    let request = claimed.request;
    let origin = claim::origin(claimed.composite)?;
    let naming = Naming::of(claimed, &origin, Some(policy));
    placement::check(
        request,
        parameters,
        Placement::Cluster,
        resource_names::owns,
    )?;
    let Some(cluster) = &policy.cluster else {
        let problem = "must be EC2: the policy has no input.cluster";
        let violation = Violation::new("spec.parameters.placement", problem);
        return Err(Refusal::parameters(violation).into());
    };
    let networks = ssh_networks::of(parameters, policy, is_on).map_err(Refusal::parameters)?;
    homes::check(parameters, policy).map_err(Refusal::parameters)?;
    let owner = &claimed.owner;
    owner::check(policy, claimed.composite, owner, &origin, request)?;

    let Known {
        catalogue,
        notices: told,
    } = catalogue::read(policy, request)?;
    let user = dev_user::of(cluster.dev_users, request, owner)?;
    let further = dev_user::public_keys(user);
    let keys = PublicKeys::of(owner, parameters, &catalogue, policy, &further).lines();
    let suspended = claimed.suspended.as_ref();
    // Keys of claim and catalogue are those of the same person.
    let keys = suspended.map_or(keys, |_| Vec::new());
    let owner_uid = cluster.dev_users.then(|| OwnerUid(dev_user::uid(user)));
    let flavor = flavor(request, cluster, parameters);
    let storage_class = flavor
        .as_ref()
        .ok()
        .and_then(|(_, spec)| spec.storage_class_name.clone());
    let made_from = flavor.and_then(|(name, spec)| {
        let is_bounded = network::is_closed(policy.behaviour_version);
        let pods = choice::pods(parameters, cluster, name, &spec, is_bounded);
        Ok(Record {
            pods: pods.map_err(Refusal::parameters)?,
            owner: owner.clone(),
            domain: cluster.domain.clone(),
        })
    });
    let no_keys = keys.is_empty().then(|| match suspended {
        Some(cause) => cause.message.clone(),
        None => no_keys(policy, cluster, owner),
    });
    let bastion = bastion::pods(policy);
    let admitted = Admitted {
        anybody: !networks.cidrs.is_empty() || bastion.is_some(),
        bastion: bastion.is_some(),
    };
    let (access, unreached) = access(policy, suspended, no_keys.as_deref(), admitted);
    Ok(Resolved {
        names: naming.names(&cluster.domain),
        notices: [
            told,
            notices(parameters, no_keys.filter(|_| access.is_none()), unreached),
            Vec::from_iter(networks.closed),
        ]
        .concat(),
        bastion,
        access,
        owner: owner.clone(),
        public_keys: keys,
        ssh_cidrs: networks.cidrs,
        egress: Egress::of(policy.behaviour_version, &cluster.egress),
        state,
        deletes_what_is_left: leftovers == Leftovers::Go
            && policy.home.on_delete == HomeOnDelete::Delete,
        made_from,
        home: parameters.home.as_ref().map(|home| ResolvedHome {
            size_gib: home.gib(),
            storage_class,
            owner_uid: owner_uid
                .clone()
                .and_then(|OwnerUid(uid)| uid)
                .filter(|_| naming.is_prefixed()),
        }),
        homes: required::homes(parameters),
        dev_user: owner_uid,
        deletes_home: policy.home.on_delete == HomeOnDelete::Delete,
    })
}

/// The access to the pods, and the message about who may not connect, if the access does not say it.
fn access(
    policy: &WorkspacePolicy,
    suspended: Option<&Cause>,
    no_keys: Option<&str>,
    admitted: Admitted,
) -> (Option<Access>, Option<String>) {
    let mut reach = Reach::of(policy, Placement::Cluster, admitted);
    // A port that `kubectl` forwards reaches a pod that no network may connect to. Where only the
    // bastion is to connect, nobody is to come in by that port.
    let is_of_bastion_only = ssh_networks::is_of_bastion_only(policy);
    let by_port = reach.closed.take_if(|_| !is_of_bastion_only);
    let access = Access::of(policy, suspended, no_keys, &reach);
    let closed = by_port.or_else(|| reach.closed.filter(|_| access.is_none()));
    let closed = closed.map(|closed| closed.message);
    let past = reach.without_bastion.filter(|_| access.is_none());
    (access, closed.or(past))
}

/// The name and the spec of the flavor that the claim asks for.
fn flavor<'a>(
    request: &Request,
    cluster: &'a ClusterPolicy,
    parameters: &'a WorkspaceParameters,
) -> Result<(&'a str, WorkspaceFlavorSpec), Unresolved> {
    let name = choice::flavor(parameters, cluster).map_err(Refusal::parameters)?;
    Ok((name, flavor::of(request, name)?))
}

fn notices(
    parameters: &WorkspaceParameters,
    no_keys: Option<String>,
    unreached: Option<String>,
) -> Vec<String> {
    let mut notices = Vec::from_iter(no_keys);
    notices.extend(unreached);
    if parameters.home.is_none() {
        notices.push(
            "files are lost when a pod ends: add spec.parameters.home to keep them".to_owned(),
        );
    }
    notices
}

/// The message for a workspace without a key.
fn no_keys(policy: &WorkspacePolicy, cluster: &ClusterPolicy, owner: &str) -> String {
    let elsewhere = if cluster.dev_users {
        format!("spec.publicKeys of DevUser {owner}")
    } else {
        public_keys::in_catalogue(policy, owner)
    };
    public_keys::missing(&elsewhere)
}
