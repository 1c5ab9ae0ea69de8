//! `delete`.

use serde_json::Value;

use crate::commands::call::Call;
use crate::commands::git;
use crate::commands::waiting::{self, Step};
use crate::grammar::Delete;
use crate::object::{Kind, Reference, cluster_workspace, text};
use crate::problem::{Code, Problem};
use crate::table::span;
use crate::text::{Line, Style};
use crate::workspace::Workspace;

/// Deletes a workspace, and its homes in the cluster if that is asked for.
pub(super) async fn delete(call: Call<'_>, given: &Delete) -> Result<u8, Problem> {
    let target = call.workspace(&given.name);
    if given.git {
        return from_git(call, given, &target).await;
    }
    let claim = call.read(&target).await?;
    let workspace = Workspace::new(&claim);
    let name = given.name.as_str();
    if workspace.is_from_git() {
        let message = "it comes from git, and Argo CD would create it again";
        return Err(Problem::new(Code::Refused, "FromGit", message)
            .of(target.to_string())
            .next(format!(
                "devctl delete {name} --git, in a clone of the repository that Argo CD reads"
            )));
    }
    let homes = if given.home {
        homes(call, &target).await?
    } else {
        Vec::new()
    };
    if given.home && homes.is_empty() {
        let message = if workspace.has_home() {
            "its home is no volume of the cluster: the platform's policy decides about it"
        } else {
            "it has no home"
        };
        return Err(Problem::new(Code::Refused, "NoHome", message)
            .of(target.to_string())
            .field("--home")
            .next(format!("devctl delete {name}")));
    }
    if !given.yes {
        confirm(call, given, workspace, &homes)?;
    }
    let api = call.host.api;
    api.delete(&target, workspace.uid())
        .await
        .map_err(|refused| refused.problem(&target))?;
    if !given.no_wait {
        let uid = workspace.uid();
        until_gone(call, &target, uid, Some(claim.clone()), given.timeout).await?;
    }
    for home in &homes {
        delete_home(call, given, &target.namespace, home).await?;
    }
    let state = if given.no_wait {
        "is being deleted"
    } else {
        "is deleted"
    };
    let kept = match (workspace.has_home(), homes.is_empty()) {
        (true, true) => "; what happens to its home is the platform's policy",
        _ => "",
    };
    let line = Line::new()
        .with(Style::Bold, name)
        .plain(format!(" {state}{kept}"));
    call.host.terminal.data(&line)?;
    Ok(0)
}

/// Deletes a home of a workspace that is deleted.
async fn delete_home(
    call: Call<'_>,
    given: &Delete,
    namespace: &str,
    home: &Value,
) -> Result<(), Problem> {
    let uid = text(home, "/metadata/uid").unwrap_or_default();
    let name = text(home, "/metadata/name").unwrap_or_default();
    let home = Reference::new(Kind::Home, namespace, name);
    let done = match call.host.api.delete(&home, uid).await {
        Ok(()) if given.no_wait => "is being deleted",
        Ok(()) => {
            // Kubernetes keeps a home until no pod uses it.
            let left = existing(call, &home).await?;
            until_gone(call, &home, uid, left, given.timeout).await?;
            "deleted"
        }
        // The platform's policy, or another person, deleted it.
        Err(refused) if refused.is_absent() => "was gone already",
        Err(refused) => return Err(refused.problem(&home)),
    };
    call.host.terminal.note(&format!("{home} {done}").into());
    Ok(())
}

/// Deletes a workspace from the git repository that Argo CD reads.
async fn from_git(call: Call<'_>, given: &Delete, target: &Reference) -> Result<u8, Problem> {
    // Argo CD may not have created it yet, or it is gone already; the file is to go nevertheless.
    let claim = existing(call, target).await?;
    let workspace = claim.as_ref().map(Workspace::new);
    if let Some(workspace) = workspace
        && !given.yes
    {
        confirm(call, given, workspace, &[])?;
    }
    git::remove(call, given, target).await?;
    if workspace.is_some_and(Workspace::has_home) {
        let line = format!(
            "{} has a home: Argo CD asks for a confirmation before it deletes the workspace",
            target.name
        );
        call.host.terminal.note(&line.into());
    }
    if let Some(claim) = claim.filter(|_| given.push && !given.no_wait) {
        let uid = Workspace::new(&claim).uid().to_owned();
        until_gone(call, target, &uid, Some(claim), given.timeout).await?;
        let line = format!("{} is deleted", target.name);
        call.host.terminal.data(&line.into())?;
    }
    Ok(0)
}

/// The object, if it exists.
async fn existing(call: Call<'_>, target: &Reference) -> Result<Option<Value>, Problem> {
    match call.host.api.get(target).await {
        Ok(object) => Ok(Some(object)),
        Err(refused) if refused.is_absent() => Ok(None),
        Err(refused) => Err(refused.problem(target)),
    }
}

/// Asks before something is lost. Without a terminal, `--yes` is needed where files are lost.
fn confirm(
    call: Call<'_>,
    given: &Delete,
    workspace: Workspace<'_>,
    homes: &[Value],
) -> Result<(), Problem> {
    let name = workspace.name();
    let loses = match (homes.len(), workspace.has_home()) {
        (0, true) => return Ok(()),
        (0, false) => format!("{name} has no home: its files are lost"),
        (count, _) => format!(
            "{name} and {count} home{} with all files are lost",
            if count == 1 { "" } else { "s" }
        ),
    };
    let terminal = call.host.terminal;
    let question = Line::new().with(
        Style::Warning,
        format!("{loses}. Type its name to delete it: "),
    );
    let answer = terminal.ask(&question);
    let options = [
        (given.home, " --home"),
        (given.git, " --git"),
        (given.push, " --push"),
    ];
    let options = options.into_iter().filter(|(is, _)| *is);
    let options: String = options.map(|(_, option)| option).collect();
    let refused = |message: &str| {
        Err(Problem::new(Code::Usage, "NotConfirmed", message)
            .of(workspace.reference().to_string())
            .field("--yes")
            .next(format!("devctl delete {name} --yes{options}")))
    };
    match answer.as_deref().map(str::trim) {
        Some(typed) if typed == name => Ok(()),
        Some(_) => refused("another name was typed; nothing was deleted"),
        None => refused(&format!(
            "{loses}, and nobody can be asked; nothing was deleted"
        )),
    }
}

async fn homes(call: Call<'_>, target: &Reference) -> Result<Vec<Value>, Problem> {
    let homes = call.list(Kind::Home, &target.namespace).await?;
    let is_ours = |home: &Value| cluster_workspace(home) == Some(&target.name);
    Ok(homes.into_iter().filter(is_ours).collect())
}

/// Waits until the object with this UID is gone. `first` is what is known of it.
async fn until_gone(
    call: Call<'_>,
    target: &Reference,
    uid: &str,
    first: Option<Value>,
    longest: std::time::Duration,
) -> Result<(), Problem> {
    let line = format!("{target} is being deleted; its machine ends without devctl");
    call.host.terminal.stays(&line.into());
    waiting::wait(call, target, first, longest, |workspace| {
        let Some(workspace) = workspace.filter(|one| one.uid() == uid) else {
            return Step::Done;
        };
        let name = workspace.name().to_owned();
        let message = workspace.message().unwrap_or_default().to_owned();
        Step::Going(Box::new(move |seconds| {
            let line = Line::new().with(Style::Bold, format!("{name}  "));
            line.plain("deleting  ")
                .with(Style::Dim, span(seconds))
                .plain(format!("  {message}"))
        }))
    })
    .await
    .map(drop)
}
