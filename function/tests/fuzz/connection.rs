//! Where a workspace is reached: Crossplane tells it of a claim's composite, and a
//! Secret that is composed of a namespaced one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use function_sdk_rust::proto::v1::Resource;
use serde_json::Value;

use crate::compare::json;
use crate::intent::Applied;
use crate::view::text;

/// The Secret's key.
pub const KEY: &str = "workspace-connection";

/// What is wrong with it.
pub fn violation(applied: &Applied<'_>, composite: &Resource) -> Option<String> {
    // What an earlier step has under the key is passed on while there is nothing to say.
    if applied.earlier.contains(KEY) {
        return None;
    }
    let secret = applied.desired.get(KEY);
    if !applied.view.is_namespaced() {
        return secret.map(|_| "a claim's composite gets a Secret".to_owned());
    }
    let status = json(composite);
    let ssh = text(&status, "/status/ssh");
    let Some(secret) = secret else {
        // An address may be kept while nobody understands what its machine reports.
        let machines = applied.view.machines();
        let is_clear = machines.values().all(|m| !m.unreadable);
        let is_told = ssh.is_some() && is_clear && machines.values().any(|m| m.serves);
        return is_told.then(|| format!("{ssh:?} is in no Secret"));
    };
    // What is kept is what it was when somebody could tell.
    let is_kept = applied
        .view
        .observed
        .get(KEY)
        .is_some_and(|observed| observed.get("data") == secret.get("data"));
    let said = secret.get("data").and_then(|data| decoded(data, "ssh"));
    let is_true = said.as_deref() == ssh || (is_kept && ssh.is_some());
    (!is_true).then(|| format!("the Secret says {said:?}, the status {ssh:?}"))
}

fn decoded(data: &Value, entry: &str) -> Option<String> {
    let bytes = STANDARD.decode(data.get(entry)?.as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}
