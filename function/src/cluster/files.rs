//! The programs that pods run, and the owner's keys.

use serde_json::{Value, json};

use super::identity;
use super::names::Names;

/// Every program, by its name. They are the same for every workspace; what varies
/// reaches them as environment variables.
const PROGRAMS: [(&str, &str); 7] = [
    ("prepare", include_str!("scripts/prepare")),
    ("start", include_str!("scripts/start")),
    ("ready", include_str!("scripts/ready")),
    (
        "workspace-torchrun",
        include_str!("scripts/workspace-torchrun"),
    ),
    (
        "workspace-rendezvous",
        include_str!("scripts/workspace-rendezvous"),
    ),
    (
        "workspace-allreduce",
        include_str!("scripts/workspace-allreduce"),
    ),
    ("workspace-nccl", include_str!("scripts/workspace-nccl")),
];

/// The ConfigMap with the programs.
pub fn programs(names: &Names, owner: &str) -> Value {
    let data: serde_json::Map<String, Value> = PROGRAMS
        .iter()
        .map(|(name, text)| ((*name).to_owned(), json!(text)))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": identity::metadata(names, &names.files(), owner),
        "data": data,
    })
}

/// The ConfigMap with the keys that may log in. kubelet brings a changed one to
/// running pods within about a minute.
pub fn authorized_keys(names: &Names, owner: &str, keys: &[String]) -> Value {
    let lines: String = keys.iter().map(|key| format!("{key}\n")).collect();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": identity::metadata(names, &names.authorized_keys(), owner),
        "data": {"authorized_keys": lines},
    })
}
