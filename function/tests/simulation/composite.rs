//! A simulation of Crossplane's controller of composites (core 2.4), for one XR.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::api_server::Id;
use super::engine::{Call, Engine, Rendered};
use super::invariants;
use super::manifest::{self, KEY, text};
use super::world::{NAMESPACE, World};

/// The name of the claim. A namespaced composite without a claim has the same name.
const CLAIM: &str = "alice-vision";
/// The name of a claim's composite.
const NAME: &str = "alice-vision-x7k2p";
const UID: &str = "5f1f7a0e-9d0c-4d55-8f4e-0a4f3c1d2b3e";
const API_VERSION: &str = "platform.acme.io/v1alpha1";

/// The stored XR.
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    /// Whether the XR is namespaced and has no claim.
    pub is_namespaced: bool,
    /// `spec.parameters`, as in the claim.
    pub parameters: Value,
    /// The function's part of the status.
    pub status: Value,
    /// The conditions by type.
    pub conditions: BTreeMap<String, Value>,
    /// Whether the XR is Ready.
    pub ready: bool,
    /// `spec.resourceRefs`, by key.
    pub refs: BTreeMap<String, Id>,
}

/// The outcome of a reconcile.
#[derive(Clone, Debug, PartialEq)]
pub enum Reconciled {
    /// Crossplane applied the response.
    Applied(Rendered),
    /// Crossplane applied nothing, because the function returned a fatal result.
    Fatal(Rendered),
    /// A deletion was refused, so Crossplane applied nothing.
    Refused,
}

impl Composite {
    /// A new XR. It belongs to a claim, unless it is namespaced.
    pub fn new(parameters: Value, is_namespaced: bool) -> Self {
        Self {
            is_namespaced,
            parameters,
            status: json!({}),
            conditions: BTreeMap::new(),
            ready: false,
            refs: BTreeMap::new(),
        }
    }

    /// The XR's manifest.
    pub fn manifest(&self) -> Value {
        let mut xr = json!({
            "apiVersion": API_VERSION,
            "kind": self.kind(),
            "metadata": {"name": self.name(), "uid": UID, "labels": self.labels()},
            "spec": {"parameters": self.parameters},
            "status": self.status,
        });
        if self.is_namespaced {
            xr["metadata"]["namespace"] = json!(NAMESPACE);
            let own = json!({"compositionRef": {"name": "gpudevworkspaceclaims"}});
            xr["spec"]["crossplane"] = own;
        } else {
            xr["spec"]["compositionRef"] = json!({"name": "gpudevworkspaces"});
            xr["spec"]["claimRef"] = json!({
                "apiVersion": API_VERSION,
                "kind": "GpuDevWorkspaceClaim",
                "namespace": NAMESPACE,
                "name": CLAIM,
            });
        }
        let conditions: Vec<&Value> = self.conditions.values().collect();
        if !conditions.is_empty() {
            manifest::set(&mut xr, "/status/conditions", json!(conditions));
        }
        xr
    }

    fn kind(&self) -> &'static str {
        if self.is_namespaced {
            "GpuDevWorkspaceClaim"
        } else {
            "GpuDevWorkspace"
        }
    }

    fn name(&self) -> &'static str {
        if self.is_namespaced { CLAIM } else { NAME }
    }

    /// Crossplane's labels on the XR and on its composed resources.
    fn labels(&self) -> BTreeMap<&'static str, &'static str> {
        let mut labels = BTreeMap::from([("crossplane.io/composite", self.name())]);
        if !self.is_namespaced {
            labels.insert("crossplane.io/claim-name", CLAIM);
            labels.insert("crossplane.io/claim-namespace", NAMESPACE);
        }
        labels
    }
}

/// The composed resources that exist, by key.
pub fn observed(world: &World) -> BTreeMap<String, Value> {
    let refs = world.xr.refs.iter();
    refs.filter_map(|(key, id)| Some((key.clone(), world.api.get(id)?.clone())))
        .collect()
}

/// The objects that the function may require.
pub fn cluster(world: &World) -> Vec<Value> {
    let attachments = world.api.of_kind("VolumeAttachment").cloned();
    let others = world.catalogue.iter().chain(&world.namespace).cloned();
    attachments.chain(others).collect()
}

/// One reconcile of the XR.
pub fn reconcile(world: &mut World, engine: &mut impl Engine) -> Result<Reconciled, String> {
    let observed = observed(world);
    let rendered = engine.render(&Call {
        policy: &world.policy,
        xr: world.xr.manifest(),
        observed: observed.clone(),
        cluster: cluster(world),
    })?;
    world.note(|| {
        let keys: Vec<&String> = rendered.desired.keys().collect();
        let phase = text(&rendered.status, "/phase").unwrap_or("-");
        format!(
            "reconcile: {phase} {:?} {keys:?} {:?}",
            rendered.fatal, rendered.events
        )
    });
    if rendered.fatal.is_some() {
        world.xr.ready = false;
        conditions(world, &rendered, true);
        return Ok(Reconciled::Fatal(rendered));
    }
    invariants::check_answer(world, &observed, &rendered);
    if !collect_garbage(world, &observed, &rendered) {
        return Ok(Reconciled::Refused);
    }
    apply(world, &rendered);
    world.xr.status = rendered.status.clone();
    world.xr.ready = rendered.ready;
    conditions(world, &rendered, false);
    Ok(Reconciled::Applied(rendered))
}

/// Deletes the observed resources that are not desired, in random order. A refused deletion ends
/// the reconcile.
fn collect_garbage(
    world: &mut World,
    observed: &BTreeMap<String, Value>,
    rendered: &Rendered,
) -> bool {
    let gone = observed
        .keys()
        .filter(|key| !rendered.desired.contains_key(*key));
    let mut gone: Vec<String> = gone.cloned().collect();
    while !gone.is_empty() {
        let key = gone.swap_remove(world.dice.below(gone.len()));
        let id = world.xr.refs[&key].clone();
        for label in world.xr.labels().into_keys() {
            let label = label.replace('/', "~1");
            world.api.strip(&id, &format!("/metadata/labels/{label}"));
        }
        invariants::check_deletion(world, &key, &id);
        world.note(|| format!("Crossplane deletes {key}"));
        if world.api.delete(&id).is_err() {
            world.note(|| format!("{key} is in use: nothing is applied"));
            return false;
        }
    }
    true
}

fn apply(world: &mut World, rendered: &Rendered) {
    let mut resources: Vec<(String, Value)> = rendered
        .desired
        .iter()
        .map(|(key, object)| (key.clone(), composed(world, key, object)))
        .collect();
    let refs = resources.iter();
    world.xr.refs = refs
        .map(|(key, object)| (key.clone(), Id::of(object)))
        .collect();
    while !resources.is_empty() {
        let (key, object) = resources.swap_remove(world.dice.below(resources.len()));
        let id = Id::of(&object);
        if world.api.get(&id).is_none() {
            invariants::check_creation(world, &key, &object);
            world.note(|| format!("Crossplane creates {key}"));
        }
        world.api.apply(&id, &object);
    }
}

/// A desired resource with everything that Crossplane adds.
fn composed(world: &World, key: &str, desired: &Value) -> Value {
    let mut object = desired.clone();
    let name = match world.xr.refs.get(key) {
        Some(id) => id.name.clone(),
        None => text(desired, "/metadata/name").map_or_else(|| name(world, key), str::to_owned),
    };
    manifest::set(&mut object, "/metadata/name", json!(name));
    manifest::set(&mut object, "/metadata/namespace", json!(NAMESPACE));
    manifest::set(&mut object, KEY, json!(key));
    for (label, value) in world.xr.labels() {
        let label = label.replace('/', "~1");
        manifest::set(
            &mut object,
            &format!("/metadata/labels/{label}"),
            json!(value),
        );
    }
    let owner = json!([{
        "apiVersion": API_VERSION,
        "kind": world.xr.kind(),
        "name": world.xr.name(),
        "uid": UID,
        "controller": true,
        "blockOwnerDeletion": true,
    }]);
    manifest::set(&mut object, "/metadata/ownerReferences", owner);
    object
}

/// A generated name. As in Crossplane, the same XR and composition resource name always give the
/// same name.
fn name(world: &World, key: &str) -> String {
    let mut hash = DefaultHasher::new();
    (UID, key).hash(&mut hash);
    format!(
        "{}-{:012x}",
        world.xr.name(),
        hash.finish() & 0xffff_ffff_ffff
    )
}

/// Stores the conditions of a response. After a fatal result, every condition that the function did
/// not mention becomes Unknown.
fn conditions(world: &mut World, rendered: &Rendered, is_fatal: bool) {
    let type_ = |condition: &Value| condition["type"].as_str().unwrap_or_default().to_owned();
    let said: BTreeMap<String, Value> = rendered
        .conditions
        .iter()
        .map(|c| (type_(c), c.clone()))
        .collect();
    for (name, condition) in &mut world.xr.conditions {
        if is_fatal && !said.contains_key(name) {
            condition["status"] = json!("Unknown");
        }
    }
    world.xr.conditions.extend(said);
}
