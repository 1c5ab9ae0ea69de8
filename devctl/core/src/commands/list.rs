//! `list` and `show`.

use serde_json::Value;

use crate::commands::call::Call;
use crate::grammar::{List, Show};
use crate::host::Scope;
use crate::name::DOMAIN;
use crate::object::{Kind, Reference};
use crate::output::{self, Data, Format};
use crate::problem::Problem;
use crate::table::{Table, span, usd};
use crate::text::{Line, Style};
use crate::workspace::Workspace;

/// Lists the workspaces.
pub(super) async fn list(call: Call<'_>, given: &List) -> Result<u8, Problem> {
    let namespace = call.host.api.namespace();
    let scope = if given.all_namespaces {
        Scope::Cluster
    } else {
        Scope::Namespace(namespace.to_owned())
    };
    let listed = call.host.api.list(Kind::Claim, &scope).await;
    let mut claims =
        listed.map_err(|refused| refused.problem(&Reference::new(Kind::Claim, namespace, "")))?;
    claims.sort_by(|a, b| key(a).cmp(&key(b)));
    if claims.is_empty() {
        let line =
            format!("no workspaces in {namespace}; create one: devctl create NAME --flavor FLAVOR");
        call.host.terminal.note(&line.into());
        if matches!(given.output.format, Format::Table | Format::Wide) {
            return Ok(0);
        }
    }
    let value = output::list(&claims);
    let now = call.host.clock.now();
    let data = Data {
        table: &|wide| table(&claims, now, wide, given.all_namespaces),
        value: &value,
        names: output::names(&claims),
    };
    output::write(call.host.terminal, given.output.format, &data)?;
    Ok(0)
}

/// Shows a workspace.
pub(super) async fn show(call: Call<'_>, given: &Show) -> Result<u8, Problem> {
    let claim = call.claim(&given.name).await?;
    if !matches!(given.output.format, Format::Table | Format::Wide) {
        write(
            call,
            given.output.format,
            std::slice::from_ref(&claim),
            &claim,
        )?;
        return Ok(0);
    }
    for line in details(Workspace::new(&claim), call.host.clock.now()) {
        call.host.terminal.data(&line)?;
    }
    Ok(0)
}

/// Writes workspaces, or one as `value`.
pub(super) fn write(
    call: Call<'_>,
    format: Format,
    claims: &[Value],
    value: &Value,
) -> Result<(), Problem> {
    let now = call.host.clock.now();
    let data = Data {
        table: &|wide| table(claims, now, wide, false),
        value,
        names: output::names(claims),
    };
    Ok(output::write(call.host.terminal, format, &data)?)
}

fn key(claim: &Value) -> (&str, &str) {
    let workspace = Workspace::new(claim);
    (workspace.namespace(), workspace.name())
}

fn table(claims: &[Value], now: jiff::Timestamp, wide: bool, with_namespace: bool) -> Table {
    let mut head = vec!["NAME", "PHASE", "MACHINE", "STOPS", "USD/H", "AGE"];
    if with_namespace {
        head.insert(0, "NAMESPACE");
    }
    if wide {
        head.extend(["OWNER", "ZONE", "USED", "MONTH USD"]);
    }
    head.push("MESSAGE");
    let mut table = Table::new(head);
    for claim in claims {
        let one = Workspace::new(claim);
        let text = |text: Option<&str>| text.map(str::to_owned);
        let mut cells = vec![
            text(Some(one.name())),
            text(Some(one.phase_text())),
            text(one.status("machine")),
            one.stops_at()
                .map(|at| format!("in {}", span(at.duration_since(now).as_secs()))),
            one.cost("hourlyUsd").map(usd),
            one.created()
                .map(|at| span(now.duration_since(at).as_secs())),
        ];
        if with_namespace {
            cells.insert(0, text(Some(one.namespace())));
        }
        if wide {
            let used = crate::object::text(claim, "/status/activity/verdict");
            cells.extend([
                text(one.owner()),
                text(one.status("zone")),
                text(used),
                one.cost("soFarUsd").map(usd),
            ]);
        }
        cells.push(text(one.message()));
        table.row(cells);
    }
    table
}

fn details(one: Workspace<'_>, now: jiff::Timestamp) -> Vec<Line> {
    let ago =
        |at: jiff::Timestamp| format!("{at:.0} ({} ago)", span(now.duration_since(at).as_secs()));
    let text = |pointer: &str| crate::object::text(one.claim(), pointer).map(str::to_owned);
    let name = one.name();
    let connect = one
        .is_ready()
        .then(|| format!("devctl ssh {name}, or ssh {name}{DOMAIN}"));
    let stops = one.stops_at().map(|at| {
        let because = text("/status/lifecycle/stopsBecause").unwrap_or_default();
        format!(
            "{at:.0}, in {} ({because})",
            span(at.duration_since(now).as_secs())
        )
    });
    let software = [
        ("OpenCV", one.status("opencvVersion")),
        ("PyTorch", one.status("pytorchVersion")),
    ];
    let software: Vec<String> = software
        .into_iter()
        .filter_map(|(name, version)| Some(format!("{name} {}", version?)))
        .collect();
    let machine = [
        one.status("machine"),
        one.status("capacityType"),
        one.status("zone"),
        one.status("instanceId"),
    ];
    let machine: Vec<&str> = machine.into_iter().flatten().collect();
    let cost = one.cost("soFarUsd").map(|so_far| {
        let hourly = one.cost("hourlyUsd").map(usd).unwrap_or_default();
        let projected = one.cost("projectedUsd").map(usd).unwrap_or_default();
        format!(
            "{hourly} USD/h, {} USD this month, {projected} until it stops or the month ends",
            usd(so_far)
        )
    });
    let rows = [
        ("name", Some(format!("{}/{name}", one.namespace()))),
        ("phase", Some(one.phase_text().to_owned())),
        ("message", one.message().map(str::to_owned)),
        ("owner", one.owner().map(str::to_owned)),
        (
            "machine",
            Some(machine.join(", ")).filter(|text| !text.is_empty()),
        ),
        (
            "software",
            Some(software.join(", ")).filter(|text| !text.is_empty()),
        ),
        ("home", home(one)),
        ("connect", connect),
        ("created", one.created().map(ago)),
        ("started", one.time("/status/lifecycle/startedAt").map(ago)),
        ("stops", stops),
        ("used", text("/status/activity/message")),
        ("cost", cost),
    ];
    let rows = rows
        .into_iter()
        .filter_map(|(label, value)| Some((label, value?)));
    let mut lines: Vec<Line> = rows
        .map(|(label, value)| {
            Line::new()
                .with(Style::Dim, format!("{label:<10}"))
                .plain(value)
        })
        .collect();
    for node in one.nodes() {
        let state = if node.ready {
            "ready"
        } else {
            node.message.unwrap_or("not ready")
        };
        lines.push(
            Line::new()
                .with(Style::Dim, format!("{:<10}", "pod"))
                .plain(format!("{}: {state}", node.name)),
        );
    }
    lines
}

fn home(one: Workspace<'_>) -> Option<String> {
    let parameters = one.claim().pointer("/spec/parameters/home")?;
    let size = crate::object::text(parameters, "/size").map(str::to_owned);
    let gib = parameters.get("sizeGiB").and_then(Value::as_i64);
    let size = size.or_else(|| gib.map(|gib| format!("{gib}Gi")))?;
    let volume = crate::object::text(one.claim(), "/status/home/volumeId");
    Some(volume.map_or(size.clone(), |volume| format!("{size}, {volume}")))
}
