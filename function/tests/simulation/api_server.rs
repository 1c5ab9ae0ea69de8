//! A simulation of the Kubernetes API server, as far as composed resources need it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::manifest::{self, text};

const IN_USE: &str = "/metadata/labels/crossplane.io~1in-use";
const ATTEMPT: &str = "/metadata/annotations/usage.crossplane.io~1deletion-attempt-with-policy";
const FINALIZERS: &str = "/metadata/finalizers";

/// An object's kind and name. All objects are in one namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// The object's kind.
    pub kind: String,
    /// The object's name.
    pub name: String,
}

impl Id {
    /// The id of the object in a manifest.
    pub fn of(manifest: &Value) -> Self {
        let field = |pointer| text(manifest, pointer).unwrap_or_default().to_owned();
        Self {
            kind: field("/kind"),
            name: field("/metadata/name"),
        }
    }
}

/// A stored object.
#[derive(Clone, Debug)]
pub struct Object {
    /// The manifest, as readers get it.
    pub manifest: Value,
    /// The number of changes to all objects, up to the last change of this object.
    pub version: u64,
    /// The manifest that Crossplane applied last.
    applied: Value,
    /// The fields that other managers own as well.
    others: BTreeSet<String>,
}

/// The API server with all its objects.
#[derive(Clone, Default)]
pub struct Api {
    objects: BTreeMap<Id, Object>,
    changes: u64,
    born: u64,
}

/// The webhook of Usages refused a deletion.
#[derive(Debug)]
pub struct InUse;

impl Api {
    /// The number of changes to all objects.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// All objects.
    pub fn all(&self) -> impl Iterator<Item = (&Id, &Object)> {
        self.objects.iter()
    }

    /// The manifests of a kind.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        let objects = self.objects.iter().filter(move |(id, _)| id.kind == kind);
        objects.map(|(_, object)| &object.manifest)
    }

    /// An object.
    pub fn get(&self, id: &Id) -> Option<&Value> {
        self.objects.get(id).map(|object| &object.manifest)
    }

    /// An object's version.
    pub fn version(&self, id: &Id) -> Option<u64> {
        self.objects.get(id).map(|object| object.version)
    }

    /// Crossplane's server-side apply. A field that Crossplane applied before and does not apply
    /// now is removed, unless another manager owns the field too.
    pub fn apply(&mut self, id: &Id, desired: &Value) {
        let born = self.born;
        let object = self.objects.entry(id.clone()).or_insert_with(|| {
            let uid = json!({"metadata": {"uid": format!("uid-{born}")}});
            Object {
                manifest: uid,
                version: 0,
                applied: Value::Null,
                others: BTreeSet::new(),
            }
        });
        let before = object.manifest.clone();
        for pointer in manifest::leaves(&object.applied) {
            let is_kept = desired.pointer(&pointer).is_some() || object.others.contains(&pointer);
            if !is_kept {
                manifest::remove(&mut object.manifest, &pointer);
                manifest::remove_empty_parents(&mut object.manifest, &pointer);
            }
        }
        manifest::merge(&mut object.manifest, desired);
        let policies = "/spec/managementPolicies";
        if id.kind != "Usage" && object.manifest.pointer(policies).is_none() {
            manifest::set(&mut object.manifest, policies, json!(["*"]));
        }
        object.applied = desired.clone();
        if object.manifest != before {
            self.born += 1;
            self.changed(id);
        }
    }

    /// A controller or a person sets a field. From then on, they own the field, unless it is in the
    /// status.
    pub fn edit(&mut self, id: &Id, pointer: &str, value: Value) {
        let Some(object) = self.objects.get_mut(id) else {
            return;
        };
        let is_changed = manifest::set(&mut object.manifest, pointer, value);
        if is_changed {
            if !pointer.starts_with("/status") {
                object.others.insert(pointer.to_owned());
            }
            self.changed(id);
        }
    }

    /// Removes a field of any owner.
    pub fn strip(&mut self, id: &Id, pointer: &str) {
        let object = self.objects.get_mut(id);
        if object.is_some_and(|object| manifest::remove(&mut object.manifest, pointer)) {
            self.changed(id);
        }
    }

    /// Sets a condition, as a controller does.
    pub fn set_condition(&mut self, id: &Id, condition: Value) {
        let Some(object) = self.objects.get(id) else {
            return;
        };
        let conditions = object.manifest.pointer("/status/conditions");
        let conditions = conditions.and_then(Value::as_array).cloned();
        let mut conditions = conditions.unwrap_or_default();
        match conditions
            .iter_mut()
            .find(|c| c["type"] == condition["type"])
        {
            Some(same) => *same = condition,
            None => conditions.push(condition),
        }
        self.edit(id, "/status/conditions", Value::Array(conditions));
    }

    /// Deletes an object. A Usage may refuse the deletion. The object is gone once no finalizer is
    /// left.
    pub fn delete(&mut self, id: &Id) -> Result<(), InUse> {
        let Some(manifest) = self.get(id) else {
            return Ok(());
        };
        if text(manifest, IN_USE).is_some() && self.is_used(id) {
            self.edit(id, ATTEMPT, json!("Foreground"));
            return Err(InUse);
        }
        self.edit(id, manifest::DELETED, json!("2026-11-20T10:00:05Z"));
        self.collect(id);
        Ok(())
    }

    /// Whether any Usage names the object as used.
    pub fn is_used(&self, id: &Id) -> bool {
        self.of_kind("Usage").any(|usage| {
            text(usage, "/spec/of/kind") == Some(&id.kind)
                && text(usage, "/spec/of/resourceRef/name") == Some(&id.name)
        })
    }

    /// Whether a Usage refused a deletion of the object before.
    pub fn was_refused(&self, id: &Id) -> bool {
        self.get(id).is_some_and(|m| text(m, ATTEMPT).is_some())
    }

    /// Sets or removes the label that marks an object as used.
    pub fn mark_used(&mut self, id: &Id, is_used: bool) {
        if is_used {
            self.edit(id, IN_USE, json!("true"));
        } else {
            self.strip(id, IN_USE);
        }
    }

    /// Adds the controller's finalizer.
    pub fn guard(&mut self, id: &Id) {
        self.edit(id, FINALIZERS, json!(["controller"]));
    }

    /// Removes the controller's finalizer.
    pub fn release(&mut self, id: &Id) {
        self.edit(id, FINALIZERS, json!([]));
        self.collect(id);
    }

    fn collect(&mut self, id: &Id) {
        let is_over = self.get(id).is_some_and(|manifest| {
            let finalizers = manifest.pointer(FINALIZERS).and_then(Value::as_array);
            manifest.pointer(manifest::DELETED).is_some() && finalizers.is_none_or(Vec::is_empty)
        });
        if is_over {
            self.objects.remove(id);
            self.changes += 1;
        }
    }

    fn changed(&mut self, id: &Id) {
        self.changes += 1;
        if let Some(object) = self.objects.get_mut(id) {
            object.version = self.changes;
        }
    }
}
