//! `create`.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::claim;
use crate::commands::account::account;
use crate::commands::call::Call;
use crate::commands::{git, list, ready};
use crate::estimate::Estimate;
use crate::grammar::creating::{Create, Where};
use crate::host::Effect;
use crate::name::{DOMAIN, Name};
use crate::object::{Kind, Reference, text};
use crate::output::{self, Format};
use crate::problem::Problem;
use crate::text::{Line, Style};
use crate::workspace::Workspace;

/// Creates a workspace and waits until it is ready.
pub(super) async fn create(call: Call<'_>, given: &Create) -> Result<u8, Problem> {
    let menu = match claim::flavor(given) {
        Some(flavor) => menu(call, flavor).await?,
        None => None,
    };
    let wanted = wanted(call, given, menu.as_ref())?;
    forecast(call, &wanted, menu.as_ref()).await?;
    let target = target(call, &wanted)?;
    let api = call.host.api;
    if given.dry_run {
        let checked = api.create(&wanted, Effect::Trial).await;
        checked.map_err(|refused| refused.problem(&target))?;
        let format = if given.output.format.is_json() {
            Format::Json
        } else {
            Format::Yaml
        };
        call.host
            .terminal
            .document(&output::document(&wanted, format))?;
        return Ok(0);
    }
    if given.git {
        return git::commit(call, given, &wanted, &target).await;
    }
    let stored = match api.create(&wanted, Effect::Stored).await {
        Ok(stored) => {
            call.host.terminal.note(&format!("{target} created").into());
            stored
        }
        Err(refused) if refused.status == Some(409) && refused.reason == "AlreadyExists" => {
            let existing = call.read(&target).await?;
            same(call, &target, &existing, &wanted).await?;
            call.host
                .terminal
                .note(&format!("{target} exists, and is as asked for").into());
            existing
        }
        Err(refused) => return Err(refused.problem(&target)),
    };
    let last = if given.no_wait {
        stored
    } else {
        ready::until_ready(call, &target, stored, given.timeout).await?
    };
    written(call, given.output.format, &last)?;
    Ok(0)
}

/// Writes the workspace, or where it is.
fn written(call: Call<'_>, format: Format, claim: &Value) -> Result<(), Problem> {
    let workspace = Workspace::new(claim);
    if format == Format::Table {
        let name = workspace.name();
        let line = Line::new().with(Style::Bold, name).plain(" is ");
        let line = if workspace.is_ready() {
            line.with(Style::Good, "Ready")
                .plain(format!(": devctl ssh {name}, or ssh {name}{DOMAIN}"))
        } else {
            line.plain(format!("{}: devctl show {name}", workspace.phase_text()))
        };
        return Ok(call.host.terminal.data(&line)?);
    }
    list::write(call, format, std::slice::from_ref(claim), claim)
}

/// The claim that is asked for. `flavor` is its flavor, if it could be read.
fn wanted(call: Call<'_>, given: &Create, flavor: Option<&Value>) -> Result<Value, Problem> {
    let namespace = call.host.api.namespace();
    if let Some(file) = &given.file {
        return from_file(call, file, given.name.as_ref(), namespace);
    }
    let placements = flavor.map(claim::placements);
    let is_ec2 = claim::placement(given, placements.as_deref())? == Where::Ec2;
    let keys = keys(call, given, is_ec2)?;
    claim::claim(given, namespace, placements.as_deref(), &keys)
}

/// A flavor of the platform's menu; none if the user may not read flavors.
async fn menu(call: Call<'_>, flavor: &str) -> Result<Option<Value>, Problem> {
    let object = Reference::new(Kind::Flavor, "", flavor);
    match call.host.api.get(&object).await {
        Ok(found) => Ok(Some(found)),
        Err(refused) if refused.is_forbidden() => Ok(None),
        Err(refused) => Err(refused
            .problem(&object)
            .field("--flavor")
            .next("devctl flavors")),
    }
}

/// Says what the workspace costs and what the budget has left, before it is asked for.
async fn forecast(call: Call<'_>, wanted: &Value, flavor: Option<&Value>) -> Result<(), Problem> {
    let account = account(call).await?;
    let budget = account.as_ref().and_then(|account| account.get("budget"));
    for line in Estimate::new(wanted, flavor, budget).lines() {
        call.host.terminal.note(&line);
    }
    Ok(())
}

/// The public keys that go into the claim: the given ones, or those of this machine on EC2. In the
/// cluster the platform knows the keys of its users.
fn keys(call: Call<'_>, given: &Create, is_ec2: bool) -> Result<Vec<String>, Problem> {
    let files = call.host.files;
    let read = |path: &PathBuf| -> Result<Vec<String>, Problem> {
        let wrong =
            |message: String| Problem::usage("--key", format!("{}: {message}", path.display()));
        let content = files.read(path).map_err(|error| wrong(error.to_string()))?;
        let content = content.ok_or_else(|| wrong("it does not exist".into()))?;
        if content.contains("PRIVATE KEY") {
            return Err(wrong(
                "it is a private key; name the .pub file beside it".into(),
            ));
        }
        Ok(content
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect())
    };
    if !given.key.is_empty() {
        let keys: Result<Vec<_>, _> = given.key.iter().map(read).collect();
        return Ok(keys?.concat());
    }
    if given.no_key || !is_ec2 {
        return Ok(Vec::new());
    }
    let own = ["id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub"];
    let own = own.map(|name| files.home().join(".ssh").join(name));
    let given = call.shared.identity.iter().map(|path| {
        let mut public = path.as_os_str().to_owned();
        public.push(".pub");
        PathBuf::from(public)
    });
    for path in given.chain(own) {
        if let Ok(Some(_)) = files.read(&path) {
            let line = format!("with your key {}; --no-key leaves it out", path.display());
            call.host.terminal.note(&line.into());
            return read(&path);
        }
    }
    Ok(Vec::new())
}

fn from_file(
    call: Call<'_>,
    file: &Path,
    name: Option<&Name>,
    namespace: &str,
) -> Result<Value, Problem> {
    let wrong =
        |message: String| Problem::usage("--file", format!("{}: {message}", file.display()));
    let content = if file.as_os_str() == "-" {
        call.host.files.stdin().map(Some)
    } else {
        call.host.files.read(file)
    };
    let content = content.map_err(|error| wrong(error.to_string()))?;
    let content = content.ok_or_else(|| wrong("it does not exist".into()))?;
    let mut claim: Value =
        serde_yaml::from_str(&content).map_err(|error| wrong(error.to_string()))?;
    if text(&claim, "/kind") != Some(Kind::Claim.kind()) {
        return Err(wrong(format!("it is no {}", Kind::Claim.kind())));
    }
    if let Some(name) = name {
        claim["metadata"]["name"] = json!(name.as_str());
    }
    if text(&claim, "/metadata/namespace").is_none() {
        claim["metadata"]["namespace"] = json!(namespace);
    }
    Ok(claim)
}

fn target(call: Call<'_>, claim: &Value) -> Result<Reference, Problem> {
    let name = text(claim, "/metadata/name");
    let name = name.ok_or_else(|| Problem::usage("metadata.name", "name the workspace"))?;
    let name: Name = name
        .parse()
        .map_err(|message: String| Problem::usage("NAME", message))?;
    let namespace = text(claim, "/metadata/namespace").unwrap_or(call.host.api.namespace());
    let namespace: Result<Name, String> = namespace.parse();
    let namespace = namespace.map_err(|message| Problem::usage("metadata.namespace", message))?;
    Ok(Reference::new(
        Kind::Claim,
        namespace.as_str(),
        name.as_str(),
    ))
}

/// Whether the existing claim is the wanted one. The API server fills in its defaults in a trial.
async fn same(
    call: Call<'_>,
    target: &Reference,
    existing: &Value,
    wanted: &Value,
) -> Result<(), Problem> {
    let at = |claim: &Value| {
        claim
            .pointer("/spec/parameters")
            .cloned()
            .unwrap_or_default()
    };
    let patch = json!({"spec": {"parameters": patch(&at(existing), &at(wanted))}});
    let trial = call.host.api.patch(target, &patch, Effect::Trial).await;
    // A change that the API server refuses is a difference, too.
    let changed = trial.as_ref().unwrap_or(wanted);
    let differences = claim::differences(existing, changed);
    if differences.is_empty() {
        return Ok(());
    }
    Err(claim::exists(
        &target.to_string(),
        &target.name,
        &differences,
    ))
}

/// The merge patch that makes `wanted` of `existing` (RFC 7396).
fn patch(existing: &Value, wanted: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (existing, wanted) else {
        return wanted.clone();
    };
    let removed = old.keys().filter(|key| !new.contains_key(*key));
    let removed = removed.map(|key| (key.clone(), Value::Null));
    let set = new.iter().map(|(key, value)| {
        let before = old.get(key).unwrap_or(&Value::Null);
        (key.clone(), patch(before, value))
    });
    Value::Object(removed.chain(set).collect::<Map<_, _>>())
}
