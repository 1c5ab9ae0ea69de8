//! The `ConfigMap`s of a workspace: the programs that its pods run, and the SSH keys that may log
//! in.

use k8s_openapi::api::core::v1::ConfigMap;

use crate::identity;
use crate::names::Names;

/// The file with the keys that may log in.
pub const AUTHORIZED_KEYS: &str = "authorized_keys";

macro_rules! program {
    ($name:literal) => {
        ($name, include_str!(concat!("../programs/", $name)))
    };
}

/// All programs and the modules that they share, by name. They are the same for every workspace.
/// Environment variables hold the values that differ.
const PROGRAMS: &[(&str, &str)] = &[
    program!("allreduce.py"),
    program!("allreduce_worker.py"),
    program!("answering.py"),
    program!("api_server.py"),
    program!("distributed_run.py"),
    program!("failure.py"),
    program!("gang.py"),
    program!("home.py"),
    program!("host_keys.py"),
    program!("launch.py"),
    program!("nccl_report.py"),
    program!("node_agent.py"),
    program!("node_main.py"),
    program!("places.py"),
    program!("prepare"),
    program!("readiness.py"),
    program!("rendezvous.py"),
    program!("rendezvous_store.py"),
    program!("session_environment.py"),
    program!("software.py"),
    program!("sshd_config.py"),
    program!("start"),
    program!("table.py"),
    program!("workspace-allreduce"),
    program!("workspace-nccl"),
    program!("workspace-rendezvous"),
    program!("workspace-torchrun"),
];

/// The ConfigMap with the programs.
pub fn programs(names: &Names, owner: &str) -> ConfigMap {
    let programs = PROGRAMS.iter();
    let data = programs.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    ConfigMap {
        metadata: identity::metadata(names, &names.files(), owner),
        data: Some(data.collect()),
        ..ConfigMap::default()
    }
}

/// The ConfigMap with the SSH keys that may log in. kubelet updates running pods within about a
/// minute.
pub fn authorized_keys(names: &Names, owner: &str, keys: &[String]) -> ConfigMap {
    let lines: Vec<&str> = keys.iter().flat_map(|key| [key.as_str(), "\n"]).collect();
    ConfigMap {
        metadata: identity::metadata(names, &names.authorized_keys(), owner),
        data: Some([(AUTHORIZED_KEYS.to_owned(), lines.concat())].into()),
        ..ConfigMap::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_reaches_the_pods() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/programs");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "__pycache__")
            .collect();
        files.sort();
        let programs: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
        assert_eq!(programs, files);
    }

    /// A ConfigMap holds at most 1 MiB, and Crossplane sends this one at every reconcile.
    #[test]
    fn the_programs_stay_small() {
        let bytes: usize = PROGRAMS.iter().map(|(_, text)| text.len()).sum();
        assert!(bytes < 100 * 1024, "{bytes} bytes");
    }
}
