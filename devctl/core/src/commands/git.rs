//! `create --git`: the claim as a commit, by the user's own git.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::commands::call::Call;
use crate::commands::ready;
use crate::commands::waiting::{self, Step};
use crate::grammar::creating::Create;
use crate::host::{Program, Ran};
use crate::object::{Reference, text};
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::table::span;
use crate::text::{Line, Style};

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
    let root = root(call).await?;
    let path = PathBuf::from("workspaces")
        .join(&target.name)
        .join("claim.yaml");
    let file = root.join(&path);
    let content = output::document(&protected(wanted), Format::Yaml);
    let before = call
        .host
        .files
        .read(&file)
        .map_err(|error| failed(&file, &error))?;
    match before {
        Some(before) if before == content => {
            call.host
                .terminal
                .note(&format!("{} is as asked for", path.display()).into());
        }
        Some(_) => {
            let message = format!("{} exists, and is another one", path.display());
            return Err(Problem::new(Code::Exists, "AlreadyExists", message)
                .of(target.to_string())
                .next("change the file, or choose another name"));
        }
        None => write(call, given, &root, &path, &content, target).await?,
    }
    if given.push {
        if !given.no_wait {
            return waited(call, given, target).await;
        }
    } else {
        propose(call, &root, &branch(target)).await?;
    }
    Ok(0)
}

/// The folder of the repository.
async fn root(call: Call<'_>) -> Result<PathBuf, Problem> {
    let ran = capture(call, Program::new("git", ["rev-parse", "--show-toplevel"])).await?;
    if ran.code != 0 {
        return Err(
            Problem::usage("--git", "this folder is in no git repository")
                .next("change into a clone of the repository that Argo CD reads"),
        );
    }
    Ok(PathBuf::from(ran.stdout.trim_end_matches('\n')))
}

async fn write(
    call: Call<'_>,
    given: &Create,
    root: &Path,
    path: &Path,
    content: &str,
    target: &Reference,
) -> Result<(), Problem> {
    let name = path.display().to_string();
    if !given.push {
        git(call, root, &["switch", "--create", &branch(target)]).await?;
    }
    let file = root.join(path);
    call.host
        .files
        .replace(&file, content)
        .map_err(|error| failed(&file, &error))?;
    let message = format!("Create workspace {}", target.name);
    git(call, root, &["add", "--", &name]).await?;
    git(
        call,
        root,
        &["commit", "--quiet", "--message", &message, "--", &name],
    )
    .await?;
    call.host.terminal.note(&format!("committed {name}").into());
    let branch = branch(target);
    let push: &[&str] = if given.push {
        &["push", "--quiet"]
    } else {
        &["push", "--quiet", "--set-upstream", "origin", &branch]
    };
    git(call, root, push).await?;
    call.host.terminal.note(&"pushed".into());
    Ok(())
}

fn branch(target: &Reference) -> String {
    format!("workspace-{}", target.name)
}

/// Opens a pull request, or prints where to open one.
async fn propose(call: Call<'_>, root: &Path, branch: &str) -> Result<(), Problem> {
    let forge = [
        ("gh", &["pr", "create", "--fill", "--head"][..]),
        (
            "glab",
            &["mr", "create", "--fill", "--yes", "--source-branch"][..],
        ),
    ];
    let installed = forge
        .iter()
        .find(|(name, _)| call.host.programs.is_installed(name));
    if let Some((name, arguments)) = installed {
        let arguments = arguments
            .iter()
            .chain([&branch])
            .map(|word| (*word).to_owned());
        let program = Program::new(name, arguments).within(root);
        let ran = capture(call, program).await?;
        if ran.code == 0 {
            for line in ran.stdout.lines() {
                call.host.terminal.data(&line.into())?;
            }
            return Ok(());
        }
    }
    let remote = capture(
        call,
        Program::new("git", ["remote", "get-url", "origin"]).within(root),
    )
    .await?;
    let line = match compare(remote.stdout.trim(), branch) {
        Some(link) => format!("open the pull request: {link}"),
        None => format!("open a pull request of the branch {branch}"),
    };
    call.host.terminal.data(&line.into())?;
    Ok(())
}

/// The page where a pull request is opened; none for a remote that is no web address.
fn compare(remote: &str, branch: &str) -> Option<String> {
    let path = remote
        .strip_prefix("https://")
        .map(str::to_owned)
        .or_else(|| {
            remote
                .strip_prefix("git@")
                .map(|rest| rest.replacen(':', "/", 1))
        })
        .or_else(|| remote.strip_prefix("ssh://git@").map(str::to_owned))?;
    // A user name or a token in the address must not be printed.
    let path = path.rsplit('@').next()?.trim_end_matches(".git");
    let host = path.split('/').next()?;
    let page = if host.contains("gitlab") {
        format!("-/merge_requests/new?merge_request%5Bsource_branch%5D={branch}")
    } else {
        format!("compare/{branch}?expand=1")
    };
    Some(format!("https://{path}/{page}"))
}

/// Waits for the claim that Argo CD creates, and until it is ready.
async fn waited(call: Call<'_>, given: &Create, target: &Reference) -> Result<u8, Problem> {
    let line = format!(
        "Argo CD creates {} without devctl: devctl show {}",
        target, target.name
    );
    call.host.terminal.stays(&line.into());
    let none = serde_json::json!({});
    let found = waiting::wait(
        call,
        target,
        none,
        given.timeout,
        |workspace| match workspace {
            Some(workspace) if !workspace.uid().is_empty() => Step::Done,
            _ => Step::Going(Box::new(|seconds| {
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

async fn git(call: Call<'_>, root: &Path, arguments: &[&str]) -> Result<(), Problem> {
    let program = Program::new("git", arguments.iter().copied()).within(root);
    let ran = capture(call, program).await?;
    if ran.code == 0 {
        return Ok(());
    }
    let said = [ran.stderr.trim(), ran.stdout.trim()].join(" ");
    let message = format!(
        "git {}: {said}",
        arguments.first().copied().unwrap_or_default()
    );
    Err(Problem::new(Code::Failed, "Git", message)
        .of(root.display().to_string())
        .next("look at git status; what was committed stays"))
}

async fn capture(call: Call<'_>, program: Program) -> Result<Ran, Problem> {
    call.host.programs.capture(&program).await.map_err(|error| {
        Problem::new(Code::Failed, "Git", format!("{}: {error}", program.name)).next("install git")
    })
}

fn failed(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(Code::Failed, "File", format!("{}: {error}", path.display()))
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

    #[test]
    fn the_page_of_a_pull_request_has_no_token() {
        for (remote, expected) in [
            (
                "https://github.com/acme/ws.git",
                Some("https://github.com/acme/ws/compare/b?expand=1"),
            ),
            (
                "https://user:token@github.com/acme/ws",
                Some("https://github.com/acme/ws/compare/b?expand=1"),
            ),
            (
                "git@github.com:acme/ws.git",
                Some("https://github.com/acme/ws/compare/b?expand=1"),
            ),
            ("/srv/git/ws.git", None),
        ] {
            assert_eq!(compare(remote, "b").as_deref(), expected, "{remote}");
        }
    }
}
