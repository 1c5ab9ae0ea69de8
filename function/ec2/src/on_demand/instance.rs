//! A desired on-demand instance: what it is made of.

use std::collections::BTreeMap;

use activity_report::{HOST_KEY, REPORT};
use api::policy::WorkspacePolicy;
use function_runtime::desired::Composed;
use function_runtime::outcome::Refusal;
use function_runtime::resource_names::hashed;
use serde_json::Value;

use crate::on_demand::OnDemandInstance;
use crate::on_demand::api::{
    Initial, Instance, Managed, MetadataOptions, OfSameComposite, RootBlockDevice,
};
use crate::resolved::Resolved;
use crate::resource_names;
use crate::user_data::HOME_UNIT_NAME;

/// Where an instance has to be, beside its region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// The zone of the home volume, where there is one.
    pub zone: Option<&'a str>,
    /// The subnet: the one in which the home volume's first instance was, or the
    /// catalogue's first. The default VPC chooses without one.
    pub subnet: Option<&'a str>,
}

/// The name of a new instance, by all that cannot change without another one, and
/// by the machines that it follows: an object whose instance is lost never gets
/// another one (see [`OnDemandInstance`]), so its name is used up. `recorded` is the machine
/// of the last call, `lost` are the others that are lost.
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

/// Whether an instance is what is wanted, so that it stays. User data counts
/// where the policy says so: it is read at the first boot only. An instance that
/// was not told of a home volume at its boot would never mount one.
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
        && reaches_home
        && (!resolved.has_home || made.user_data.contains(HOME_UNIT_NAME))
}

/// The desired instance. `observed` is the instance as it is: what EC2 cannot
/// change, or only by a stop, stays as it was made.
///
/// # Errors
///
/// It cannot be written.
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
    let mut tags = resolved.tags(policy);
    tags.insert(api::tags::NAME.into(), resolved.origin.to_string());
    let groups = &resolved.network.security_group_ids;
    let parameters = Instance {
        region: resolved.region.clone(),
        ami: as_made(|made| &made.ami, &resolved.image.id),
        type_: resolved.instance_type().to_owned(),
        user_data: as_made(|made| &made.user_data, &resolved.user_data),
        availability_zone: zone.map(str::to_owned),
        subnet_id: subnet.map(str::to_owned),
        vpc_security_group_id_selector: own_group.then_some(OfSameComposite::SELECTOR),
        vpc_security_group_ids: (!own_group).then(|| groups.clone()),
        iam_instance_profile: policy.instance.iam_instance_profile.clone(),
        // IMDSv2 alone, and not from behind a container's bridge.
        metadata_options: MetadataOptions {
            http_endpoint: "enabled".to_owned(),
            http_tokens: "required".to_owned(),
            http_put_response_hop_limit: 1,
            instance_metadata_tags: "disabled".to_owned(),
        },
        root_block_device: RootBlockDevice {
            encrypted: true,
            volume_type: "gp3".to_owned(),
            delete_on_termination: true,
            volume_size: policy.instance.root_volume_size_gib,
        },
        // Without any, provider-aws fails to look at an instance with a further volume, and
        // says nothing of it; with other tags than the home volume's, `Instance` and
        // `EBSVolume` take them away from each other at every look.
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
    // Another instance in the same object has to reach the same home.
    let home = place.zone.filter(|zone| instance.zone() == Some(*zone));
    let subnet = instance.subnet();
    let made = instance.for_provider.availability_zone.as_deref();
    (made.or(home.filter(|_| subnet.is_none())), subnet)
}

/// The tags that the instance's agent writes. provider-aws takes away tags that it does
/// not know, and leaves alone what only `initProvider` names: so an instance begins with
/// them, empty, and keeps to what it began with.
fn agents_tags(
    policy: &WorkspacePolicy,
    observed: Option<&OnDemandInstance<'_>>,
) -> Option<BTreeMap<String, String>> {
    if let Some(instance) = observed {
        return instance.init_provider.tags.clone();
    }
    let empty = || [REPORT, HOST_KEY].map(|name| (name.to_owned(), String::new()));
    policy.lifecycle.agent.as_ref().map(|_| empty().into())
}
