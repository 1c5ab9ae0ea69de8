//! A simulation of Crossplane's controller of Usages (core 2.4).

use serde_json::Value;

use super::api_server::Id;
use super::manifest::{self, text, written};
use super::world::World;

/// Reconciles a Usage. Returns whether the Usage waits for the deletion of the object that uses the
/// other.
pub fn look(world: &mut World, id: &Id) -> bool {
    let Some(manifest) = world.api.get(id).cloned() else {
        return false;
    };
    let end = |end: &str| Id {
        kind: text(&manifest, &format!("/spec/{end}/kind"))
            .unwrap_or_default()
            .to_owned(),
        name: text(&manifest, &format!("/spec/{end}/resourceRef/name"))
            .unwrap_or_default()
            .to_owned(),
    };
    let (of, by) = (end("of"), end("by"));
    if manifest.pointer(manifest::DELETED).is_none() {
        world.api.guard(id);
        if world.api.get(&of).is_some() {
            world.api.mark_used(&of, true);
            if world.api.get(&by).is_some() {
                world
                    .api
                    .set_condition(id, written("Ready", true, "Available", ""));
            }
        }
        return false;
    }
    let is_composed = text(&manifest, "/metadata/labels/crossplane.io~1composite").is_some();
    if is_composed && world.api.get(&by).is_some() {
        return true;
    }
    let replays = manifest.pointer("/spec/replayDeletion") == Some(&Value::Bool(true));
    let was_refused = replays && world.api.was_refused(&of);
    world.api.release(id);
    if !world.api.is_used(&of) {
        world.api.mark_used(&of, false);
    }
    if was_refused {
        // A person tried to delete this security group, and a Usage refused it. The group is
        // deleted with the next instance that uses it, because the person asked for it.
        if of.kind == "SecurityGroup"
            && let Some(group) = world.api.get(&of)
        {
            let uid = text(group, "/metadata/uid").unwrap_or_default();
            world.by_hand.insert(uid.to_owned());
        }
        // With replayDeletion, Crossplane itself repeats the refused deletion.
        drop(world.api.delete(&of));
    }
    false
}
