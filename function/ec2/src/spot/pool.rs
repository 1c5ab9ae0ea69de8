//! The desired `SpotPool` of one workspace, with one instance.

use api::capacity::{CapacityType, InstanceCapacityType};
use api::home::PoolHome;
use api::managed::all_actions;
use api::policy::WorkspacePolicy;
use api::pool::{
    PoolImage, PoolInstance, PoolReplace, PoolSize, PoolSsh, SpotPoolParameters, SpotPoolSpec,
};
use api::{POOL_GROUP, VERSION};
use function_runtime::json::Json;
use function_runtime::outcome::Refusal;
use function_runtime::resource_names::hashed;
use function_workspace::bastion::Sources;
use function_workspace::setup;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::resolved::Resolved;
use crate::resource_names;
use crate::spot::home;
use crate::spot::observed::{KIND, ObservedPool};

/// The security groups that a pool's own group admits.
const SECURITY_GROUPS: &str = "allowedSecurityGroupIds";

/// The composition resource name of a new pool: the plain name, if no observed pool has it.
pub fn fresh_name(resolved: &Resolved, market: CapacityType, plain_is_taken: bool) -> String {
    if !plain_is_taken {
        return resource_names::POOL.to_owned();
    }
    let types = resolved.instance_types.iter().map(String::as_str);
    let image = resolved
        .is_image_named
        .then_some(resolved.image.id.as_str());
    let parts = types.chain([market.as_str()]).chain(image);
    hashed(resource_names::POOL_PREFIX, parts)
}

/// Whether the instances of a pool match the resolved workspace, so that the pool can be updated. A
/// pool without instances always matches.
pub fn fits(pool: &ObservedPool, resolved: &Resolved, market: CapacityType) -> bool {
    // Only this pool can attach its home volume, so the pool stays. Another image replaces its
    // instance, see `PoolReplace::other_image`. Other changes apply to its next instance.
    let mut instances = pool.starting_or_running();
    pool.has_home()
        || (all_fit(pool, resolved, market)
            && instances.all(|instance| has_image(instance, resolved)))
}

/// Whether a pool has an instance of another type or market, and keeps it for the sake of its home.
pub fn keeps_another(pool: &ObservedPool, resolved: &Resolved, market: CapacityType) -> bool {
    pool.has_home() && !all_fit(pool, resolved, market)
}

fn all_fit(pool: &ObservedPool, resolved: &Resolved, market: CapacityType) -> bool {
    pool.starting_or_running().all(|i| {
        let market_fits = match market {
            CapacityType::Spot => i.capacity_type == InstanceCapacityType::Spot,
            CapacityType::SpotWithFallback => true,
            CapacityType::OnDemand => i.capacity_type == InstanceCapacityType::OnDemand,
        };
        market_fits && resolved.instance_types.contains(&i.instance_type)
    })
}

/// Whether an instance booted the image that claim or flavor names. An image that only the policy
/// names applies to the next instance.
fn has_image(instance: &PoolInstance, resolved: &Resolved) -> bool {
    !resolved.is_image_named || instance.image_id == resolved.image.id
}

/// The desired pool. Crossplane chooses its name. Labels and annotations of the composite are not
/// copied, because other controllers react to them.
pub fn desired(
    resolved: &Resolved,
    market: CapacityType,
    policy: &WorkspacePolicy,
    observed: Option<&ObservedPool>,
) -> Result<Value, Refusal> {
    let spec = spec(
        resolved,
        market,
        policy,
        home::desired(resolved, policy, observed),
    );
    let mut spec =
        serde_json::to_value(spec).map_err(|error| Refusal::unwritable("the SpotPool", &error))?;
    // The field is left to the default of the API server, so that an operator may change it.
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("managementPolicies");
    }
    Ok(json!({
        "apiVersion": format!("{POOL_GROUP}/{VERSION}"),
        "kind": KIND,
        "metadata": {"namespace": resolved.origin.namespace},
        "spec": spec,
    }))
}

fn spec(
    resolved: &Resolved,
    market: CapacityType,
    policy: &WorkspacePolicy,
    home: Option<PoolHome>,
) -> SpotPoolSpec {
    let security_group_ids = non_empty(&resolved.network.security_group_ids);
    // The CRD refuses both together: the provider does not open groups of other owners.
    let ssh = security_group_ids.is_none().then(|| PoolSsh {
        allowed_cidrs: resolved.ssh_cidrs.clone(),
        allowed_security_group_ids: resolved.bastion_group.iter().cloned().collect(),
    });
    SpotPoolSpec {
        management_policies: all_actions(),
        provider_config_ref: policy.provider_config_ref.clone(),
        write_connection_secret_to_ref: None,
        for_provider: SpotPoolParameters {
            type_preference: api::pool::PoolTypePreference::default(),
            spread: None,
            fallback: None,
            replace: replace(resolved, policy),
            leases: None,
            ends_at: None,
            home,
            region: resolved.region.clone(),
            size: PoolSize {
                minimum: 1,
                maximum: 1,
                idle: 0,
            },
            capacity_type: market,
            instance_types: resolved.instance_types.clone(),
            zones: None,
            subnet_ids: non_empty(&resolved.network.subnet_ids),
            image: PoolImage {
                id: resolved.image.id.clone(),
            },
            user_data: Some(resolved.user_data.clone()),
            security_group_ids,
            ssh,
            authorized_keys: resolved.keys_in_tags.clone(),
            read_console: setup::is_awaited(policy.behaviour_version),
            root_volume_size_gib: resolved.root_volume_size_gib,
            kms_key_id: policy.instance.kms_key_id.clone(),
            iam_instance_profile: resolved.instance_profile.clone(),
            tags: resolved.tags(policy),
        },
    }
}

/// The instances that the pool replaces: those whose setup failed, and those of another image than
/// the one that claim or flavor names. Without a home, the function makes a second pool, which has
/// its instance before the first pool loses its own.
fn replace(resolved: &Resolved, policy: &WorkspacePolicy) -> Option<PoolReplace> {
    let replace = PoolReplace {
        not_set_up: setup::is_awaited(policy.behaviour_version),
        other_image: resolved.is_image_named && resolved.has_home,
        ..PoolReplace::default()
    };
    (replace != PoolReplace::default()).then_some(replace)
}

/// Sets the end of the run in a desired pool, so that the provider ends it in time even if
/// Crossplane does not call this function before.
pub fn end(pool: &mut Value, at: Option<Timestamp>) {
    let Some(parameters) = for_provider(pool) else {
        return;
    };
    match at {
        Some(at) => parameters.insert("endsAt".to_owned(), Value::String(format!("{at:.0}"))),
        None => parameters.remove("endsAt"),
    };
}

/// The end in an observed pool; none without one.
pub fn ends_at(pool: &Json<'_>) -> Option<Timestamp> {
    let at = pool.pointer("/spec/forProvider/endsAt")?;
    at.as_str()?.parse().ok()
}

/// Changes a desired pool so that it has no instances.
pub fn without_instances(mut pool: Value) -> Value {
    if let Some(parameters) = for_provider(&mut pool) {
        let none = json!({"minimum": 0, "maximum": 0, "idle": 0});
        parameters.insert("size".to_owned(), none);
    }
    pool
}

/// Opens a desired pool to these sources, and to no others. A pool with groups of other owners is
/// opened to none.
pub fn open_only(pool: &mut Value, sources: &Sources) {
    let ssh = pool.pointer_mut("/spec/forProvider/ssh");
    let Some(ssh) = ssh.and_then(Value::as_object_mut) else {
        return;
    };
    ssh.insert("allowedCidrs".to_owned(), json!(sources.cidrs));
    match &sources.security_group_id {
        Some(id) => ssh.insert(SECURITY_GROUPS.to_owned(), json!([id])),
        None => ssh.remove(SECURITY_GROUPS),
    };
}

/// The parameters of a pool. They are edited in place, so that a kept pool keeps all observed
/// fields, including fields that this version does not know.
fn for_provider(pool: &mut Value) -> Option<&mut Map<String, Value>> {
    pool.pointer_mut("/spec/forProvider")?.as_object_mut()
}

fn non_empty(list: &[String]) -> Option<Vec<String>> {
    (!list.is_empty()).then(|| list.to_vec())
}
