//! Helm, with its caches and configuration in the cluster's state folder.

use std::path::Path;
use std::process::Command;

use crate::state::StateFolder;

/// A call of Helm on the cluster with that state folder. The caller adds the arguments.
pub(crate) fn call(program: &Path, state: &StateFolder) -> Command {
    let home = state.temporary().join("helm");
    let mut helm = Command::new(program);
    helm.env("KUBECONFIG", state.kubeconfig())
        .env("HELM_CACHE_HOME", home.join("cache"))
        .env("HELM_CONFIG_HOME", home.join("config"))
        .env("HELM_DATA_HOME", home.join("data"));
    helm
}
