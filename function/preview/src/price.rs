//! The highest price of the machines that a decision wants.

use function_workspace::cost::price;
use serde_json::Value;

use crate::decision::Decision;

/// The highest price in US dollars per hour, over the types that each machine may get; none if the
/// catalogue does not have it, or no machine is wanted.
pub fn highest(decision: &Decision) -> Option<f64> {
    let Decision { request, response } = decision;
    let policy = request.policy.as_ref();
    let policy = function_workspace::policy::read(policy).ok()?;
    let prices = function_workspace::catalogue::prices(&policy, request)?;
    let status = &response.desired.as_ref()?.status;
    let region = status.get("region").and_then(Value::as_str);
    if let Some(flavor) = text(status.get("pods"), "flavor") {
        let nodes = status
            .get("pods")
            .and_then(|pods| pods.get("nodes")?.as_f64());
        let price = prices.flavor_hourly_usd.get(flavor)?;
        return Some(price * nodes.unwrap_or(1.0));
    }
    let resources = response
        .desired
        .iter()
        .flat_map(|desired| desired.resources.values());
    let types = resources.filter_map(|resource| offers(&resource.object));
    let listed = types
        .flatten()
        .filter_map(|(name, spot)| price::of_type(&prices, region?, name, spot));
    listed.reduce(f64::max)
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
