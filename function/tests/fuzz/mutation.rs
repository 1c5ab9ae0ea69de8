//! Changes to a request. Some are changes that people, Crossplane and providers make. Others are
//! changes that none of them should make.

use serde_json::{Value, json};

use crate::corpus::{Corpus, memory, object, observed_of};
use crate::dice::Dice;
use crate::hostile;
use crate::states;
use crate::wishes;

/// A random request.
pub fn request(dice: &mut Dice, corpus: &Corpus) -> Value {
    let cases = match dice.below(100) {
        0..=7 => &corpus.refused,
        8..=32 => &corpus.with_home,
        _ => &corpus.requests,
    };
    let mut request = dice.pick(cases).clone();
    let changes = match dice.below(10) {
        0 => 0,
        1..=4 => 1 + dice.below(2),
        5..=8 => 2 + dice.below(5),
        _ => 8 + dice.below(16),
    };
    if dice.percent(6) {
        wishes::overdue(&mut request, dice);
    }
    for _ in 0..changes {
        change(&mut request, dice, corpus);
    }
    shorten_names(&mut request);
    request
}

/// Cuts the composite's name to 253 characters and its namespace to 63. The API server admits no
/// longer ones, and composed objects repeat them.
fn shorten_names(request: &mut Value) {
    for (field, most) in [("name", 253), ("namespace", 63)] {
        let at = format!("/observed/composite/resource/metadata/{field}");
        if let Some(Value::String(text)) = request.pointer_mut(&at)
            && let Some((end, _)) = text.char_indices().nth(most)
        {
            text.truncate(end);
        }
    }
}

fn change(request: &mut Value, dice: &mut Dice, corpus: &Corpus) {
    match dice.below(100) {
        0..=17 => wishes::parameters(request, dice, corpus),
        18..=27 => wishes::policy(request, dice, corpus),
        28..=37 => wishes::answers(request, dice, corpus),
        38..=52 => states::change(request, dice),
        53..=62 => states::home(request, dice),
        63..=77 => observed(request, dice, corpus),
        78..=82 => status(request, dice, corpus),
        83..=86 => earlier_steps(request, dice, corpus),
        87..=97 => anywhere(request, dice),
        _ => envelope(request, dice),
    }
}

/// Adds a resource, removes one, or puts one under another name.
fn observed(request: &mut Value, dice: &mut Dice, corpus: &Corpus) {
    let own = dice.any(observed_of(request).map(|(key, resource)| (key.clone(), resource.clone())));
    let foreign = dice.any(corpus.observed.iter());
    let resources = object(request, &["observed", "resources"]);
    match (dice.below(6), own, foreign) {
        (0 | 1, Some((key, _)), _) => {
            resources.remove(&key);
        }
        (2, Some((key, resource)), _) => {
            let copy = key_like(&key, dice);
            resources.insert(copy, resource);
        }
        (3, Some((key, resource)), _) => {
            resources.remove(&key);
            let other = other_key(&key, dice);
            resources.insert(other, resource);
        }
        (4, _, Some((key, resources_of))) => {
            let resource = dice.pick(resources_of).clone();
            let other = other_key(key, dice);
            resources.insert(other, resource);
        }
        (_, _, Some((key, resources_of))) => {
            let resource = dice.pick(resources_of).clone();
            resources.insert(key.clone(), resource);
        }
        _ => {}
    }
}

/// A name under which a resource of this kind should not be. A name belongs to one kind for ever.
/// Only a pool may get the name of a pool, because the pool's provider words failures differently.
fn other_key(key: &str, dice: &mut Dice) -> String {
    if dice.percent(10) {
        return "usage-home-by-".repeat(1 + dice.below(8)) + "home";
    }
    let keys = hostile::KEYS.iter();
    let keys = keys.filter(|other| key.starts_with("pool") || !other.starts_with("pool"));
    dice.any(keys)
        .map_or_else(String::new, |key| (*key).to_owned())
}

/// Another composition resource name of the same kind.
fn key_like(key: &str, dice: &mut Dice) -> String {
    let hash = *dice.pick(&["00000000", "ffffffff", "12345678", "3ed65312"]);
    match key.rsplit_once('-') {
        Some((kind, old)) if old.len() == 8 => format!("{kind}-{hash}"),
        _ if key == "pool" => format!("pool-{hash}"),
        _ => other_key(key, dice),
    }
}

/// The XR loses its status, or gets an older status, or that of another workspace.
fn status(request: &mut Value, dice: &mut Dice, corpus: &Corpus) {
    let composite = object(request, &["observed", "composite", "resource"]);
    match dice.below(4) {
        0 => {
            composite.remove("status");
        }
        1 => {
            let status = dice.pick(&corpus.statuses).clone();
            composite.insert("status".to_owned(), status);
        }
        _ => {
            let status = memory(request);
            let field = *dice.pick(&[
                "phase",
                "message",
                "instanceId",
                "image",
                "home",
                "zone",
                "ssh",
                "instanceType",
            ]);
            match dice.below(3) {
                0 => drop(status.remove(field)),
                1 => drop(status.insert(field.to_owned(), hostile::value(dice))),
                _ => drop(status.insert("instanceId".to_owned(), json!(states::id(dice)))),
            }
        }
    }
}

/// Earlier steps of the pipeline desire their own resources, or resources under the names that the
/// function uses.
fn earlier_steps(request: &mut Value, dice: &mut Dice, corpus: &Corpus) {
    match dice.below(6) {
        0 => {
            let resource = json!({"resource": {"kind": "Bucket", "metadata": {"name": "b"}}});
            let key = (*dice.pick(&hostile::KEYS)).to_owned();
            object(request, &["desired", "resources"]).insert(key, resource);
        }
        1 => {
            if let Some((key, resources)) = dice.any(corpus.observed.iter()) {
                let resource = dice.pick(resources).clone();
                object(request, &["desired", "resources"]).insert(key.clone(), resource);
            }
        }
        2 => {
            let ready = *dice.pick(&["READY_TRUE", "READY_FALSE", "READY_UNSPECIFIED"]);
            object(request, &["desired", "composite"]).insert("ready".into(), json!(ready));
        }
        3 => {
            let status = hostile::value(dice);
            object(request, &["desired", "composite", "resource"]).insert("status".into(), status);
        }
        4 => {
            let field = *dice.pick(&["spec", "metadata", "phase"]);
            let value = hostile::value(dice);
            object(request, &["desired", "composite", "resource"]).insert(field.into(), value);
        }
        _ => {
            let value = hostile::value(dice);
            object(request, &["context"]).insert("apiextensions.crossplane.io/x".into(), value);
        }
    }
}

/// Parts of the message itself are missing or unusual.
fn envelope(request: &mut Value, dice: &mut Dice) {
    match dice.below(6) {
        0 => {
            let field = *dice.pick(&["observed", "desired", "input", "requiredResources", "meta"]);
            object(request, &[]).remove(field);
        }
        1 => {
            object(request, &["observed"]).remove("composite");
        }
        2 => {
            let tag = "t".repeat(dice.below(300));
            object(request, &["meta"]).insert("tag".to_owned(), json!(tag));
        }
        3 => {
            let keys: Vec<String> = observed_of(request).map(|(key, _)| key.clone()).collect();
            if let Some(key) = dice.any(keys) {
                object(request, &["observed", "resources"]).insert(key, json!({}));
            }
        }
        4 => {
            let name = (*dice.pick(&["catalogue", "namespace", "attachments", "other"])).to_owned();
            object(request, &["requiredResources"]).insert(name, json!({"items": [{}]}));
        }
        _ => {
            let bytes = "eHh4eA==".repeat(1 + dice.below(50));
            object(request, &["observed", "composite", "connectionDetails"])
                .insert("ssh".to_owned(), json!(bytes));
        }
    }
}

/// Changes a random place: removes its value, replaces it, copies another value there, or adds a
/// field.
fn anywhere(request: &mut Value, dice: &mut Dice) {
    let mut roots = roots(request);
    if roots.is_empty() {
        return;
    }
    let at = dice.below(roots.len());
    let root = roots.swap_remove(at);
    let depth = 1 + dice.below(7);
    let Some(place) = dice.any(paths(root, depth)) else {
        return;
    };
    match dice.below(6) {
        0 | 1 => remove(root, &place),
        2 | 3 => {
            let value = hostile::value(dice);
            put(root, &place, value);
        }
        4 => {
            let other = dice.any(paths(root, 7)).unwrap_or_default();
            let value = root.pointer(&other).cloned().unwrap_or_default();
            put(root, &place, value);
        }
        _ => {
            let value = hostile::value(dice);
            if let Some(object) = root.pointer_mut(&place).and_then(Value::as_object_mut) {
                let field = *dice.pick(&["unknown", "", "name", "items", "x-y.z/w"]);
                object.insert(field.to_owned(), value);
            }
        }
    }
}

/// The parts of a request that may hold any fields.
fn roots(request: &mut Value) -> Vec<&mut Value> {
    let mut roots = Vec::new();
    let Some(fields) = request.as_object_mut() else {
        return roots;
    };
    for (name, value) in fields {
        match name.as_str() {
            "input" | "context" => roots.push(value),
            "observed" | "desired" => {
                let state = value.as_object_mut().into_iter().flatten();
                for (part, value) in state {
                    if part == "composite" {
                        roots.extend(value.get_mut("resource"));
                    } else if let Some(resources) = value.as_object_mut() {
                        roots.extend(resources.values_mut().filter_map(|r| r.get_mut("resource")));
                    }
                }
            }
            "requiredResources" => {
                let answers = value.as_object_mut().into_iter().flatten();
                for (_, answer) in answers {
                    let items = answer.get_mut("items").and_then(Value::as_array_mut);
                    roots.extend(
                        items
                            .into_iter()
                            .flatten()
                            .filter_map(|i| i.get_mut("resource")),
                    );
                }
            }
            _ => {}
        }
    }
    roots.retain(|root| root.is_object());
    roots
}

/// The JSON pointers below a value, down to a depth.
pub fn paths(value: &Value, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    collect(value, "", depth, &mut found);
    found
}

fn collect(value: &Value, at: &str, depth: usize, found: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    let mut below = |token: &str, value: &Value| {
        let path = format!("{at}/{token}");
        collect(value, &path, depth - 1, found);
        found.push(path);
    };
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                below(&name.replace('~', "~0").replace('/', "~1"), value);
            }
        }
        Value::Array(items) => {
            for (n, value) in items.iter().enumerate() {
                below(&n.to_string(), value);
            }
        }
        _ => {}
    }
}

/// Removes the value at a pointer.
pub fn remove(root: &mut Value, pointer: &str) {
    let Some((parent, token)) = pointer.rsplit_once('/') else {
        return;
    };
    let token = token.replace("~1", "/").replace("~0", "~");
    match root.pointer_mut(parent) {
        Some(Value::Object(fields)) => drop(fields.remove(&token)),
        Some(Value::Array(items)) => {
            if let Some(n) = token.parse().ok().filter(|n| *n < items.len()) {
                items.remove(n);
            }
        }
        _ => {}
    }
}

fn put(root: &mut Value, pointer: &str, value: Value) {
    if let Some(place) = root.pointer_mut(pointer) {
        *place = value;
    }
}
