//! Converts a `SpotPool`'s spec and the region's facts to the planner's input.
//!
//! Every error of a spec is found here, before anything is launched, and is reported with its
//! field.

mod firewall;
mod invalid;

use std::collections::{BTreeMap, BTreeSet};

use api::capacity::CapacityType;
use api::duration::Duration;
use api::pool::{PoolRebalance, PoolTypePreference, SpotPool, SpotPoolParameters};
use api::tags;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use provider_aws::{Ec2Error, Image, LaunchPlace, LaunchRequest, Subnet, Tags, TemplateRequest};
use provider_core::{
    Desired, Launch, Market, Offering, Rebalance, Replace, SecurityGroups, Size, Spread,
    TypePreference, client_token,
};

pub use invalid::Invalid;
use invalid::invalid;

use crate::home;
use crate::seals::Marks;

/// EC2's limit for user data, before base64.
const USER_DATA_LIMIT: usize = 16 * 1024;

/// EC2's limit of 50 tags, minus the provider's six and a lease's nine.
const LEASED_TAGS_LIMIT: usize = 35;

/// The facts about the region that a spec depends on.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The zones that offer each of the spec's types.
    pub zones_by_type: BTreeMap<String, BTreeSet<String>>,
    /// The spec's subnets, or the default ones.
    pub subnets: Vec<Subnet>,
    /// The spec's image.
    pub image: Option<Image>,
}

/// A pool with a valid spec.
#[derive(Clone, Debug)]
pub struct Valid {
    /// The planner's input.
    pub desired: Desired,
    template: Template,
}

/// The settings that every instance of the pool shares.
#[derive(Clone, Debug)]
struct Template {
    image: Image,
    user_data: Option<String>,
    root_volume_size_gib: Option<i32>,
    kms_key_id: Option<String>,
    iam_instance_profile: Option<String>,
    subnets: BTreeMap<String, String>,
    shows_tags: bool,
    tags: Tags,
    /// The UID of the pool's object. A restored pool counts its launches anew, and EC2 answers a
    /// repeated token with the first launch of this token. So tokens do not use the identity.
    object: String,
}

impl Valid {
    /// Whether instances can be launched in a zone, of whatever type.
    pub fn has_subnet(&self, zone: &str) -> bool {
        self.template.subnets.contains_key(zone)
    }

    /// The request for a launch.
    pub fn request(&self, launch: &Launch) -> LaunchRequest {
        let mut tags = self.template.tags.clone();
        tags.insert(tags::LAUNCH.into(), launch.launch.to_string());
        tags.insert(tags::GENERATION.into(), launch.generation.clone());
        let subnets = &self.template.subnets;
        let places = launch.offerings.iter().map(|offering| LaunchPlace {
            instance_type: offering.instance_type.clone(),
            zone: offering.zone.clone(),
            subnet_id: subnets.get(&offering.zone).cloned().unwrap_or_default(),
        });
        LaunchRequest {
            token: client_token(&self.template.object, launch),
            template: template_name(&self.desired.pool_uid, &launch.generation),
            count: launch.count,
            market: launch.offerings.first().map_or(Market::Spot, |o| o.market),
            places: places.collect(),
            tags,
        }
    }

    /// The request for the launch template of new instances.
    pub fn template(&self, generation: &str, group_ids: Vec<String>) -> TemplateRequest {
        let template = &self.template;
        let mut tags = template.tags.clone();
        tags.insert(tags::GENERATION.into(), generation.to_owned());
        TemplateRequest {
            name: template_name(&self.desired.pool_uid, generation),
            group_ids,
            image: template.image.clone(),
            user_data: template.user_data.clone(),
            root_volume_size_gib: template.root_volume_size_gib,
            kms_key_id: template.kms_key_id.clone(),
            iam_instance_profile: template.iam_instance_profile.clone(),
            shows_tags: template.shows_tags,
            tags,
        }
    }

    /// What an administrator should know about a spec that works; empty without anything.
    pub fn advice(&self, now: Timestamp) -> String {
        let image = &self.template.image;
        match image.deprecated_at.filter(|at| *at <= now) {
            Some(at) => format!(
                "{} is deprecated since {at:.0}: EC2 still launches it. Name a newer image in \
                 spec.forProvider.image.id",
                image.id
            ),
            None => String::new(),
        }
    }
}

impl Template {
    /// A digest of everything that cannot be changed on an instance.
    fn digest(&self) -> String {
        let parts = [
            self.image.id.clone(),
            self.user_data.clone().unwrap_or_default(),
            format!("{:?}", self.root_volume_size_gib),
            self.iam_instance_profile.clone().unwrap_or_default(),
            self.shows_tags.to_string(),
        ];
        // Instances from before there was a key have not drifted.
        let parts = parts.iter().chain(&self.kms_key_id);
        provider_core::digest(parts.map(String::as_str))
    }
}

/// The name of a pool's launch template.
pub fn template_name(identity: &str, generation: &str) -> String {
    format!("gpu-spot-{identity}-{generation}")
}

/// The tags of every resource of a pool.
pub fn pool_tags(pool: &SpotPool, marks: Marks<'_>) -> Tags {
    let mut tags = pool.spec.for_provider.tags.clone();
    let namespace = pool.metadata.namespace.as_deref().unwrap_or_default();
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    tags.entry(tags::NAME.into())
        .or_insert_with(|| name.to_owned());
    tags.insert(tags::CLUSTER.into(), marks.cluster.to_owned());
    tags.insert(tags::POOL_UID.into(), marks.pool.to_owned());
    tags.insert(tags::POOL.into(), tags::namespaced_name(namespace, name));
    tags
}

/// Checks a spec against the facts.
pub fn validate(pool: &SpotPool, facts: Facts, marks: Marks<'_>) -> Result<Valid, Invalid> {
    let spec = &pool.spec.for_provider;
    check_user_data(spec)?;
    check_tags(spec)?;
    let subnets = usable_subnets(spec, &facts.subnets)?;
    let offerings = offerings(spec, &facts.zones_by_type, &subnets)?;
    let image = facts.image.ok_or_else(|| {
        let problem = format!(
            "{} does not exist in {}, is not shared with this account, or is not among the account's \
             allowed AMIs",
            spec.image.id, spec.region
        );
        invalid("image.id", problem)
    })?;
    let template = Template {
        image,
        user_data: spec.user_data.clone(),
        root_volume_size_gib: spec.root_volume_size_gib,
        kms_key_id: spec.kms_key_id.clone(),
        iam_instance_profile: spec.iam_instance_profile.clone(),
        subnets: subnets
            .iter()
            .map(|s| (s.zone.clone(), s.id.clone()))
            .collect(),
        shows_tags: reads_tags(spec),
        tags: pool_tags(pool, marks),
        object: pool.metadata.uid.clone().unwrap_or_default(),
    };
    let desired = Desired {
        deleted: false,
        image_id: Some(template.image.id.clone()),
        template: template.digest(),
        offerings,
        groups: firewall::security_groups(spec, &subnets)?,
        ..deleted(pool, marks)
    };
    Ok(Valid { desired, template })
}

/// The desired state of a deleted pool: no instance, whatever its spec says.
pub fn deleted(pool: &SpotPool, marks: Marks<'_>) -> Desired {
    let spec = &pool.spec.for_provider;
    let fallback = spec.fallback.as_ref();
    Desired {
        pool_uid: marks.pool.to_owned(),
        deleted: true,
        size: size(spec),
        template: String::new(),
        image_id: None,
        offerings: Vec::new(),
        preference: match spec.type_preference {
            PoolTypePreference::Ordered => TypePreference::Ordered,
            PoolTypePreference::Any => TypePreference::Any,
        },
        spread: spread(spec),
        fallback_after: fallback
            .and_then(|fallback| fallback.after.as_ref())
            .map_or(SignedDuration::ZERO, Duration::length),
        replace: replace(spec),
        groups: SecurityGroups::Unknown,
        leases: Vec::new(),
        force: false,
        authorized_keys: spec.authorized_keys.as_deref().map(tags::authorized_keys),
        home: home::wanted(spec),
        ends_at: spec.ends_at.as_ref().map(|Time(at)| *at),
    }
}

fn spread(spec: &SpotPoolParameters) -> Spread {
    let spread = spec.spread.unwrap_or_default();
    Spread {
        zones: spread.zones,
        per_offering: spread.max_per_offering.map(unsigned),
    }
}

fn replace(spec: &SpotPoolParameters) -> Replace {
    let replace = spec.replace.unwrap_or_default();
    let fallback = spec.fallback.as_ref();
    Replace {
        drifted: replace.drifted,
        not_set_up: replace.not_set_up,
        other_image: replace.other_image,
        impaired: replace.impaired,
        rebalance: match replace.rebalance {
            PoolRebalance::Ignore => Rebalance::Ignore,
            PoolRebalance::Cordon => Rebalance::Cordon,
            PoolRebalance::ReplaceFirst => Rebalance::Replace,
        },
        on_demand_after: fallback
            .and_then(|fallback| fallback.return_after.as_ref())
            .map(Duration::length),
        at_once: replace.at_once.map_or(1, unsigned),
    }
}

fn unsigned(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

/// Reads the facts that a spec depends on.
pub async fn facts(
    region: &crate::region::Region,
    spec: &SpotPoolParameters,
    now: Timestamp,
) -> Result<Facts, Ec2Error> {
    Ok(Facts {
        zones_by_type: region.zones_by_type(&spec.instance_types, now).await?,
        subnets: region.subnets(spec.subnet_ids.as_deref(), now).await?,
        image: region.image(&spec.image.id, now).await?,
    })
}

fn size(spec: &SpotPoolParameters) -> Size {
    Size {
        minimum: unsigned(spec.size.minimum),
        maximum: unsigned(spec.size.maximum),
        idle: unsigned(spec.size.idle),
    }
}

fn check_user_data(spec: &SpotPoolParameters) -> Result<(), Invalid> {
    let length = spec.user_data.as_ref().map_or(0, String::len);
    if length > USER_DATA_LIMIT {
        let problem = format!("{length} bytes; EC2 takes at most {USER_DATA_LIMIT}");
        return Err(invalid("userData", problem));
    }
    Ok(())
}

/// Checks EC2's limits for tags of instances that read their own tags.
fn check_tags(spec: &SpotPoolParameters) -> Result<(), Invalid> {
    if !reads_tags(spec) {
        return Ok(());
    }
    let keys = spec.authorized_keys.as_deref().unwrap_or_default();
    let key_tags = tags::authorized_keys(keys).len();
    if spec.tags.len() + key_tags > tags::SPEC_AND_KEYS_LIMIT {
        let problem = format!(
            "the keys need {key_tags} tags, and {} of spec.forProvider.tags: EC2 has room for \
             {}; a key needs one tag for each {} characters, so use short ones \
             such as ssh-ed25519",
            spec.tags.len(),
            tags::SPEC_AND_KEYS_LIMIT,
            tags::VALUE_LIMIT
        );
        return Err(invalid("authorizedKeys", problem));
    }
    if spec.leases.is_some() && spec.tags.len() > LEASED_TAGS_LIMIT {
        let problem = format!(
            "{} tags; with leases at most {LEASED_TAGS_LIMIT} fit beside the leases' own",
            spec.tags.len()
        );
        return Err(invalid("tags", problem));
    }
    let mut keys = spec.tags.keys();
    if let Some(key) = keys.find(|key| !tags::is_readable(key)) {
        let problem = "with leases or authorizedKeys EC2 takes letters, digits and +-=.,_:@ only: \
                       instances read their tags at the metadata service";
        return Err(invalid(&format!("tags[{key}]"), problem));
    }
    Ok(())
}

/// Whether instances read their own tags.
fn reads_tags(spec: &SpotPoolParameters) -> bool {
    spec.leases.is_some() || spec.authorized_keys.is_some()
}

fn usable_subnets(spec: &SpotPoolParameters, known: &[Subnet]) -> Result<Vec<Subnet>, Invalid> {
    if let Some(ids) = &spec.subnet_ids {
        let exists = |id: &String| known.iter().any(|s| s.id == *id);
        if let Some(index) = ids.iter().position(|id| !exists(id)) {
            let problem = format!("{} does not exist in {}", ids[index], spec.region);
            return Err(invalid(&format!("subnetIds[{index}]"), problem));
        }
    } else if known.is_empty() {
        let problem = format!("{} has no default VPC: name subnets", spec.region);
        return Err(invalid("subnetIds", problem));
    }
    let vpcs: BTreeSet<&str> = known.iter().map(|s| s.vpc_id.as_str()).collect();
    if vpcs.len() > 1 {
        let problem = format!("the subnets are of several VPCs: {vpcs:?}");
        return Err(invalid("subnetIds", problem));
    }
    let mut usable = known.to_vec();
    if let Some(zones) = &spec.zones {
        if let Some(index) = zones
            .iter()
            .position(|zone| !known.iter().any(|s| s.zone == *zone))
        {
            let problem = format!("{} has no default subnet", zones[index]);
            return Err(invalid(&format!("zones[{index}]"), problem));
        }
        usable.retain(|s| zones.contains(&s.zone));
    }
    usable.sort_by(|a, b| (&a.zone, &a.id).cmp(&(&b.zone, &b.id)));
    usable.dedup_by(|a, b| a.zone == b.zone);
    Ok(usable)
}

/// Every offering, most preferred first: by market, then type, then zone.
fn offerings(
    spec: &SpotPoolParameters,
    zones_by_type: &BTreeMap<String, BTreeSet<String>>,
    subnets: &[Subnet],
) -> Result<Vec<Offering>, Invalid> {
    let sold = |kind: &String, zone: &String| {
        zones_by_type
            .get(kind)
            .is_some_and(|zones| zones.contains(zone))
    };
    let zones: Vec<&String> = subnets.iter().map(|s| &s.zone).collect();
    let mut offerings = Vec::new();
    for market in markets(spec.capacity_type) {
        for instance_type in &spec.instance_types {
            let selling = zones.iter().filter(|zone| sold(instance_type, zone));
            offerings.extend(selling.map(|zone| Offering {
                instance_type: instance_type.clone(),
                zone: (*zone).clone(),
                market: *market,
            }));
        }
    }
    if offerings.is_empty() {
        let (index, unsold) = spec
            .instance_types
            .iter()
            .enumerate()
            .find(|(_, kind)| !zones_by_type.contains_key(*kind))
            .unwrap_or((0, &spec.instance_types[0]));
        let problem = if zones_by_type.contains_key(unsold) {
            format!("{unsold} is sold in none of the zones {zones:?}")
        } else {
            format!("EC2 has no type {unsold} in {}", spec.region)
        };
        return Err(invalid(&format!("instanceTypes[{index}]"), problem));
    }
    Ok(offerings)
}

fn markets(capacity: CapacityType) -> &'static [Market] {
    match capacity {
        CapacityType::Spot => &[Market::Spot],
        CapacityType::SpotWithFallback => &[Market::Spot, Market::OnDemand],
        CapacityType::OnDemand => &[Market::OnDemand],
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
