//! A clone of the user, by the user's own git and credentials.

use std::path::{Path, PathBuf};

use crate::commands::call::Call;
use crate::host::{Host, Program, Ran};
use crate::problem::{Code, Problem};

/// The programs that open pull requests, and their arguments before the name of the branch.
const FORGES: [(&str, &[&str]); 2] = [
    ("gh", &["pr", "create", "--fill", "--head"]),
    (
        "glab",
        &["mr", "create", "--fill", "--yes", "--source-branch"],
    ),
];

/// The repository of the current folder.
pub(super) struct Repository<'a> {
    call: Call<'a>,
    root: PathBuf,
}

impl<'a> Repository<'a> {
    /// Finds the repository.
    pub(super) async fn open(call: Call<'a>) -> Result<Self, Problem> {
        let program = Program::new("git", ["rev-parse", "--show-toplevel"]);
        let ran = call.capture(&program).await?;
        if ran.code != 0 {
            return Err(
                Problem::usage("--git", "this folder is in no git repository")
                    .next("change into a clone of the repository that Argo CD reads"),
            );
        }
        let root = PathBuf::from(ran.stdout.trim_end_matches('\n'));
        Ok(Self { call, root })
    }

    /// The folder of the repository.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Reads a file; none if it does not exist.
    pub(super) fn read(&self, path: &Path) -> Result<Option<String>, Problem> {
        let file = self.root.join(path);
        let read = self.call.host.files.read(&file);
        read.map_err(|error| failed(&file, &error))
    }

    /// Writes a file.
    pub(super) fn write(&self, path: &Path, content: &str) -> Result<(), Problem> {
        let file = self.root.join(path);
        let written = self.call.host.files.replace(&file, content);
        written.map_err(|error| failed(&file, &error))
    }

    /// Changes to a new branch, if there is to be one.
    pub(super) async fn switch(&self, branch: Option<&str>) -> Result<(), Problem> {
        match branch {
            Some(branch) => self.git(&["switch", "--quiet", "--create", branch]).await,
            None => Ok(()),
        }
    }

    /// Commits a file, and pushes the commit.
    pub(super) async fn publish(
        &self,
        path: &Path,
        message: &str,
        branch: Option<&str>,
    ) -> Result<(), Problem> {
        let name = shown(path);
        self.git(&["commit", "--quiet", "--message", message, "--", &name])
            .await?;
        let terminal = self.call.host.terminal;
        terminal.note(&format!("committed {name}").into());
        match branch {
            Some(branch) => {
                self.git(&["push", "--quiet", "--set-upstream", "origin", branch])
                    .await?;
            }
            None => self.git(&["push", "--quiet"]).await?,
        }
        terminal.note(&"pushed".into());
        Ok(())
    }

    /// Opens a pull request, or prints where to open one.
    pub(super) async fn propose(&self, branch: &str) -> Result<(), Problem> {
        let Host {
            terminal, programs, ..
        } = self.call.host;
        let forge = FORGES.iter().find(|(name, _)| programs.is_installed(name));
        if let Some((name, arguments)) = forge {
            let arguments = arguments.iter().chain([&branch]).copied();
            let ran = self.capture(Program::new(name, arguments)).await?;
            if ran.code == 0 {
                for line in ran.stdout.lines() {
                    terminal.data(&line.into())?;
                }
                return Ok(());
            }
        }
        let remote = Program::new("git", ["remote", "get-url", "origin"]);
        let remote = self.capture(remote).await?;
        let line = match compare(remote.stdout.trim(), branch) {
            Some(link) => format!("open the pull request: {link}"),
            None => format!("open a pull request of the branch {branch}"),
        };
        terminal.data(&line.into())?;
        Ok(())
    }

    /// Runs git.
    pub(super) async fn git(&self, arguments: &[&str]) -> Result<(), Problem> {
        let program = Program::new("git", arguments.iter().copied());
        let ran = self.capture(program).await?;
        if ran.code == 0 {
            return Ok(());
        }
        let said = [ran.stderr.trim(), ran.stdout.trim()].join(" ");
        let command = arguments.first().copied().unwrap_or_default();
        Err(
            Problem::new(Code::Failed, "Git", format!("git {command}: {said}"))
                .of(shown(&self.root))
                .next("look at git status; what was committed stays"),
        )
    }

    async fn capture(&self, program: Program) -> Result<Ran, Problem> {
        self.call.capture(&program.within(&self.root)).await
    }
}

/// A path as an argument of git.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
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

fn failed(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(Code::Failed, "File", format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
