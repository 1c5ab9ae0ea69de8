//! What a person may choose from on EC2: instance types, images, regions and markets, by policy and catalogue.

use std::collections::{BTreeMap, BTreeSet};

use api::capacity::CapacityType;
use api::catalogue::{Catalogue, InstanceTypeDescription};
use api::policy::WorkspacePolicy;
use function_runtime::json::Json;
use function_runtime::outcome::Unresolved;
use function_runtime::request::Request;
use function_workspace::instance_types::allows;
use function_workspace::{catalogue, policy};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::platform::{Platform, WORKSPACE_POLICY};

/// What a person may choose from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Menu {
    /// The instance types that the platform knows, by name.
    pub instance_types: Vec<OfferedType>,
    /// The images, by name.
    pub images: Vec<OfferedImage>,
    /// The regions with images, or those that the policy lists.
    pub regions: Vec<String>,
    /// The markets that the policy allows; empty for all.
    pub capacity_types: Vec<CapacityType>,
    /// What a claim gets that names nothing.
    pub defaults: Defaults,
    /// The date of the prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices_as_of: Option<String>,
    /// Why policy or catalogue cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// An instance type.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedType {
    /// The name.
    pub name: String,
    /// GPU, CPU and memory, if the catalogue has them.
    #[serde(flatten)]
    pub description: Option<InstanceTypeDescription>,
    /// US dollars per hour on demand, by region.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hourly_usd: BTreeMap<String, f64>,
    /// US dollars per hour on the spot market, by region.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spot_hourly_usd: BTreeMap<String, f64>,
    /// Why the policy does not allow it; none if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A machine image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedImage {
    /// The name.
    pub name: String,
    /// What the platform team says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The regions that have it.
    pub regions: Vec<String>,
}

/// What a claim gets that names nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Defaults {
    /// The region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The instance type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// The image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The market.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<CapacityType>,
}

/// The menu for claims like this one.
///
/// # Errors
///
/// The platform cannot be read.
pub async fn menu<P: Platform>(
    platform: &P,
    now: Timestamp,
    claim: &Value,
) -> Result<Menu, P::Error> {
    let input = platform.policy(WORKSPACE_POLICY, claim);
    let policy = match policy::read(input.as_ref()) {
        Ok(policy) => policy,
        Err(wrong) => return Ok(Menu::without(wrong.to_string())),
    };
    let mut request = Request {
        now,
        ..Request::default()
    };
    for requirement in catalogue::requirements(&policy) {
        let found = platform.select(&requirement).await?;
        let found = found.into_iter().map(Json::from).collect();
        request.required.insert(requirement.name, found);
    }
    Ok(match catalogue::read(&policy, &request) {
        Ok(known) => Menu::of(&policy, &known.catalogue),
        Err(why) => Menu::without(Unresolved::from(why).to_string()),
    })
}

impl Menu {
    fn without(problem: String) -> Self {
        Self {
            problem: Some(problem),
            ..Self::default()
        }
    }

    fn of(policy: &WorkspacePolicy, catalogue: &Catalogue) -> Self {
        let with_images = || catalogue.images.keys().cloned().collect();
        let regions = policy.allowed_regions.clone().unwrap_or_else(with_images);
        Self {
            instance_types: types(policy, catalogue),
            images: images(policy, catalogue, &regions),
            capacity_types: policy.allowed_capacity_types.clone().unwrap_or_default(),
            defaults: Defaults {
                region: policy.defaults.region.clone(),
                instance_type: policy.defaults.instance_type.clone(),
                image: policy.defaults.image.clone(),
                capacity_type: Some(policy.defaults.capacity_type),
            },
            prices_as_of: catalogue.prices.as_ref().map(|prices| prices.as_of.clone()),
            regions,
            problem: None,
        }
    }
}

/// The types that have a price or a description, and those that the policy names.
fn types(policy: &WorkspacePolicy, catalogue: &Catalogue) -> Vec<OfferedType> {
    let prices = catalogue.prices.as_ref();
    let on_demand = prices.map(|prices| &prices.hourly_usd);
    let spot = prices.map(|prices| &prices.spot_hourly_usd);
    let on_sale = on_demand.into_iter().flat_map(BTreeMap::values);
    let on_sale = on_sale.flat_map(BTreeMap::keys);
    let named = policy.allowed_instance_types.iter();
    let named = named.filter(|pattern| !pattern.ends_with(".*"));
    let types: BTreeSet<&String> = on_sale
        .chain(catalogue.instance_types.keys())
        .chain(named)
        .collect();
    let of = |all: Option<&BTreeMap<String, BTreeMap<String, f64>>>, name: &str| {
        let regions = all.into_iter().flatten();
        let of_region = |(region, types): (&String, &BTreeMap<String, f64>)| {
            Some((region.clone(), *types.get(name)?))
        };
        regions.filter_map(of_region).collect()
    };
    let offered = types.into_iter().map(|name| OfferedType {
        name: name.clone(),
        description: catalogue.instance_types.get(name).cloned(),
        hourly_usd: of(on_demand, name),
        spot_hourly_usd: of(spot, name),
        refused: refused(policy, name),
    });
    offered.collect()
}

fn refused(policy: &WorkspacePolicy, name: &str) -> Option<String> {
    let allowed = &policy.allowed_instance_types;
    let is_allowed = allowed.iter().any(|pattern| allows(pattern, name));
    (!is_allowed).then(|| format!("allowed are {}", allowed.join(", ")))
}

fn images(
    policy: &WorkspacePolicy,
    catalogue: &Catalogue,
    regions: &[String],
) -> Vec<OfferedImage> {
    let allowed = policy.allowed_images.as_ref();
    let mut found: BTreeMap<&str, OfferedImage> = BTreeMap::new();
    for (region, images) in &catalogue.images {
        let is_allowed = |name: &String| allowed.is_none_or(|allowed| allowed.contains(name));
        for (name, image) in images.iter().filter(|(name, _)| is_allowed(name)) {
            let offered = found.entry(name).or_insert_with(|| OfferedImage {
                name: name.clone(),
                description: image.description.clone(),
                regions: Vec::new(),
            });
            if regions.contains(region) {
                offered.regions.push(region.clone());
            }
        }
    }
    found.into_values().collect()
}
