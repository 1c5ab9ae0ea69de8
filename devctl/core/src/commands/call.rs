//! One call of devctl: the place where it runs, and the options of every command.

use std::path::PathBuf;

use crate::grammar::Shared;
use crate::host::{Host, Program};
use crate::name::Name;
use crate::object::{Kind, Reference};
use crate::problem::{Code, Problem};
use crate::ssh::client::Client;

/// A command of one call of devctl.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The place where devctl runs.
    pub host: Host<'a>,
    /// The options of every command.
    pub shared: &'a Shared,
}

impl Call<'_> {
    /// A workspace of the current namespace.
    pub(super) fn workspace(&self, name: &Name) -> Reference {
        Reference::new(Kind::Claim, self.host.api.namespace(), name.as_str())
    }

    /// Reads a workspace.
    pub(super) async fn claim(&self, name: &Name) -> Result<serde_json::Value, Problem> {
        self.read(&self.workspace(name)).await
    }

    /// Reads an object.
    pub(super) async fn read(&self, object: &Reference) -> Result<serde_json::Value, Problem> {
        let read = self.host.api.get(object).await;
        read.map_err(|refused| refused.problem(object))
    }

    /// The file with the host keys of workspaces.
    pub(super) fn known_hosts(&self) -> PathBuf {
        self.host.files.state().join("known_hosts")
    }

    /// The options by which `proxy` finds the same workspaces as this call.
    pub(super) fn own_options(&self) -> Vec<String> {
        let Shared {
            namespace,
            context,
            kubeconfig,
            identity: _,
        } = self.shared;
        let namespace = namespace.as_ref().map(Name::to_string);
        let kubeconfig = kubeconfig.as_ref().map(|path| path.display().to_string());
        let options = [
            ("--namespace", namespace),
            ("--context", context.clone()),
            ("--kubeconfig", kubeconfig),
        ];
        let given = options
            .into_iter()
            .filter_map(|(option, value)| Some((option, value?)));
        given
            .flat_map(|(option, value)| [option.to_owned(), value])
            .collect()
    }

    /// Does something with the user's ssh.
    pub(super) fn with_ssh<T>(&self, plan: impl FnOnce(&Client<'_>) -> T) -> Result<T, Problem> {
        let devctl = self.host.programs.own_path().map_err(|error| {
            Problem::new(
                Code::Failed,
                "OwnPath",
                format!("devctl does not find itself: {error}"),
            )
        })?;
        let options = self.own_options();
        let known_hosts = self.known_hosts();
        Ok(plan(&Client {
            devctl: &devctl,
            options: &options,
            known_hosts: &known_hosts,
            identity: self.shared.identity.as_deref(),
        }))
    }

    /// Runs a program with the user's terminal, and returns its exit code.
    pub(super) async fn run(&self, program: &Program) -> Result<u8, Problem> {
        let ran = self.host.programs.run(program).await;
        let code = ran.map_err(|error| {
            Problem::new(
                Code::Failed,
                "Program",
                format!("{}: {error}", program.name),
            )
            .next(format!("install {}", program.name))
        })?;
        Ok(u8::try_from(code).unwrap_or(u8::MAX))
    }
}
