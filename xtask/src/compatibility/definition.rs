//! Kinds and their versions: XRDs, CRDs, and inputs of functions, which are CRDs too.

use serde_json::Value;

use super::change::{Change, Rule};
use super::schema::{self, text};

/// A definition in a package.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    /// The package's name.
    pub(super) package: String,
    /// The object that defines the kind.
    pub(super) body: Value,
}

impl Definition {
    /// Its name, such as `spotpools.gpu.platform.acme.io`.
    pub(super) fn name(&self) -> &str {
        self.body["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn is(&self, other: &Self) -> bool {
        self.package == other.package && self.name() == other.name()
    }

    fn change(&self, field: &str, rule: Rule, what: String) -> Change {
        Change {
            package: self.package.clone(),
            definition: self.name().to_owned(),
            field: field.to_owned(),
            rule,
            what,
        }
    }
}

/// The changes that break users of the old definitions. A new definition breaks nobody.
pub(super) fn compare(old: &[Definition], new: &[Definition]) -> Vec<Change> {
    let mut changes = Vec::new();
    for old in old {
        match new.iter().find(|new| new.is(old)) {
            None => changes.push(old.change(
                "the definition",
                Rule::DefinitionRemoved,
                format!("{} is gone from the package", old.body["kind"]),
            )),
            Some(new) => {
                names(old, new, &mut changes);
                composites(old, new, &mut changes);
                versions(old, new, &mut changes);
            }
        }
    }
    changes
}

/// Compares the names by which an API server and its clients know the kind, and its scope.
fn names(old: &Definition, new: &Definition, changes: &mut Vec<Change>) {
    for (pointer, rule) in [
        ("/apiVersion", Rule::NamesChanged),
        ("/kind", Rule::NamesChanged),
        ("/spec/group", Rule::NamesChanged),
        ("/spec/names/kind", Rule::NamesChanged),
        ("/spec/names/plural", Rule::NamesChanged),
        ("/spec/claimNames/kind", Rule::NamesChanged),
        ("/spec/claimNames/plural", Rule::NamesChanged),
        ("/spec/scope", Rule::ScopeChanged),
    ] {
        let (before, after) = (at(old, pointer), at(new, pointer));
        // Adding names for claims is allowed: without names there were no claims to break.
        let is_added = before.is_null() && pointer.starts_with("/spec/claimNames");
        if before != after && !is_added {
            let what = format!("was {}, and is {}", text(before), text(after));
            changes.push(old.change(&dotted(pointer), rule, what));
        }
    }
    for pointer in ["/spec/names/shortNames", "/spec/claimNames/shortNames"] {
        for gone in lost(at(old, pointer), at(new, pointer)) {
            let what = format!("{gone} is no name for it any more");
            changes.push(old.change(&dotted(pointer), Rule::NamesChanged, what));
        }
    }
}

/// Compares the defaults that Crossplane applies to composites and claims, and the keys of
/// connection Secrets.
fn composites(old: &Definition, new: &Definition, changes: &mut Vec<Change>) {
    for pointer in [
        "/spec/defaultCompositionRef",
        "/spec/enforcedCompositionRef",
        "/spec/defaultCompositionUpdatePolicy",
        "/spec/defaultCompositeDeletePolicy",
    ] {
        let (before, after) = (at(old, pointer), at(new, pointer));
        if before != after {
            let what = format!("was {}, and is {}", text(before), text(after));
            changes.push(old.change(&dotted(pointer), Rule::DefaultChanged, what));
        }
    }
    let pointer = "/spec/connectionSecretKeys";
    for gone in lost(at(old, pointer), at(new, pointer)) {
        let what = format!("{gone} is not in connection Secrets any more");
        changes.push(old.change(&dotted(pointer), Rule::ConnectionKeyRemoved, what));
    }
}

fn versions(old: &Definition, new: &Definition, changes: &mut Vec<Change>) {
    for before in list(at(old, "/spec/versions")) {
        // No user can have used a version that was not served.
        if before["served"] != Value::Bool(true) {
            continue;
        }
        let name = before["name"].as_str().unwrap_or_default();
        let after = list(at(new, "/spec/versions"))
            .iter()
            .find(|after| after["name"] == before["name"]);
        match after {
            None => {
                let what = "the version is gone".to_owned();
                changes.push(old.change(name, Rule::VersionRemoved, what));
            }
            Some(after) if after["served"] != Value::Bool(true) => {
                let what = "the version is not served any more".to_owned();
                changes.push(old.change(name, Rule::VersionRemoved, what));
            }
            Some(after) => version(old, name, before, after, changes),
        }
    }
}

fn version(old: &Definition, name: &str, before: &Value, after: &Value, to: &mut Vec<Change>) {
    if before["referenceable"] == Value::Bool(true) && after["referenceable"] != Value::Bool(true) {
        let what = "Compositions cannot name the version any more".to_owned();
        to.push(old.change(name, Rule::VersionRemoved, what));
    }
    for subresource in ["status", "scale"] {
        let has = |version: &Value| !version["subresources"][subresource].is_null();
        if has(before) && !has(after) {
            let what = format!("the subresource {subresource} is gone");
            to.push(old.change(name, Rule::FieldRemoved, what));
        }
    }
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    for (field, rule, what) in schema::compare(&schema(before), &schema(after)) {
        to.push(old.change(&format!("{name} {field}"), rule, what));
    }
}

fn at<'a>(definition: &'a Definition, pointer: &str) -> &'a Value {
    definition.body.pointer(pointer).unwrap_or(&Value::Null)
}

fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn lost<'a>(before: &'a Value, after: &'a Value) -> impl Iterator<Item = &'a Value> {
    let is_gone = |value: &&Value| !list(after).contains(value);
    list(before).iter().filter(is_gone)
}
