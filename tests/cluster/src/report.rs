//! `status`: the parts of a cluster and the state of each part.

use std::path::PathBuf;
use std::process::Command;

use jiff::Timestamp;
use serde::Serialize;

use crate::cluster::{Cluster, Error};
use crate::command;
use crate::crossplane::NAMESPACE;
use crate::processes::children;
use crate::state::Verdict;
use crate::supervisor::{PartState, PartStatus};

/// The status of a cluster at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Its name.
    pub name: String,
    /// Whether all parts and deployments are ready.
    pub up: bool,
    /// Its condition, in words.
    pub verdict: String,
    /// When it was created.
    pub created: Timestamp,
    /// The version of Kubernetes.
    pub kubernetes: String,
    /// The version of Crossplane.
    pub crossplane: String,
    /// Its parts.
    pub parts: Vec<PartRow>,
    /// Crossplane's deployments.
    pub deployments: Vec<Deployment>,
    /// Its addresses.
    pub endpoints: Endpoints,
    /// Its state folder.
    pub state: PathBuf,
}

/// One part.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartRow {
    /// The part's name.
    pub name: String,
    /// `waiting`, `starting`, `ready` or `dead`; `gone` if the cluster's INIT has ended.
    pub state: String,
    /// Its process number on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// When it entered that state.
    pub since: Timestamp,
    /// The last lines of a dead part's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_lines: Option<String>,
    /// How it ended, or what the last probe saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Its log.
    pub log: PathBuf,
}

/// One deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deployment {
    /// Its name.
    pub name: String,
    /// The number of its available pods.
    pub available: u64,
    /// The number of pods that it should have.
    pub wanted: u64,
}

/// The addresses of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoints {
    /// The API server.
    pub apiserver: String,
    /// The registry.
    pub registry: String,
    /// The EC2 emulator.
    pub emulator: String,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
}

/// Reads the status of the cluster.
pub fn look(cluster: &Cluster) -> Result<Report, Error> {
    let verdict = cluster.verdict()?;
    let alive = !matches!(verdict, Verdict::Gone | Verdict::Absent);
    let init = cluster.state().init()?.filter(|_| alive);
    let processes = init.map(|init| children(init.pid)).unwrap_or_default();
    let deployments = if alive {
        deployments(cluster)
    } else {
        Vec::new()
    };
    let available = deployments
        .iter()
        .all(|deployment| deployment.available >= deployment.wanted);
    let record = cluster.record();
    Ok(Report {
        name: record.name.clone(),
        up: verdict == Verdict::Up && available && !deployments.is_empty(),
        verdict: verdict.to_string(),
        created: record.created,
        kubernetes: record.kubernetes.clone(),
        crossplane: record.crossplane.clone(),
        parts: cluster
            .parts()?
            .iter()
            .map(|part| row(part, alive, &processes))
            .collect(),
        deployments,
        endpoints: Endpoints {
            apiserver: cluster.addresses().apiserver(),
            registry: cluster.registry(),
            emulator: cluster.emulator_url(),
            kubeconfig: cluster.kubeconfig(),
        },
        state: cluster.state().root().to_path_buf(),
    })
}

fn row(part: &PartStatus, alive: bool, processes: &[(i32, i32)]) -> PartRow {
    let running = alive && part.state != PartState::Dead;
    PartRow {
        name: part.name.clone(),
        state: if alive || part.state == PartState::Dead {
            part.state.to_string()
        } else {
            "gone".to_owned()
        },
        pid: part.pid.filter(|_| running).and_then(|inside| {
            let found = processes.iter().find(|(_, number)| *number == inside)?;
            Some(found.0)
        }),
        since: part.since,
        detail: part.exit.clone().or_else(|| part.observed.clone()),
        last_lines: (part.state == PartState::Dead).then(|| command::tail(&part.log, 10)),
        log: part.log.clone(),
    }
}

/// Crossplane's deployments; none if the API server does not answer.
fn deployments(cluster: &Cluster) -> Vec<Deployment> {
    let Ok(kubectl) = cluster.program("kubectl") else {
        return Vec::new();
    };
    let mut command = Command::new(kubectl);
    command
        .env("KUBECONFIG", cluster.kubeconfig())
        .args(["get", "deployments", "--namespace", NAMESPACE])
        .args(["-o", "json", "--request-timeout=5s"]);
    let answer = command::output(&mut command).unwrap_or_default();
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
    answer["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|item| item["metadata"]["labels"]["release"] == "crossplane")
        .map(|item| Deployment {
            name: item["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            available: item["status"]["availableReplicas"].as_u64().unwrap_or(0),
            wanted: item["spec"]["replicas"].as_u64().unwrap_or(1),
        })
        .collect()
}

impl std::fmt::Display for Report {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            formatter,
            "cluster {}: {} (Kubernetes {}, Crossplane {})\n",
            self.name, self.verdict, self.kubernetes, self.crossplane
        )?;
        let line = |name: &str, state: &str, pid: &str, since: &str, rest: &str| {
            format!("{name:<26}{state:<10}{pid:<9}{since:<22}{rest}")
        };
        writeln!(
            formatter,
            "{}",
            line("PART", "STATE", "PID", "SINCE", "LOG")
        )?;
        for part in &self.parts {
            let pid = part.pid.map_or("-".to_owned(), |pid| pid.to_string());
            let since = part.since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            let log = part.log.display().to_string();
            writeln!(
                formatter,
                "{}",
                line(&part.name, &part.state, &pid, &since, &log)
            )?;
            if let Some(detail) = &part.detail {
                writeln!(formatter, "  {detail}")?;
            }
            if let Some(lines) = &part.last_lines {
                writeln!(formatter, "  its log ends with:\n{lines}")?;
            }
        }
        for Deployment {
            name,
            available,
            wanted,
        } in &self.deployments
        {
            let state = if available >= wanted {
                "ready"
            } else {
                "waiting"
            };
            let count = format!("{available} of {wanted} pods available, in {NAMESPACE}");
            writeln!(formatter, "{}", line(name, state, "-", "-", &count))?;
        }
        let Endpoints {
            apiserver,
            registry,
            emulator,
            kubeconfig,
        } = &self.endpoints;
        write!(
            formatter,
            "\nAPI server    {apiserver}\nregistry      {registry}\nEC2 emulator  {emulator}\n\
             kubeconfig    {}\nstate         {}",
            kubeconfig.display(),
            self.state.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(state: PartState) -> PartStatus {
        PartStatus {
            name: "etcd".to_owned(),
            state,
            since: Timestamp::UNIX_EPOCH,
            pid: Some(7),
            log: "/logs/etcd.log".into(),
            observed: None,
            exit: (state == PartState::Dead).then(|| "exit status 1".to_owned()),
        }
    }

    #[test]
    fn the_number_shown_is_the_one_that_the_host_knows() {
        let row = row(&part(PartState::Ready), true, &[(500, 3), (612, 7)]);
        assert_eq!(row.pid, Some(612));
    }

    #[test]
    fn a_dead_part_shows_no_process_but_how_it_ended() {
        let row = row(&part(PartState::Dead), true, &[(612, 7)]);
        assert_eq!((row.pid, row.state.as_str()), (None, "dead"));
        assert_eq!(row.detail.as_deref(), Some("exit status 1"));
    }

    #[test]
    fn parts_of_a_cluster_that_is_gone_do_not_read_ready() {
        let row = row(&part(PartState::Ready), false, &[]);
        assert_eq!((row.pid, row.state.as_str()), (None, "gone"));
    }
}
