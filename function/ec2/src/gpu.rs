//! Finds the instance types that have the GPUs that a claim asks for.

use api::catalogue::{Catalogue, InstanceTypeDescription};
use api::policy::WorkspacePolicy;
use api::workspace::{GpuWish, InstanceChoice};
use function_runtime::outcome::{Refusal, Unresolved};
use function_runtime::request::Request;
use function_runtime::validation::Violation;
use function_workspace::catalogue::{self, Known};
use function_workspace::instance_types::allows;
use function_workspace::quantity;

/// The field of the claim.
pub const PATH: &str = "spec.parameters.gpu";
/// The most types of a choice.
const MOST: usize = 10;

/// The GPUs that the claim asks for, for example `1 x T4 with at least 16Gi`.
pub fn text(wish: &GpuWish) -> String {
    let name = wish.name.as_deref().unwrap_or("GPU");
    let count = count(wish);
    match &wish.memory {
        Some(memory) => format!("{count} x {name} with at least {memory}"),
        None => format!("{count} x {name}"),
    }
}

/// The allowed types that have the GPUs, the cheapest first.
///
/// # Errors
///
/// The catalogue cannot be read, or no allowed type has the GPUs.
pub fn choose(
    wish: &GpuWish,
    policy: &WorkspacePolicy,
    region: &str,
    request: &Request,
) -> Result<InstanceChoice, Unresolved> {
    let Known { catalogue, .. } = catalogue::read(policy, request)?;
    let offers = Offer::all(policy, &catalogue, region);
    let fitting: Vec<_> = offers.iter().filter(|offer| offer.fits(wish)).collect();
    let Some(cheapest) = fitting.first() else {
        let there_are = if offers.is_empty() {
            format!(
                "EnvironmentConfig {} describes no allowed type in data.instanceTypes, so name an \
                 instanceType, or ask the platform team to describe the types",
                policy.catalogue.name
            )
        } else {
            let offers: Vec<_> = offers.iter().map(Offer::text).collect();
            format!("there are {}", offers.join(", "))
        };
        let problem = format!(
            "no instance type that the policy allows has {} in {region}; {there_are}",
            text(wish)
        );
        return Err(Refusal::parameters(Violation::new(PATH, problem)).into());
    };
    let chosen = fitting.iter().take(MOST);
    Ok(InstanceChoice {
        why: match fitting.len() {
            1 => format!("the one allowed type that has it: {}", cheapest.text()),
            number => format!(
                "the cheapest of {number} allowed types that have it: {}",
                cheapest.text()
            ),
        },
        instance_types: chosen.map(|offer| offer.name.to_owned()).collect(),
        ..InstanceChoice::default()
    })
}

/// An instance type that the policy allows, with its price.
struct Offer<'a> {
    name: &'a str,
    described: &'a InstanceTypeDescription,
    hourly_usd: Option<f64>,
}

impl<'a> Offer<'a> {
    /// All allowed types that the catalogue describes, the cheapest first. Types without a price come
    /// last. If the policy has a price ceiling, types without a price are left out.
    fn all(policy: &'a WorkspacePolicy, catalogue: &'a Catalogue, region: &str) -> Vec<Self> {
        let prices = catalogue.prices.as_ref();
        let prices = prices.and_then(|prices| prices.hourly_usd.get(region));
        let ceiling = policy.ceilings.as_ref().and_then(|c| c.hourly_usd);
        let allowed = &policy.allowed_instance_types;
        let types = catalogue.instance_types.iter();
        let allowed = types.filter(|(name, _)| allowed.iter().any(|entry| allows(entry, name)));
        let mut offers: Vec<_> = allowed
            .map(|(name, described)| Self {
                name,
                described,
                hourly_usd: prices.and_then(|prices| prices.get(name)).copied(),
            })
            .filter(|offer| {
                ceiling.is_none_or(|ceiling| offer.hourly_usd.is_some_and(|usd| usd <= ceiling))
            })
            .collect();
        let price = |offer: &Self| offer.hourly_usd.unwrap_or(f64::INFINITY);
        // Of types with the same price, the first by name comes first.
        offers.sort_by(|one, other| price(one).total_cmp(&price(other)));
        offers
    }

    fn fits(&self, wish: &GpuWish) -> bool {
        let InstanceTypeDescription {
            gpu,
            gpus,
            gpu_memory,
            ..
        } = self.described;
        let has_name = |name: &String| name.eq_ignore_ascii_case(gpu);
        let has_memory = |least: &String| quantity::memory(gpu_memory) >= quantity::memory(least);
        *gpus == count(wish)
            && wish.name.as_ref().is_none_or(has_name)
            && wish.memory.as_ref().is_none_or(has_memory)
    }

    fn text(&self) -> String {
        let InstanceTypeDescription {
            gpu,
            gpus,
            gpu_memory,
            ..
        } = self.described;
        let price = match self.hourly_usd {
            Some(usd) => format!("{usd} USD per hour"),
            None => "no price".to_owned(),
        };
        format!("{} ({gpus} x {gpu} with {gpu_memory}, {price})", self.name)
    }
}

fn count(wish: &GpuWish) -> i32 {
    wish.count.unwrap_or(1)
}
