//! Homes: one volume claim for each node, made by the StatefulSet and never taken
//! away by it.
//!
//! A claim that Crossplane composes goes with its composite, so only the policy
//! `home.onDelete: Delete` has homes composed: under the names that the StatefulSet
//! looks for. One that is composed stays composed, whatever the policy says later: to
//! drop it would delete it at once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::names::{Names, OWNER_LABEL, WORKSPACE_LABEL};
use super::seen::Seen;
use super::wanted::{Wanted, WantedHome};
use crate::keys;
use crate::quantity;
use crate::refusal::Refusal;
use crate::schema::Violation;

/// The volume claim template of homes to be made.
pub fn template(names: &Names, owner: &str, home: &WantedHome) -> Value {
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": format!("{}Gi", home.size_gib)}},
    });
    if let Some(class) = &home.storage_class {
        spec["storageClassName"] = json!(class);
    }
    json!({
        "metadata": {
            "name": "home",
            "labels": {(WORKSPACE_LABEL): names.name, (OWNER_LABEL): owner},
        },
        "spec": spec,
    })
}

/// The homes that go with the claim, by key.
pub fn composed(wanted: &Wanted, seen: Seen<'_>, nodes: i32) -> BTreeMap<String, Value> {
    let mut homes = BTreeMap::new();
    let Some(home) = &wanted.home else {
        return homes;
    };
    let there_already = seen
        .observed
        .keys()
        .filter_map(|key| keys::home_of_node(key));
    let to_come = (0..nodes).filter(|_| wanted.deletes_home);
    for node in there_already.chain(to_come) {
        let key = keys::node_home(node);
        let there = seen.home_of(&wanted.names.pod(node));
        let mut claim = template(&wanted.names, &wanted.owner, home);
        claim["apiVersion"] = json!("v1");
        claim["kind"] = json!("PersistentVolumeClaim");
        claim["metadata"]["name"] = json!(format!("home-{}", wanted.names.pod(node)));
        claim["metadata"]["namespace"] = json!(wanted.names.namespace);
        if let Some(class) = there.and_then(|there| there.storage_class()) {
            claim["spec"]["storageClassName"] = json!(class);
        }
        homes.insert(key, claim);
    }
    homes
}

/// Refuses a home that somebody else left behind under the claim's name.
pub fn check(wanted: &Wanted, seen: Seen<'_>) -> Result<(), Refusal> {
    let owner = &wanted.owner;
    let strange = seen
        .homes()
        .find_map(|home| Some((home.name(), home.owner().filter(|whose| whose != owner)?)));
    let Some((home, whose)) = strange else {
        return Ok(());
    };
    let problem = format!(
        "must be {whose}: PersistentVolumeClaim {home} in namespace {} holds their files; use \
         another name for the claim, or delete that PersistentVolumeClaim",
        wanted.names.namespace
    );
    let violation = Violation::new("spec.parameters.owner", problem);
    Err(Refusal::Parameters(violation.into()))
}

/// Homes that are smaller than the claim asks for, with the way to let them grow: a
/// StatefulSet's volume claims cannot change.
pub fn too_small(wanted: &Wanted, home: &WantedHome, seen: Seen<'_>) -> Vec<String> {
    let wish = u64::try_from(home.size_gib).unwrap_or_default();
    let small = seen.homes().filter(|home| {
        let size = home.size().and_then(quantity::storage);
        size.is_some_and(|size| size < wish)
    });
    small
        .map(|volume| {
            let (name, namespace) = (volume.name(), &wanted.names.namespace);
            format!(
                "PersistentVolumeClaim {name} has {}, spec.parameters.home.sizeGiB asks for \
                 {wish}Gi; it grows by: kubectl -n {namespace} patch pvc {name} -p \
                 '{{\"spec\":{{\"resources\":{{\"requests\":{{\"storage\":\"{wish}Gi\"}}}}}}}}'",
                volume.size().unwrap_or_default()
            )
        })
        .collect()
}
