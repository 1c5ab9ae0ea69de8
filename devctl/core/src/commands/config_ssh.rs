//! `config-ssh` and `known-hosts`.

use std::path::{Path, PathBuf};

use crate::commands::call::Call;
use crate::grammar::connecting::{ConfigSsh, KnownHosts};
use crate::name::{DOMAIN, Host};
use crate::problem::{Code, Problem};
use crate::ssh::configuration::{difference, excluded, included, stanza};
use crate::ssh::host_keys;
use crate::text::Line;

/// A file with its content before and after.
struct Edit {
    path: PathBuf,
    before: String,
    after: String,
}

/// Lets ssh reach workspaces as `NAME.ws`.
pub(super) fn config_ssh(call: Call<'_>, given: &ConfigSsh) -> Result<u8, Problem> {
    let files = call.host.files;
    let own = call.ssh_configuration();
    let main = files.home().join(".ssh/config");
    let before = (read(call, &own)?, read(call, &main)?);
    let after = if given.remove {
        (String::new(), excluded(&before.1, &own))
    } else {
        (call.with_ssh(stanza)?, included(&before.1, &own))
    };
    let edits = [
        Edit {
            path: own,
            before: before.0,
            after: after.0,
        },
        Edit {
            path: main,
            after: after.1.unwrap_or_else(|| before.1.clone()),
            before: before.1,
        },
    ];
    let edits: Vec<&Edit> = edits
        .iter()
        .filter(|edit| edit.before != edit.after)
        .collect();
    let terminal = call.host.terminal;
    if edits.is_empty() {
        terminal.data(&Line::from("ssh's configuration is as it should be"))?;
        return Ok(0);
    }
    for edit in &edits {
        for line in difference(&edit.path, &edit.before, &edit.after) {
            terminal.data(&line)?;
        }
    }
    if !(given.write || given.remove) {
        terminal.note(&Line::from(
            "nothing is written yet; to write it: devctl config-ssh --write",
        ));
        return Ok(0);
    }
    for edit in &edits {
        files
            .replace(&edit.path, &edit.after)
            .map_err(|error| failed(&edit.path, &error))?;
    }
    if given.remove {
        terminal.note(&Line::from("removed"));
    } else {
        terminal.note(&format!("written; ssh and editors reach workspaces as NAME{DOMAIN}").into());
    }
    Ok(0)
}

/// Shows or forgets host keys.
pub(super) fn known_hosts(call: Call<'_>, given: &KnownHosts) -> Result<u8, Problem> {
    let path = call.known_hosts();
    let content = read(call, &path)?;
    if given.forget
        && let Some(name) = &given.name
    {
        let _lock = call
            .host
            .files
            .lock(&path)
            .map_err(|error| failed(&path, &error))?;
        let rest = host_keys::forget(&read(call, &path)?, name.as_str());
        call.host
            .files
            .replace(&path, &rest)
            .map_err(|error| failed(&path, &error))?;
        call.host
            .terminal
            .note(&format!("forgot the host keys of {name}").into());
        return Ok(0);
    }
    for line in content.lines() {
        let host = line
            .split(' ')
            .next()
            .and_then(|name| name.parse::<Host>().ok());
        let is_asked = given.name.is_none() || host.map(|host| host.workspace) == given.name;
        if is_asked {
            call.host.terminal.data(&line.into())?;
        }
    }
    Ok(0)
}

fn read(call: Call<'_>, path: &Path) -> Result<String, Problem> {
    let read = call.host.files.read(path);
    Ok(read
        .map_err(|error| failed(path, &error))?
        .unwrap_or_default())
}

fn failed(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(
        Code::Failed,
        "File",
        format!("{}: {error}; it is as it was", path.display()),
    )
    .next("check the permissions of the file and of its folder")
}
