//! Policy, flavor and claim put together.

use api::cluster::{ChosenPods, WorkspaceState};
use api::policy::{ClusterPolicy, HomeOnDelete, WorkspacePolicy};
use api::workspace::WorkspaceParameters;

use super::names::Names;
use super::{choice, required};
use crate::composite::Composite;
use crate::hold::Hold;
use crate::refusal::Refusal;
use crate::render::Unresolved;
use crate::request::Request;
use crate::schema::Violation;
use crate::{catalogue, limits, owner, resolve};

/// A workspace about which everything is known.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What its objects are called.
    pub names: Names,
    /// Whose it is.
    pub owner: String,
    /// Who may log in.
    pub public_keys: Vec<String>,
    /// From where.
    pub ssh_cidrs: Vec<String>,
    /// Whether it is to run.
    pub state: WorkspaceState,
    /// What its pods are made of the next time that they start; or why nobody
    /// knows, which does not matter while they run.
    pub pods: Result<ChosenPods, Hold>,
    /// Its home.
    pub home: Option<WantedHome>,
    /// Whether the home is deleted with the claim.
    pub deletes_home: bool,
    /// What keeps the user out, although nothing is wrong.
    pub notices: Vec<String>,
}

/// A home to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedHome {
    /// Its size in GiB.
    pub size_gib: i32,
    /// Its storage class; the cluster's default for none.
    pub storage_class: Option<String>,
}

/// Resolves a workspace. What the claim got wrong is found before anything that
/// has to be fetched.
pub fn wanted(
    policy: &WorkspacePolicy,
    composite: Composite<'_>,
    request: &Request,
) -> Result<Wanted, Unresolved> {
    let origin = composite.origin()?;
    let parameters = composite.parameters().map_err(Refusal::Parameters)?;
    let Some(cluster) = &policy.cluster else {
        let problem = "must be EC2: the policy has no input.cluster";
        let violation = Violation::new("spec.parameters.placement", problem);
        return Err(Refusal::Parameters(violation.into()).into());
    };
    let flavor = choice::flavor(&parameters, cluster).map_err(Refusal::Parameters)?;
    let ssh_cidrs = limits::ssh_cidrs(&parameters, policy).map_err(Refusal::Parameters)?;
    limits::check_home(&parameters, policy).map_err(Refusal::Parameters)?;
    owner::check(policy, &parameters, &origin, request)?;

    let catalogue = catalogue::read(policy, request)?;
    let mut public_keys = resolve::public_keys(&parameters, &catalogue);
    for key in required::dev_user_keys(request, cluster, &parameters)? {
        if !public_keys.contains(&key) {
            public_keys.push(key);
        }
    }
    let known = required::flavor(request, flavor);
    let storage_class = known
        .as_ref()
        .ok()
        .and_then(|f| f.storage_class_name.clone());
    let pods = match known {
        Ok(spec) => {
            Ok(choice::pods(&parameters, cluster, flavor, &spec).map_err(Refusal::Parameters)?)
        }
        Err(hold) => Err(hold),
    };
    Ok(Wanted {
        names: Names::of(&origin, &cluster.domain),
        notices: notices(policy, cluster, &parameters, &public_keys),
        owner: parameters.owner,
        public_keys,
        ssh_cidrs,
        state: parameters.lifecycle.unwrap_or_default().state,
        pods,
        home: parameters.home.map(|home| WantedHome {
            size_gib: home.size_gib,
            storage_class,
        }),
        deletes_home: policy.home.on_delete == HomeOnDelete::Delete,
    })
}

fn notices(
    policy: &WorkspacePolicy,
    cluster: &ClusterPolicy,
    parameters: &WorkspaceParameters,
    public_keys: &[String],
) -> Vec<String> {
    let mut notices = Vec::new();
    if public_keys.is_empty() {
        let owner = &parameters.owner;
        let place = if cluster.dev_users {
            format!("spec.publicKeys of DevUser {owner}")
        } else {
            let catalogue = &policy.catalogue.name;
            format!("data.owners.{owner}.publicKeys of EnvironmentConfig {catalogue}")
        };
        notices.push(format!(
            "nobody can log in: add a key to spec.parameters.ssh.publicKeys, or to {place}"
        ));
    }
    if parameters.home.is_none() {
        notices.push(
            "files are lost when a pod ends: add spec.parameters.home to keep them".to_owned(),
        );
    }
    notices
}
