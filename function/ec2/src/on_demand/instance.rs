//! The desired on-demand instance.

use std::collections::BTreeMap;

use activity_report::{HOST_KEY, REPORT, SETUP};
use api::policy::WorkspacePolicy;
use function_runtime::desired::Composed;
use function_runtime::outcome::Refusal;
use function_runtime::resource_names::hashed;
use function_workspace::setup;
use serde_json::Value;

use crate::on_demand::OnDemandInstance;
use crate::on_demand::api::{
    Initial, Instance, Managed, MetadataOptions, OfSameComposite, RootBlockDevice,
};
use crate::on_demand::observed::UNWRITTEN;
use crate::resolved::Resolved;
use crate::resource_names;
use crate::user_data::{self, HOME_UNIT_NAME};

/// Where an instance must be created within its region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// The zone of the home volume; none without a home volume.
    pub zone: Option<&'a str>,
    /// The subnet: that of the home volume's first instance, or else the first in the catalogue.
    /// Without a subnet, EC2 chooses one in the default VPC.
    pub subnet: Option<&'a str>,
}

/// The composition resource name of a new instance. It is a hash of all fields that only a new
/// instance can change, and of the ids of its predecessors: an object whose instance is lost never
/// gets another one (see [`OnDemandInstance`]), so its name cannot be used again. `recorded` is the
/// machine of the last call, and `lost` are the other lost machines.
pub fn fresh_name<'a>(
    resolved: &'a Resolved,
    place: Place<'a>,
    recorded: Option<&'a str>,
    lost: impl Iterator<Item = &'a str>,
) -> String {
    let made_of = [
        resolved.instance_type(),
        &resolved.image.id,
        &resolved.user_data,
        place.zone.unwrap_or_default(),
        place.subnet.unwrap_or_default(),
        recorded.unwrap_or_default(),
    ];
    hashed(
        resource_names::INSTANCE_PREFIX,
        made_of.into_iter().chain(lost),
    )
}

/// Whether an instance matches the resolved workspace, so that it stays. User data counts only if
/// the policy says so, because an instance reads it at its first boot only. An instance that did
/// not know of a home volume at its first boot would never mount one.
pub fn fits(
    instance: &OnDemandInstance<'_>,
    resolved: &Resolved,
    policy: &WorkspacePolicy,
    home_zone: Option<&str>,
) -> bool {
    let made = &instance.for_provider;
    let zone = instance.zone().or(made.availability_zone.as_deref());
    let reaches_home = match (zone, home_zone) {
        (Some(zone), Some(home)) => zone == home,
        _ => true,
    };
    made.type_ == resolved.instance_type()
        && (!policy.instance.replace_on_user_data_change || made.user_data == resolved.user_data)
        && (!resolved.is_image_named || made.ami == resolved.image.id)
        && reaches_home
        && (!resolved.has_home || made.user_data.contains(HOME_UNIT_NAME))
}

/// The desired instance. `observed` is the observed instance: its fields that EC2 cannot change, or
/// can change only with a stop, are kept.
///
/// # Errors
///
/// The object cannot be written as JSON.
pub fn desired(
    resolved: &Resolved,
    policy: &WorkspacePolicy,
    place: Place<'_>,
    own_group: bool,
    observed: Option<&OnDemandInstance<'_>>,
    home_tags: Option<&BTreeMap<String, String>>,
) -> Result<Value, Refusal> {
    let (zone, subnet) = zone_and_subnet(place, observed);
    let made = observed.map(|instance| &instance.for_provider);
    let as_made = |field: fn(&Instance) -> &String, resolved: &str| {
        let made = made.map(field).filter(|made| !made.is_empty());
        made.map_or_else(|| resolved.to_owned(), Clone::clone)
    };
    let user_data = as_made(|made| &made.user_data, &resolved.user_data);
    let mut tags = resolved.tags(policy);
    tags.insert(api::tags::NAME.into(), resolved.origin.to_string());
    // An instance that was made before does not ask for its tags.
    let keys = resolved
        .keys_in_tags
        .as_ref()
        .filter(|_| user_data::reads_tags(&user_data));
    if let Some(keys) = keys {
        tags.extend(api::tags::authorized_keys(keys));
    }
    let metadata_tags = if keys.is_some() {
        "enabled"
    } else {
        "disabled"
    };
    let groups = &resolved.network.security_group_ids;
    let parameters = Instance {
        region: resolved.region.clone(),
        ami: as_made(|made| &made.ami, &resolved.image.id),
        type_: resolved.instance_type().to_owned(),
        user_data,
        availability_zone: zone.map(str::to_owned),
        subnet_id: subnet.map(str::to_owned),
        vpc_security_group_id_selector: own_group.then_some(OfSameComposite::SELECTOR),
        vpc_security_group_ids: (!own_group).then(|| groups.clone()),
        iam_instance_profile: resolved.instance_profile.clone(),
        // Only `IMDSv2`, and with one hop, so that containers behind a bridge cannot reach it.
        metadata_options: MetadataOptions {
            http_endpoint: "enabled".to_owned(),
            http_tokens: "required".to_owned(),
            http_put_response_hop_limit: 1,
            instance_metadata_tags: metadata_tags.to_owned(),
        },
        root_block_device: RootBlockDevice {
            encrypted: true,
            volume_type: "gp3".to_owned(),
            delete_on_termination: true,
            volume_size: resolved.root_volume_size_gib,
        },
        // Without volume tags, provider-aws fails to observe an instance with a second volume, and
        // reports no error. With tags that differ from the home volume's, `Instance` and
        // `EBSVolume` remove each other's tags at every observation.
        volume_tags: home_tags.map_or_else(|| resolved.tags(policy), Clone::clone),
        tags,
    };
    let config = &policy.on_demand_provider_config_ref;
    let mut instance = Managed::new(&resolved.origin.namespace, config, parameters);
    let tags = agents_tags(policy, observed);
    instance.spec.init_provider = tags.map(|tags| Initial { tags: Some(tags) });
    Composed::manifest(&instance)
}

fn zone_and_subnet<'a>(
    place: Place<'a>,
    observed: Option<&'a OnDemandInstance<'_>>,
) -> (Option<&'a str>, Option<&'a str>) {
    let Some(instance) = observed else {
        return (place.zone.filter(|_| place.subnet.is_none()), place.subnet);
    };
    // If the object gets another instance, that instance must be able to attach the same home.
    let home = place.zone.filter(|zone| instance.zone() == Some(*zone));
    let subnet = instance.subnet();
    let made = instance.for_provider.availability_zone.as_deref();
    (made.or(home.filter(|_| subnet.is_none())), subnet)
}

/// The tags that the instance's agent writes. provider-aws removes tags that it does not know, but
/// it leaves tags alone that only `initProvider` names. A new instance therefore starts with these
/// tags, and an observed instance keeps those that it started with.
fn agents_tags(
    policy: &WorkspacePolicy,
    observed: Option<&OnDemandInstance<'_>>,
) -> Option<BTreeMap<String, String>> {
    let unwritten = |name: &str| (name.to_owned(), UNWRITTEN.to_owned());
    if let Some(instance) = observed {
        let names = instance.init_provider.tags.as_ref()?.keys();
        return Some(names.map(|name| unwritten(name)).collect());
    }
    policy.lifecycle.agent.as_ref()?;
    let setup = setup::is_awaited(policy.behaviour_version).then_some(SETUP);
    let names = [REPORT, HOST_KEY].into_iter().chain(setup);
    Some(names.map(unwritten).collect())
}
