//! `cost`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::commands::account::{account, budget_words};
use crate::commands::call::Call;
use crate::estimate;
use crate::grammar::Cost;
use crate::object::{Kind, text};
use crate::output::{self, Data, Format};
use crate::problem::Problem;
use crate::table::{Table, usd};
use crate::workspace::Workspace;

/// Shows what workspaces cost.
pub(super) async fn cost(call: Call<'_>, given: &Cost) -> Result<u8, Problem> {
    let claims = if let Some(name) = &given.name {
        vec![call.claim(name).await?]
    } else {
        call.list(Kind::Claim, call.host.api.namespace()).await?
    };
    let account = account(call).await?;
    if given.month {
        return month(call, given, &claims, account.as_ref());
    }
    let costs: Vec<Value> = claims
        .iter()
        .map(|claim| {
            let status = claim.pointer("/status/cost").cloned().unwrap_or_default();
            json!({"name": Workspace::new(claim).name(), "cost": status})
        })
        .collect();
    let budget = account
        .as_ref()
        .and_then(|account| account.get("budget"))
        .cloned();
    let value = json!({"workspaces": costs, "budget": budget});
    let data = Data {
        table: &|_| cost_table(&claims),
        value: &value,
        names: output::names(&claims),
    };
    output::write(call.host.terminal, given.output.format, &data)?;
    if matches!(given.output.format, Format::Table | Format::Wide) {
        let words = budget_words(&value);
        let words =
            words.unwrap_or_else(|| "this namespace has no budget that it may show".to_owned());
        call.host.terminal.note(&format!("budget: {words}").into());
    }
    Ok(0)
}

/// Shows the account of the calendar month: what was spent on what, and what is left.
fn month(
    call: Call<'_>,
    given: &Cost,
    claims: &[Value],
    account: Option<&Value>,
) -> Result<u8, Problem> {
    let budget = account.and_then(|account| account.get("budget"));
    let now = budget.and_then(|budget| text(budget, "/month"));
    let now = now.map_or_else(|| current_month(call.host.clock.now()), str::to_owned);
    let value = Month::new(&now, claims, budget).json();
    let data = Data {
        table: &|_| month_table(&value),
        value: &value,
        names: vec![now],
    };
    output::write(call.host.terminal, given.output.format, &data)?;
    Ok(0)
}

/// The calendar month in UTC, as the platform counts.
fn current_month(now: Timestamp) -> String {
    now.to_string().chars().take("2026-11".len()).collect()
}

/// The amounts of a calendar month in US dollars.
struct Month<'a> {
    name: &'a str,
    workspaces: f64,
    homes: f64,
    budget: Option<&'a Value>,
}

impl<'a> Month<'a> {
    /// Adds up the amounts of this month. A workspace that last ran in another month shows that
    /// month's amounts.
    fn new(name: &'a str, claims: &[Value], budget: Option<&'a Value>) -> Self {
        let sum = |at: &str| -> f64 {
            let costs = claims.iter().filter_map(|claim| claim.pointer(at));
            let costs = costs.filter(|cost| text(cost, "/month") == Some(name));
            costs
                .filter_map(|cost| cost.get("soFarUsd")?.as_f64())
                .sum()
        };
        Self {
            name,
            workspaces: sum("/status/cost"),
            homes: sum("/status/cost/home"),
            budget,
        }
    }

    /// The amounts by name. Those of the budget are absent where there is none.
    fn json(&self) -> Value {
        let amount = |field: &str| self.budget?.get(field)?.as_f64();
        let other = amount("spentUsd").map(|spent| spent - self.workspaces - self.homes);
        json!({
            "month": self.name,
            "workspacesUsd": self.workspaces,
            "homesUsd": self.homes,
            "otherUsd": other.map(|other| other.max(0.0)),
            "spentUsd": amount("spentUsd"),
            "reservedUsd": amount("reservedUsd"),
            "monthlyUsd": amount("monthlyUsd"),
            "leftUsd": self.budget.and_then(estimate::left),
        })
    }
}

fn month_table(month: &Value) -> Table {
    let mut table = Table::new(["MONTH", "USD", "OF"]);
    let rows = [
        ("workspacesUsd", "runs of your workspaces: devctl cost"),
        ("homesUsd", "homes of these workspaces"),
        (
            "otherUsd",
            "deleted workspaces, homes that stayed, other namespaces",
        ),
        ("spentUsd", "spent"),
        ("reservedUsd", "reserved for runs and homes that go on"),
        ("leftUsd", "left"),
        ("monthlyUsd", "the budget"),
    ];
    for (field, of) in rows {
        let amount = month.get(field).and_then(Value::as_f64);
        if amount.is_some() {
            let name = text(month, "/month").map(str::to_owned);
            table.row([name, amount.map(usd), Some(of.to_owned())]);
        }
    }
    table
}

fn cost_table(claims: &[Value]) -> Table {
    let mut table = Table::new([
        "NAME",
        "PHASE",
        "USD/H",
        "MONTH SO FAR",
        "PROJECTED",
        "HOME SO FAR",
        "PRICES OF",
    ]);
    let (mut hourly, mut so_far, mut projected, mut homes) = (0.0, 0.0, 0.0, 0.0);
    for claim in claims {
        let one = Workspace::new(claim);
        let home = claim
            .pointer("/status/cost/home/soFarUsd")
            .and_then(Value::as_f64);
        hourly += one.cost("hourlyUsd").unwrap_or(0.0);
        so_far += one.cost("soFarUsd").unwrap_or(0.0);
        projected += one.cost("projectedUsd").unwrap_or(0.0);
        homes += home.unwrap_or(0.0);
        table.row([
            Some(one.name().to_owned()),
            Some(one.phase_text().to_owned()),
            one.cost("hourlyUsd").map(usd),
            one.cost("soFarUsd").map(usd),
            one.cost("projectedUsd").map(usd),
            home.map(usd),
            text(claim, "/status/cost/asOf").map(str::to_owned),
        ]);
    }
    if claims.len() > 1 {
        let total = [hourly, so_far, projected, homes].map(|amount| Some(usd(amount)));
        let [hourly, so_far, projected, homes] = total;
        table.row([
            Some("(all)".into()),
            Some(String::new()),
            hourly,
            so_far,
            projected,
            homes,
            None,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(month: &str, amount: f64, home: f64) -> Value {
        let home = json!({"month": month, "soFarUsd": home});
        json!({"status": {"cost": {"month": month, "soFarUsd": amount, "home": home}}})
    }

    #[test]
    fn what_deleted_workspaces_cost_is_in_the_account_of_the_month() {
        let claims = [claim("2026-11", 10.0, 1.0), claim("2026-10", 99.0, 99.0)];
        let budget = json!({"monthlyUsd": 100.0, "spentUsd": 41.0, "reservedUsd": 9.0});
        let month = Month::new("2026-11", &claims, Some(&budget)).json();
        let amount = |field: &str| month[field].to_string();
        assert_eq!(
            ["workspacesUsd", "homesUsd", "otherUsd", "leftUsd"].map(amount),
            ["10.0", "1.0", "30.0", "50.0"]
        );
    }

    #[test]
    fn a_month_without_a_budget_has_the_workspaces_only() {
        let month = Month::new("2026-11", &[claim("2026-11", 10.0, 1.0)], None).json();
        assert_eq!(month_table(&month).lines(None).len(), 3);
        assert!(month["leftUsd"].is_null());
    }

    #[test]
    fn a_month_is_that_of_utc() {
        let now = "2026-12-01T00:30:00+02:00".parse().unwrap();
        assert_eq!(current_month(now), "2026-11");
    }
}
