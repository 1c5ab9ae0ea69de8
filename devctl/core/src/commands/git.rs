//! `create --git` and `delete --git`: the claim as a commit, by the user's own git.

use std::path::PathBuf;

use serde_json::Value;

use crate::commands::call::Call;
use crate::commands::ready;
use crate::commands::waiting::{self, Step};
use crate::grammar::Delete;
use crate::grammar::creating::Create;
use crate::object::{Reference, text};
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::table::span;
use crate::text::{Line, Style};

mod repository;

use repository::{Repository, shown};

/// The confirmation that Argo CD asks for before it deletes a claim with a home (Argo CD, "Sync
/// options").
const CONFIRM: &str = "Prune=confirm,Delete=confirm";

/// Commits a claim, and pushes it.
pub(super) async fn commit(
    call: Call<'_>,
    given: &Create,
    wanted: &Value,
    target: &Reference,
) -> Result<u8, Problem> {
    let repository = Repository::open(call).await?;
    let path = path(target);
    let content = output::document(&protected(wanted), Format::Yaml);
    let branch = (!given.push).then(|| format!("workspace-{}", target.name));
    match repository.read(&path)? {
        Some(before) if before == content => {
            let line = format!("{} is as asked for", path.display());
            call.host.terminal.note(&line.into());
        }
        Some(_) => {
            let message = format!("{} exists, and is another one", path.display());
            return Err(Problem::new(Code::Exists, "AlreadyExists", message)
                .of(target.to_string())
                .next("change the file, or choose another name"));
        }
        None => {
            repository.switch(branch.as_deref()).await?;
            repository.write(&path, &content)?;
            repository.git(&["add", "--", &shown(&path)]).await?;
            let message = format!("Create workspace {}", target.name);
            repository
                .publish(&path, &message, branch.as_deref())
                .await?;
        }
    }
    match branch {
        Some(branch) => repository.propose(&branch).await?,
        None if !given.no_wait => return waited(call, given, target).await,
        None => {}
    }
    Ok(0)
}

/// Commits the deletion of a claim, and pushes it.
pub(super) async fn remove(
    call: Call<'_>,
    given: &Delete,
    target: &Reference,
) -> Result<(), Problem> {
    let repository = Repository::open(call).await?;
    let path = path(target);
    if repository.read(&path)?.is_none() {
        let message = format!(
            "{} does not exist in {}",
            path.display(),
            repository.root().display()
        );
        return Err(Problem::new(Code::NotFound, "NotFound", message)
            .of(target.to_string())
            .field("--git")
            .next("change into a clone of the repository that Argo CD reads, and pull"));
    }
    let branch = (!given.push).then(|| format!("delete-workspace-{}", target.name));
    repository.switch(branch.as_deref()).await?;
    repository
        .git(&["rm", "--quiet", "--", &shown(&path)])
        .await?;
    let message = format!("Delete workspace {}", target.name);
    repository
        .publish(&path, &message, branch.as_deref())
        .await?;
    match branch {
        Some(branch) => repository.propose(&branch).await,
        None => Ok(()),
    }
}

/// The file of a claim in the repository that Argo CD reads.
fn path(target: &Reference) -> PathBuf {
    PathBuf::from("workspaces")
        .join(&target.name)
        .join("claim.yaml")
}

/// Waits for the claim that Argo CD creates, and until it is ready.
async fn waited(call: Call<'_>, given: &Create, target: &Reference) -> Result<u8, Problem> {
    let line = format!(
        "Argo CD creates {} without devctl: devctl show {}",
        target, target.name
    );
    call.host.terminal.stays(&line.into());
    let found = waiting::wait(
        call,
        target,
        None,
        given.timeout,
        |workspace| match workspace {
            Some(_) => Step::Done,
            None => Step::Going(Box::new(|seconds| {
                Line::from("waiting for Argo CD  ").with(Style::Dim, span(seconds))
            })),
        },
    )
    .await?
    .unwrap_or_default();
    ready::until_ready(call, target, found, given.timeout).await?;
    call.host
        .terminal
        .data(&format!("{} is Ready: devctl ssh {}", target.name, target.name).into())?;
    Ok(0)
}

/// The claim with Argo CD's confirmation, if it has a home.
fn protected(claim: &Value) -> Value {
    let mut claim = claim.clone();
    let has_home = claim.pointer("/spec/parameters/home").is_some();
    let key = "argocd.argoproj.io/sync-options";
    if has_home
        && text(
            &claim,
            "/metadata/annotations/argocd.argoproj.io~1sync-options",
        )
        .is_none()
    {
        claim["metadata"]["annotations"][key] = Value::from(CONFIRM);
    }
    claim
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_with_a_home_asks_before_it_goes() {
        let claim =
            json!({"metadata": {"name": "a"}, "spec": {"parameters": {"home": {"size": "1Gi"}}}});
        let sync = &protected(&claim)["metadata"]["annotations"]["argocd.argoproj.io/sync-options"];
        assert_eq!(sync, CONFIRM);
        let bare = json!({"metadata": {"name": "a"}, "spec": {"parameters": {}}});
        assert_eq!(protected(&bare), bare);
    }
}
