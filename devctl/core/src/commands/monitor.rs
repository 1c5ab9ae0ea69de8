//! `monitor`: what the machines of a workspace do. Its connections do not count as use.

use futures::StreamExt;
use futures::stream::{BoxStream, select_all};
use serde_json::{Value, json};

use crate::commands::call::{Call, not_started};
use crate::commands::{connect, jobs};
use crate::grammar::working::Monitor;
use crate::name::Host;
use crate::object::text;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::remote;
use crate::table::Table;
use crate::workspace::Workspace;

/// Shows measurements until the user ends it, or one of each machine.
pub(super) async fn monitor(call: Call<'_>, given: &Monitor) -> Result<u8, Problem> {
    let first = Host::new(given.name.clone(), None);
    let claim = connect::reachable(call, &first, false).await?;
    let count = Workspace::new(&claim).replicas();
    let mut streams: Vec<BoxStream<'static, (u16, std::io::Result<String>)>> = Vec::new();
    for replica in 0..count {
        let host = Host::new(given.name.clone(), (count > 1).then_some(replica));
        let mut words = vec![
            "sample".to_owned(),
            "--interval".to_owned(),
            given.interval.to_string(),
        ];
        if given.once {
            words.extend(["--count".to_owned(), "1".to_owned()]);
        }
        // A connection that another session shares would hide that session's use.
        let flags = ["-T", "-o", "ControlMaster=no", "-o", "ControlPath=none"];
        let line = remote::agent(&words);
        let program = call.with_ssh(|client| client.ssh(&host, &flags, &[line]))?;
        let lines = call
            .host
            .programs
            .lines(&program)
            .map_err(|error| not_started(&program, &error))?;
        streams.push(lines.map(move |line| (replica, line)).boxed());
    }
    let mut newest: Vec<Value> = vec![Value::Null; usize::from(count)];
    let mut all = select_all(streams);
    while let Some((replica, line)) = all.next().await {
        let line = line.map_err(|error| {
            Problem::new(Code::OutOfReach, "OutOfReach", error.to_string()).of(first.to_string())
        })?;
        let Ok(mut sample) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        sample["node"] = json!(replica);
        if let Some(place) = newest.get_mut(usize::from(replica)) {
            *place = sample.clone();
        }
        if !given.once {
            show(call, given.output.format, &claim, &newest, &sample)?;
        }
    }
    if newest.iter().all(Value::is_null) {
        return Err(jobs::no_agent(&first));
    }
    if given.once {
        once(call, given.output.format, &claim, &newest)?;
        return Ok(0);
    }
    Err(
        Problem::new(Code::OutOfReach, "OutOfReach", "the connection ended")
            .of(first.to_string())
            .next(format!("devctl show {}", given.name)),
    )
}

/// Shows the newest measurements, or writes each one for programs.
fn show(
    call: Call<'_>,
    format: Format,
    claim: &Value,
    newest: &[Value],
    sample: &Value,
) -> Result<(), Problem> {
    let terminal = call.host.terminal;
    if matches!(format, Format::Json | Format::Yaml) || terminal.width().is_none() {
        terminal.document(&format!("{}\n", compact(sample)))?;
        return Ok(());
    }
    let mut lines = table(newest).lines(terminal.width());
    lines.extend(head(Workspace::new(claim)));
    terminal.screen(&lines)?;
    Ok(())
}

fn once(call: Call<'_>, format: Format, claim: &Value, newest: &[Value]) -> Result<(), Problem> {
    let terminal = call.host.terminal;
    if matches!(format, Format::Json | Format::Yaml) {
        terminal.document(&output::document(&json!({"nodes": newest}), format))?;
        return Ok(());
    }
    let lines = table(newest).lines(terminal.width()).into_iter();
    for line in lines.chain(head(Workspace::new(claim))) {
        terminal.data(&line)?;
    }
    Ok(())
}

/// One line of JSON that controls no terminal.
fn compact(sample: &Value) -> String {
    let document = output::document(sample, Format::Json);
    document.lines().map(str::trim_start).collect()
}

fn head(workspace: Workspace<'_>) -> Vec<crate::text::Line> {
    let used = text(workspace.claim(), "/status/activity/verdict")
        .map(|verdict| format!("use: {verdict}"));
    let stops = workspace.stops_at().map(|at| format!("stops at {at:.0}"));
    let cost = workspace
        .cost("hourlyUsd")
        .map(|usd| format!("{} USD/h", crate::table::usd(usd)));
    let facts: Vec<String> = [used, stops, cost].into_iter().flatten().collect();
    if facts.is_empty() {
        Vec::new()
    } else {
        vec![facts.join(", ").into()]
    }
}

fn table(newest: &[Value]) -> Table {
    let mut table = Table::new([
        "NODE",
        "CPU",
        "MEMORY",
        "GPU",
        "GPU MEMORY",
        "SHM",
        "DISK",
        "NETWORK",
        "JOBS",
    ]);
    for (number, sample) in newest.iter().enumerate() {
        let of = |pointer: &str| {
            let used = sample.pointer(pointer)?;
            share(used)
        };
        let gpus = crate::object::list(sample, "/gpus");
        let use_of = |gpu: &Value| {
            let percent = gpu.get("utilizationPercent").and_then(Value::as_u64);
            percent.map_or("?".to_owned(), |percent| format!("{percent}%"))
        };
        let memory_of = |gpu: &Value| {
            gpu.get("memory")
                .and_then(share)
                .unwrap_or_else(|| "?".to_owned())
        };
        let join = |parts: Vec<String>| Some(parts.join(" ")).filter(|text| !text.is_empty());
        let cpu = sample
            .get("cpuPercent")
            .and_then(Value::as_u64)
            .map(|percent| format!("{percent}%"));
        let rate = |field: &str| {
            sample
                .pointer(&format!("/network/{field}BytesPerSecond"))?
                .as_u64()
                .map(bytes)
        };
        let network = rate("received").zip(rate("sent"));
        let names = crate::object::list(sample, "/jobs")
            .iter()
            .filter_map(|job| text(job, "/name"));
        table.row([
            Some(number.to_string()),
            cpu,
            of("/memory"),
            join(gpus.iter().map(use_of).collect()),
            join(gpus.iter().map(memory_of).collect()),
            of("/shm"),
            of("/disk"),
            network.map(|(received, sent)| format!("{received}/s in, {sent}/s out")),
            join(names.map(str::to_owned).collect()),
        ]);
    }
    table
}

fn share(use_of: &Value) -> Option<String> {
    let at = |field: &str| use_of.get(field)?.as_u64().map(bytes);
    match (at("usedBytes"), at("totalBytes")) {
        (Some(used), Some(total)) => Some(format!("{used} of {total}")),
        (used, _) => used,
    }
}

/// Bytes in the largest binary unit that fits.
fn bytes(count: u64) -> String {
    let units = ["B", "Ki", "Mi", "Gi", "Ti"];
    let mut unit = 0;
    let mut whole = count;
    while whole >= 10_240 && unit + 1 < units.len() {
        whole /= 1_024;
        unit += 1;
    }
    format!("{whole}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_gpus_and_an_unknown_value_have_a_row() {
        let sample = json!({
            "cpuPercent": 150, "memory": {"usedBytes": 2_147_483_648_u64, "totalBytes": null},
            "gpus": [{"utilizationPercent": null, "memory": {"usedBytes": 0, "totalBytes": 16_106_127_360_u64}}],
            "jobs": [{"name": "train"}],
        });
        let lines = table(&[sample, Value::Null]).lines(None);
        let text: Vec<String> = lines.iter().map(crate::text::Line::text).collect();
        assert!(text[1].starts_with("0      150%   2048Mi"), "{text:?}");
        assert!(
            text[1].contains("0B of 15Gi") && text[1].ends_with("train"),
            "{text:?}"
        );
        assert!(text[2].starts_with("1      -"), "{text:?}");
    }
}
