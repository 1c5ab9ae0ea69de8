//! The machines that a decision wants, and their prices.

use api::catalogue::Prices;
use function_workspace::cost::price;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::calls::Decision;

/// A machine that a workspace may get.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// The instance type, or the flavor of pods.
    pub name: String,
    /// How many of them.
    pub count: u32,
    /// US dollars per hour of one, if the catalogue has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly_usd: Option<f64>,
}

/// The highest price in US dollars per hour, over the types that each machine may get; none if the
/// catalogue does not have it, or no machine is wanted.
pub fn highest(decision: &Decision) -> Option<f64> {
    let machines = machines(decision).into_iter();
    let listed =
        machines.filter_map(|machine| Some(machine.hourly_usd? * f64::from(machine.count)));
    listed.reduce(f64::max)
}

/// The machines that a workspace may get, in the order of the decision.
pub fn machines(decision: &Decision) -> Vec<Machine> {
    let Decision { request, response } = decision;
    let Some(desired) = &response.desired else {
        return Vec::new();
    };
    let policy = function_workspace::policy::read(request.policy.as_ref()).ok();
    let prices = policy.and_then(|policy| function_workspace::catalogue::prices(&policy, request));
    let prices = prices.as_ref();
    if let Some(flavor) = text(desired.status.get("pods"), "flavor") {
        let nodes = desired.status.get("pods");
        let nodes = nodes.and_then(|pods| pods.get("nodes")?.as_u64());
        return vec![Machine {
            name: flavor.to_owned(),
            count: nodes.and_then(|nodes| nodes.try_into().ok()).unwrap_or(1),
            hourly_usd: prices.and_then(|prices| prices.flavor_hourly_usd.get(flavor).copied()),
        }];
    }
    let region = desired.status.get("region").and_then(Value::as_str);
    let resources = desired.resources.values();
    let offered = resources.filter_map(|resource| offers(&resource.object));
    let of_type = |(name, spot): (&str, bool)| {
        let price = |prices: &Prices| price::of_type(prices, region?, name, spot);
        Machine {
            name: name.to_owned(),
            count: 1,
            hourly_usd: prices.and_then(price),
        }
    };
    offered.flatten().map(of_type).collect()
}
/// The types that a machine may get, and whether it is a spot instance only; none for a resource that
/// is no machine.
fn offers(object: &Value) -> Option<Vec<(&str, bool)>> {
    let parameters = object.pointer("/spec/forProvider")?;
    let spot = text(Some(parameters), "capacityType") == Some("Spot");
    let Some(types) = parameters.get("instanceTypes").and_then(Value::as_array) else {
        return Some(vec![(text(Some(parameters), "instanceType")?, false)]);
    };
    let names = types.iter().filter_map(Value::as_str);
    Some(names.map(|name| (name, spot)).collect())
}

fn text<'a>(object: Option<&'a Value>, field: &str) -> Option<&'a str> {
    object?.get(field)?.as_str()
}
