//! The user's settings: options, then the environment, then a file.

use devctl_core::grammar::{self, Arguments};
use devctl_core::host::Files;
use devctl_core::problem::Problem;

use crate::files::Disk;

/// Fills in the user's settings where neither an option nor the environment has a value.
pub(crate) fn fill_in(files: &Disk, arguments: &mut Arguments) -> Result<(), Problem> {
    let path = files.home().join(".config/devctl/config.toml");
    let shown = path.display().to_string();
    let content = files
        .read(&path)
        .map_err(|error| Problem::usage(&shown, error.to_string()))?;
    let shared = &mut arguments.shared;
    let goes_past_bastion = shared.context.is_some() || shared.kubeconfig.is_some();
    if goes_past_bastion {
        shared.bastion = None;
    }
    // ssh's configuration names the file: an editor may have another environment.
    if shared.kubeconfig.is_none() {
        let path = std::env::var_os("KUBECONFIG").map(std::path::PathBuf::from);
        shared.kubeconfig = path.filter(|path| path.is_file());
    }
    let Some(content) = content else {
        if shared.bastion.is_some() {
            shared.kubeconfig = None;
        }
        return Ok(());
    };
    let settings = devctl_core::configuration::read(&content, &shown)?;
    if shared.bastion.is_none() && !goes_past_bastion {
        let bastion = settings.bastion.as_deref().map(grammar::bastion);
        let bastion = bastion.transpose();
        shared.bastion = bastion.map_err(|error| Problem::usage(&shown, error))?;
    }
    if shared.bastion.is_some() {
        // The bastion knows the namespace, and no kubeconfig is needed.
        shared.kubeconfig = None;
        return Ok(());
    }
    if shared.context.is_none() {
        shared.context = settings.context;
    }
    if shared.namespace.is_none() {
        let namespace = settings.namespace.map(|name| name.parse()).transpose();
        shared.namespace = namespace.map_err(|error: String| Problem::usage(&shown, error))?;
    }
    Ok(())
}
