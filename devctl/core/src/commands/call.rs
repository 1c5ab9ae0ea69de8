//! One call of devctl: the place where it runs, and the options of every command.

use std::path::PathBuf;

use serde_json::Value;

use crate::grammar::Shared;
use crate::host::{Host, Piped, Program, Ran, Scope};
use crate::name::Name;
use crate::object::{Kind, Reference, text};
use crate::problem::{Code, Problem};
use crate::ssh::client::{Client, Proxied};
use crate::workspace::Workspace;

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
    pub(super) async fn claim(&self, name: &Name) -> Result<Value, Problem> {
        self.read(&self.workspace(name)).await
    }

    /// Reads an object.
    pub(super) async fn read(&self, object: &Reference) -> Result<Value, Problem> {
        let read = self.host.api.get(object).await;
        read.map_err(|refused| refused.problem(object))
    }

    /// The file with the host keys of workspaces.
    pub(super) fn known_hosts(&self) -> PathBuf {
        self.host.files.state().join("known_hosts")
    }

    /// The options by which `proxy` finds the same workspaces as this call.
    fn own_options(&self) -> Vec<String> {
        let Shared {
            namespace,
            context,
            kubeconfig,
            identity,
            bastion,
        } = self.shared;
        // By way of a bastion, `proxy` logs in there with the same key.
        let identity = identity.as_ref().filter(|_| bastion.is_some());
        let identity = identity.map(|path| path.display().to_string());
        let namespace = namespace.as_ref().map(Name::to_string);
        let kubeconfig = kubeconfig.as_ref().map(|path| path.display().to_string());
        let options = [
            ("--namespace", namespace),
            ("--context", context.clone()),
            ("--kubeconfig", kubeconfig),
            ("--bastion", bastion.clone()),
            ("--identity", identity),
        ];
        let given = options
            .into_iter()
            .filter_map(|(option, value)| Some((option, value?)));
        given
            .flat_map(|(option, value)| [option.to_owned(), value])
            .collect()
    }

    /// Does something with the user's ssh.
    pub(super) fn with_ssh<T>(&self, plan: impl FnOnce(&Client) -> T) -> Result<T, Problem> {
        if let Some(way) = self.host.reach.settings() {
            return Ok(plan(&Client::new(way)));
        }
        let devctl = self.host.programs.own_path().map_err(|error| {
            Problem::new(
                Code::Failed,
                "OwnPath",
                format!("devctl does not find itself: {error}"),
            )
        })?;
        let proxied = Proxied {
            devctl: &devctl,
            options: &self.own_options(),
            known_hosts: &self.known_hosts(),
            identity: self.shared.identity.as_deref(),
        };
        Ok(plan(&proxied.client()))
    }

    /// devctl's own file of ssh's configuration.
    pub(super) fn ssh_configuration(&self) -> PathBuf {
        self.host.files.home().join(".config/devctl/ssh_config")
    }

    /// Reads all objects of a kind in a namespace.
    pub(super) async fn list(&self, kind: Kind, namespace: &str) -> Result<Vec<Value>, Problem> {
        let scope = Scope::Namespace(namespace.to_owned());
        let listed = self.host.api.list(kind, &scope).await;
        listed.map_err(|refused| refused.problem(&Reference::new(kind, namespace, "")))
    }

    /// The events of a workspace, the oldest first.
    pub(super) async fn events(&self, workspace: Workspace<'_>) -> Result<Vec<Value>, Problem> {
        let mut events = self.list(Kind::Event, workspace.namespace()).await?;
        events.retain(|event| text(event, "/involvedObject/uid") == Some(workspace.uid()));
        let last = |event: &Value| text(event, "/lastTimestamp").unwrap_or_default().to_owned();
        events.sort_by_key(last);
        Ok(events)
    }

    /// Runs a program with the user's terminal, and returns its exit code.
    pub(super) async fn run(&self, program: &Program) -> Result<u8, Problem> {
        let ran = self.host.programs.run(program).await;
        Ok(exit_code(
            ran.map_err(|error| not_started(program, &error))?,
        ))
    }

    /// Runs a program and returns its exit code, standard output and standard error.
    pub(super) async fn capture(&self, program: &Program) -> Result<Ran, Problem> {
        let ran = self.host.programs.capture(program).await;
        ran.map_err(|error| not_started(program, &error))
    }

    /// Runs a program whose output goes to standard output.
    pub(super) async fn piped(&self, program: &Program) -> Result<Piped, Problem> {
        let ran = self.host.programs.piped(program).await;
        ran.map_err(|error| not_started(program, &error))
    }
}

/// The exit code of a program as devctl's own.
pub(super) fn exit_code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The problem of a program that does not start.
pub(super) fn not_started(program: &Program, error: &std::io::Error) -> Problem {
    let message = format!("{}: {error}", program.name);
    Problem::new(Code::Failed, "Program", message).next(format!("install {}", program.name))
}
