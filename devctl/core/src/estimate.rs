//! What a workspace that does not exist yet costs, beside what the owner's budget has left.
//!
//! It is a forecast from the prices of the flavor, without homes. The platform decides by its own
//! prices whether the budget grants the run.

use api::workspace::Placement;
use serde_json::Value;

use crate::object::text;
use crate::table::usd;
use crate::text::{Line, Style};
use crate::workspace::Workspace;

/// A forecast. What is not known is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// US dollars per hour of all machines.
    pub hourly: Option<f64>,
    /// Hours of the longest run that the claim asks for.
    pub hours: Option<f64>,
    /// US dollars that the budget of the month has left.
    pub left: Option<f64>,
}

impl Estimate {
    /// The forecast for a claim, from its flavor and from the budget of its owner's account.
    pub fn new(claim: &Value, flavor: Option<&Value>, budget: Option<&Value>) -> Self {
        Self {
            hourly: flavor.and_then(|flavor| hourly(claim, flavor)),
            hours: hours(claim),
            left: budget.and_then(left),
        }
    }

    /// The lines for people; none where nothing is known.
    pub fn lines(self) -> Vec<Line> {
        let Self {
            hourly,
            hours,
            left,
        } = self;
        let total = hourly.zip(hours).map(|(hourly, hours)| hourly * hours);
        let price = hourly.map(|hourly| match hours {
            Some(hours) => format!(
                "about {} USD an hour, {} USD in its longest run of {hours} h",
                usd(hourly),
                usd(hourly * hours)
            ),
            None => format!("about {} USD an hour", usd(hourly)),
        });
        let left_words = left.map(|left| format!("the budget has {} USD left", usd(left)));
        let known: Vec<String> = [price, left_words].into_iter().flatten().collect();
        let mut lines = Vec::new();
        if !known.is_empty() {
            lines.push(Line::from(known.join("; ")));
        }
        if let (Some(hourly), Some(left)) = (hourly, left)
            && total.unwrap_or(hourly) > left
        {
            lines.push(Line::new().with(Style::Warning, too_much(hourly, hours, left)));
        }
        lines
    }
}

/// What to say of a run that costs more than is left.
fn too_much(hourly: f64, hours: Option<f64>, left: f64) -> String {
    let fitting = (left / hourly).floor();
    let next = if fitting >= 1.0 {
        format!("--lifetime {fitting}h fits")
    } else {
        "devctl cost shows what else uses it".to_owned()
    };
    let run = match hours {
        Some(_) => "this run costs more than the budget has left",
        None => "the budget has less than an hour of this left",
    };
    format!("{run}, and the platform may refuse it: {next}")
}

/// The US dollars per hour of all machines; none if the flavor does not tell the price.
fn hourly(claim: &Value, flavor: &Value) -> Option<f64> {
    let price = |field: &str| flavor.pointer("/status")?.get(field)?.as_f64();
    let workspace = Workspace::new(claim);
    match workspace.placement() {
        Placement::Ec2 => price("instanceHourlyUsd"),
        // Another number of GPUs is another price, which the menu does not have.
        Placement::Cluster if claim.pointer(GPUS_PER_NODE).is_some() => None,
        Placement::Cluster => Some(price("podHourlyUsd")? * f64::from(workspace.replicas())),
    }
}

const GPUS_PER_NODE: &str = "/spec/parameters/distributed/gpusPerNode";

/// The hours of the longest run; none if the claim leaves them to the platform, or has no limit.
fn hours(claim: &Value) -> Option<f64> {
    let given = text(claim, "/spec/parameters/lifecycle/maxLifetime")?;
    let hours = api::duration::duration(given)?.as_secs_f64() / 3600.0;
    (hours > 0.0).then_some((hours * 100.0).round() / 100.0)
}

/// The US dollars that a budget has left.
pub fn left(budget: &Value) -> Option<f64> {
    let amount = |field: &str| budget.get(field)?.as_f64();
    let used = amount("spentUsd").unwrap_or(0.0) + amount("reservedUsd").unwrap_or(0.0);
    Some((amount("monthlyUsd")? - used).max(0.0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flavor() -> Value {
        json!({"status": {"instanceHourlyUsd": 0.5, "podHourlyUsd": 0.25}})
    }

    fn budget(left: f64) -> Value {
        json!({"monthlyUsd": 100.0, "spentUsd": 60.0, "reservedUsd": 40.0 - left})
    }

    fn said(parameters: &Value, flavor: Option<&Value>, left: Option<f64>) -> Vec<String> {
        let claim = json!({"spec": {"parameters": parameters}});
        let budget = left.map(budget);
        let estimate = Estimate::new(&claim, flavor, budget.as_ref());
        estimate.lines().iter().map(Line::text).collect()
    }

    #[test]
    fn a_run_that_fits_costs_its_longest_time_and_warns_of_nothing() {
        let parameters = json!({"lifecycle": {"maxLifetime": "8h"}});
        assert_eq!(
            said(&parameters, Some(&flavor()), Some(4.0)),
            [
                "about 0.500 USD an hour, 4.00 USD in its longest run of 8 h; the budget has 4.00 USD left"
            ]
        );
    }

    #[test]
    fn a_run_that_costs_more_than_is_left_names_the_run_that_fits() {
        let parameters = json!({"lifecycle": {"maxLifetime": "8h"}});
        let said = said(&parameters, Some(&flavor()), Some(3.99));
        assert_eq!(
            said[1],
            "this run costs more than the budget has left, and the platform may refuse it: \
             --lifetime 7h fits"
        );
    }

    #[test]
    fn a_run_without_a_limit_warns_when_not_even_an_hour_is_left() {
        assert_eq!(said(&json!({}), Some(&flavor()), Some(0.5)).len(), 1);
        let said = said(&json!({}), Some(&flavor()), Some(0.1));
        assert!(
            said[1].contains("less than an hour") && said[1].contains("devctl cost"),
            "{said:?}"
        );
    }

    #[test]
    fn all_pods_of_a_training_count() {
        let parameters = json!({"placement": "Cluster", "distributed": {"nodes": 4}});
        assert_eq!(
            said(&parameters, Some(&flavor()), None),
            ["about 1.00 USD an hour"]
        );
        let more = json!({"placement": "Cluster", "distributed": {"nodes": 4, "gpusPerNode": 2}});
        assert_eq!(said(&more, Some(&flavor()), None), [""; 0]);
    }

    #[test]
    fn what_is_unknown_is_not_said() {
        assert_eq!(said(&json!({}), None, None), [""; 0]);
        assert_eq!(said(&json!({}), Some(&json!({})), None), [""; 0]);
        assert_eq!(
            said(&json!({}), None, Some(1.0)),
            ["the budget has 1.00 USD left"]
        );
        for limit in ["Never", "soon", "0h", "-1h"] {
            let parameters = json!({"lifecycle": {"maxLifetime": limit}});
            assert_eq!(
                said(&parameters, Some(&flavor()), None),
                ["about 0.500 USD an hour"],
                "{limit}"
            );
        }
    }
}
