//! `flavors` and `whoami`.

use serde_json::{Value, json};

use crate::commands::call::Call;
use crate::estimate;
use crate::host::Scope;
use crate::object::{Kind, Reference, text};
use crate::output::{self, Data, Output};
use crate::problem::Problem;
use crate::table::{Table, usd};

/// The ConfigMap in a user's namespace with what the platform knows about them.
const ACCOUNT: &str = "gpu-workspaces.account";

/// Shows the platform's menu.
pub(super) async fn flavors(call: Call<'_>, given: Output) -> Result<u8, Problem> {
    let listed = call.host.api.list(Kind::Flavor, &Scope::Cluster).await;
    let mut flavors = listed.map_err(|refused| {
        let object = Reference::new(Kind::Flavor, "", "");
        refused
            .problem(&object)
            .next("ask the platform team for the right to read workspaceflavors")
    })?;
    flavors.sort_by(|a, b| text(a, "/metadata/name").cmp(&text(b, "/metadata/name")));
    let value = output::list(&flavors);
    let data = Data {
        table: &|wide| flavor_table(&flavors, wide),
        value: &value,
        names: output::names(&flavors),
    };
    output::write(call.host.terminal, given.format, &data)?;
    Ok(0)
}

fn flavor_table(flavors: &[Value], wide: bool) -> Table {
    let mut head = vec![
        "NAME",
        "WHERE",
        "GPU",
        "CPU",
        "MEMORY",
        "EC2 USD/H",
        "POD USD/H",
    ];
    if wide {
        head.extend(["TYPES", "PYTORCH", "OPENCV"]);
    }
    head.push("DESCRIPTION");
    let mut table = Table::new(head);
    for flavor in flavors {
        let at = |pointer: &str| text(flavor, pointer).map(str::to_owned);
        let price = |field: &str| flavor.pointer("/status")?.get(field)?.as_f64().map(usd);
        let mut cells = vec![
            at("/metadata/name"),
            at("/status/placements"),
            at("/status/gpu"),
            at("/status/cpu"),
            at("/status/memory"),
            price("instanceHourlyUsd"),
            price("podHourlyUsd"),
        ];
        if wide {
            let types = crate::object::list(flavor, "/spec/ec2/instanceTypes").iter();
            let types: Vec<&str> = types.filter_map(Value::as_str).collect();
            cells.extend([
                Some(types.join(",")),
                at("/spec/pytorchVersion"),
                at("/spec/opencvVersion"),
            ]);
        }
        cells.push(at("/spec/description"));
        table.row(cells);
    }
    table
}

/// Shows who the user is here.
pub(super) async fn whoami(call: Call<'_>, given: Output) -> Result<u8, Problem> {
    let api = call.host.api;
    let namespace = api.namespace().to_owned();
    let account = account(call).await?;
    let mut rights = Vec::new();
    for verb in ["get", "create", "patch", "delete"] {
        let may = api.may(verb, Kind::Claim, &namespace).await;
        let claims = Reference::new(Kind::Claim, &namespace, "");
        if may.map_err(|refused| refused.problem(&claims))? {
            rights.push(verb);
        }
    }
    let owner = account.as_ref().and_then(|account| text(account, "/owner"));
    let value = json!({
        "namespace": namespace,
        "owner": owner,
        "rights": rights,
        "publicKeys": account.as_ref().and_then(|account| account.get("publicKeys")),
        "budget": account.as_ref().and_then(|account| account.get("budget")),
    });
    let data = Data {
        table: &|_| {
            let mut table = Table::new(["", ""]);
            let mut row = |label: &str, text: Option<String>| {
                table.row([Some(label.to_owned()), text]);
            };
            row("namespace", Some(namespace.clone()));
            row("owner", owner.map(str::to_owned));
            row("may", Some(rights.join(", ")));
            let keys = crate::object::list(&value, "/publicKeys").iter();
            for key in keys.filter_map(Value::as_str) {
                row("key", Some(short_key(key)));
            }
            row("budget", budget_words(&value));
            table
        },
        value: &value,
        names: owner.map(str::to_owned).into_iter().collect(),
    };
    output::write(call.host.terminal, given.format, &data)?;
    Ok(0)
}

/// The type and the comment of a public key.
fn short_key(key: &str) -> String {
    let fields: Vec<&str> = key.split_whitespace().collect();
    match fields.as_slice() {
        [kind, key, rest @ ..] => {
            let end = key.get(key.len().saturating_sub(8)..).unwrap_or(key);
            format!("{kind} …{end} {}", rest.join(" "))
        }
        _ => key.to_owned(),
    }
}

/// The budget of an account: monthly, spent, reserved and left, for people.
pub(super) fn budget_words(account: &Value) -> Option<String> {
    let budget = account.get("budget")?;
    let amount = |field: &str| budget.get(field)?.as_f64();
    let monthly = amount("monthlyUsd")?;
    let (spent, reserved) = (
        amount("spentUsd").unwrap_or(0.0),
        amount("reservedUsd").unwrap_or(0.0),
    );
    Some(format!(
        "{} USD a month; {} spent, {} reserved, {} left",
        usd(monthly),
        usd(spent),
        usd(reserved),
        usd(estimate::left(budget)?)
    ))
}

/// What the platform knows about the user; none if it does not say.
pub(super) async fn account(call: Call<'_>) -> Result<Option<Value>, Problem> {
    let object = Reference::new(Kind::ConfigMap, call.host.api.namespace(), ACCOUNT);
    let found = match call.host.api.get(&object).await {
        Ok(found) => found,
        Err(refused) if refused.is_absent() || refused.is_forbidden() => return Ok(None),
        Err(refused) => return Err(refused.problem(&object)),
    };
    let data = |key: &str| found.pointer("/data")?.get(key)?.as_str();
    let keys = data("publicKeys").unwrap_or_default().lines();
    let keys: Vec<&str> = keys.filter(|line| !line.is_empty()).collect();
    let budget: Option<Value> = data("budget").and_then(|text| serde_json::from_str(text).ok());
    Ok(Some(
        json!({"owner": data("owner"), "publicKeys": keys, "budget": budget}),
    ))
}
