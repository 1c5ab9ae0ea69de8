//! Rules about the address of a workspace. For a claim's composite, Crossplane publishes the
//! connection details. For a namespaced composite, the function composes a Secret.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use function_sdk_rust::proto::v1::Resource;
use serde_json::Value;

use crate::compare::json;
use crate::intent::Applied;
use crate::view::{is_hashed, text};

/// The composition resource name of the Secret.
pub const KEY: &str = "workspace-connection";

/// The broken rule, where the Secret breaks one.
pub fn violation(applied: &Applied<'_>, composite: &Resource) -> Option<String> {
    // An earlier step may desire a resource under the same name. The function passes it on while it
    // has no address of its own to publish.
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
        // The status may keep an address while the function cannot read the status of the machine.
        // In that case the rule requires no Secret.
        let machines = applied.view.machines();
        let is_clear =
            machines.values().all(|m| !m.unreadable) && are_plain(&applied.view.observed);
        // A record that the function did not write may have any text, and has no address then.
        let is_command = ssh.is_some_and(|ssh| ssh.starts_with("ssh developer@"));
        let is_told = is_command && is_clear && machines.values().any(|m| m.serves);
        return is_told.then(|| format!("{ssh:?} is in no Secret"));
    };
    // A kept Secret has the data of the last call in which the function could read the machine.
    let is_kept = applied
        .view
        .observed
        .get(KEY)
        .is_some_and(|observed| observed.get("data") == secret.get("data"));
    let said = secret.get("data").and_then(|data| decoded(data, "ssh"));
    let is_true = said.as_deref() == ssh || (is_kept && ssh.is_some());
    (!is_true).then(|| format!("the Secret says {said:?}, the status {ssh:?}"))
}

/// Whether every instance has the shape of provider-aws's `Instance`, and the home that of its
/// `EBSVolume`: the function changes nothing while it cannot read one of them.
fn are_plain(observed: &BTreeMap<String, Value>) -> bool {
    let mut observed = observed.iter();
    observed.all(|(key, resource)| match key.as_str() {
        "home" => is_plain_home(resource),
        key => !is_hashed(key, "instance-") || is_plain(resource),
    })
}

/// Whether the fields of a home that a function may read have the types of provider-aws.
fn is_plain_home(home: &Value) -> bool {
    let is = |path: &str, is_it: fn(&Value) -> bool| home.pointer(path).is_none_or(is_it);
    let tags = home.pointer("/spec/forProvider/tags");
    is("/spec/forProvider", Value::is_object)
        && is("/spec/forProvider/availabilityZone", Value::is_string)
        && is("/spec/forProvider/size", Value::is_i64)
        && tags.is_none_or(|tags| {
            let tags = tags.as_object();
            tags.is_some_and(|tags| tags.values().all(Value::is_string))
        })
}

/// Whether the fields of an instance that a function may read have the types of provider-aws.
fn is_plain(instance: &Value) -> bool {
    const MAPS: [&str; 5] = [
        "/spec/forProvider",
        "/spec/initProvider",
        "/spec/initProvider/tags",
        "/status/atProvider",
        "/status/atProvider/tagsAll",
    ];
    const ASKED: [&str; 6] = [
        "region",
        "ami",
        "instanceType",
        "userData",
        "availabilityZone",
        "subnetId",
    ];
    const SEEN: [&str; 6] = [
        "id",
        "instanceState",
        "instanceType",
        "availabilityZone",
        "publicIp",
        "privateIp",
    ];
    let is = |path: &str, is_it: fn(&Value) -> bool| instance.pointer(path).is_none_or(is_it);
    let tags = ["/spec/initProvider/tags", "/status/atProvider/tagsAll"];
    let are_texts = |map: &Value| {
        let values = map.as_object().into_iter().flat_map(|map| map.values());
        values.into_iter().all(Value::is_string)
    };
    MAPS.iter().all(|path| is(path, Value::is_object))
        && ASKED
            .iter()
            .all(|field| is(&format!("/spec/forProvider/{field}"), Value::is_string))
        && SEEN
            .iter()
            .all(|field| is(&format!("/status/atProvider/{field}"), Value::is_string))
        && tags
            .iter()
            .filter_map(|path| instance.pointer(path))
            .all(are_texts)
}

fn decoded(data: &Value, entry: &str) -> Option<String> {
    let bytes = STANDARD.decode(data.get(entry)?.as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}
