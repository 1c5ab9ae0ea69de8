//! When everything works again, a workspace must come to rest. It must be Ready and match the
//! claim. Nothing may be left over, and nothing may still change.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::api_server::Id;
use super::cloud::{Hold, asked};
use super::composite::{self, Reconciled, reconcile};
use super::engine::{Engine, Rendered};
use super::manifest::{EXTERNAL_NAME, is_well, text};
use super::world::World;

/// How long one round takes, in seconds.
const ROUND: u64 = 10;
/// After this many seconds, upbound's provider observes its objects again without a change. The
/// simulation does the same for every controller.
const POLL: u64 = 600;
/// More rounds than this mean an endless loop.
const ROUNDS: usize = 1000;
/// More reconciles of the XR than this mean an endless loop.
pub const RECONCILES: usize = 60;

/// The time that a workspace took to come to rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// The number of reconciles of the XR until nothing changed any more.
    pub reconciles: usize,
    /// The seconds until then.
    pub seconds: u64,
}

/// Decides when each controller reconciles.
#[derive(Default)]
struct Calls {
    /// The version of each object when its controller last reconciled it.
    looked: BTreeMap<Id, u64>,
    /// The objects that their controllers want to reconcile again.
    again: BTreeSet<Id>,
    /// The time at which every controller reconciles all its objects again.
    poll_at: u64,
    /// The state that the XR's last reconcile saw.
    #[allow(
        clippy::type_complexity,
        reason = "compared as a whole, never taken apart"
    )]
    seen: Option<(Value, BTreeMap<String, Value>, Vec<Value>, Value)>,
    /// The time at which the XR is reconciled again at the latest.
    due_at: u64,
}

/// Lets every controller reconcile, called as in a cluster, until nothing changes any more.
pub fn settle(world: &mut World, engine: &mut impl Engine) -> Result<Rest, String> {
    let mut calls = Calls::default();
    let mut rest = Rest::default();
    let (mut now, mut reconciles) = (0, 0);
    let mut quiet_since = None;
    for _ in 0..ROUNDS {
        let before = (world.api.changes(), world.cloud.clone(), world.xr.clone());
        if now >= calls.poll_at {
            calls.poll_at = now + POLL;
            calls.looked.clear();
        }
        world.cloud.tick(|| true);
        calls.look(world);
        if let Some(rendered) = calls.reconcile(world, engine, now)? {
            reconciles += 1;
            if reconciles > RECONCILES {
                let message = text(&world.xr.status, "/message").unwrap_or_default();
                return Err(format!("{RECONCILES} reconciles and no rest: {message}"));
            }
            if quiet_since.is_some() && !rendered.events.is_empty() {
                return Err(format!("events at rest: {:?}", rendered.events));
            }
        }
        now += ROUND;
        if before != (world.api.changes(), world.cloud.clone(), world.xr.clone()) {
            rest = Rest {
                reconciles,
                seconds: now,
            };
            quiet_since = None;
            continue;
        }
        let quiet_since = *quiet_since.get_or_insert(now);
        if now > quiet_since + 2 * POLL && !calls.is_called(world) {
            return Ok(rest);
        }
        if calls.again.is_empty() && !calls.is_called(world) {
            now = now.max(calls.due_at.min(calls.poll_at));
        }
    }
    Err(format!("{ROUNDS} rounds and no rest"))
}

impl Calls {
    fn look(&mut self, world: &mut World) {
        for id in world.objects() {
            let is_changed = world.api.version(&id) != self.looked.get(&id).copied();
            if !is_changed && !self.again.contains(&id) {
                continue;
            }
            self.again.remove(&id);
            if world.look(&id) {
                self.again.insert(id.clone());
            }
            if let Some(version) = world.api.version(&id) {
                self.looked.insert(id, version);
            }
        }
        let exists = |id: &Id| world.api.get(id).is_some();
        self.again.retain(exists);
    }

    fn saw(world: &World) -> (Value, BTreeMap<String, Value>, Vec<Value>, Value) {
        let xr = world.xr.manifest();
        let mut spec = xr;
        if let Some(fields) = spec.as_object_mut() {
            fields.remove("status");
        }
        let required = composite::cluster(world);
        (
            spec,
            composite::observed(world),
            required,
            world.policy.clone(),
        )
    }

    fn is_called(&self, world: &World) -> bool {
        self.seen.as_ref() != Some(&Self::saw(world))
    }

    /// Crossplane reconciles an XR when a composed or required resource has changed, and when the
    /// time to live of the function's response is over.
    fn reconcile(
        &mut self,
        world: &mut World,
        engine: &mut impl Engine,
        now: u64,
    ) -> Result<Option<Rendered>, String> {
        if now < self.due_at && !self.is_called(world) {
            return Ok(None);
        }
        let seen = Self::saw(world);
        let reconciled = reconcile(world, engine)?;
        // `seen` is the state before the reconcile. So a change that the reconcile itself makes
        // calls Crossplane again.
        self.seen = Some(seen);
        match reconciled {
            Reconciled::Applied(rendered) | Reconciled::Fatal(rendered) => {
                self.due_at = now + rendered.ttl;
                Ok(Some(rendered))
            }
            Reconciled::Refused => {
                self.due_at = now;
                Ok(None)
            }
        }
    }
}

/// Checks that everything matches the claim.
pub fn check(world: &World) -> Result<(), String> {
    let message = text(&world.xr.status, "/message").unwrap_or_default();
    // Where the policy keeps homes, the function does not make a volume again that a person
    // deleted.
    let recorded_home = text(&world.xr.status, "/home/volumeId");
    let is_deleted = recorded_home.is_some_and(|id| !world.cloud.volumes.contains_key(id));
    let is_told = message.contains("no longer exists in EC2 and is not replaced");
    if is_deleted && world.has_home_deleted_by_hand && is_told {
        return Ok(());
    }
    let is_ready = world.xr.ready && text(&world.xr.status, "/phase") == Some("Ready");
    if !is_ready && !names_a_part(world, message) {
        return Err(format!("it is not Ready: {message}"));
    }
    let live: Vec<&String> = world
        .cloud
        .vms
        .iter()
        .filter(|(_, vm)| !vm.is_over())
        .map(|(id, _)| id)
        .collect();
    let recorded = text(&world.xr.status, "/instanceId").map(str::to_owned);
    if live.len() != 1 || live.first().map(|id| (*id).clone()) != recorded {
        return Err(format!("{live:?} run, {recorded:?} is recorded"));
    }
    let unwell = world.api.all().find(|(id, object)| {
        !is_excused(world, &id.kind, &object.manifest) && !is_well(&object.manifest)
    });
    if let Some((id, _)) = unwell {
        return Err(format!("{id:?} is not well"));
    }
    let expected = expected(world);
    let found = kinds(world);
    if expected != found {
        return Err(format!("there is {found:?}, expected was {expected:?}"));
    }
    connection(world)?;
    home(world)
}

/// Whether the message names a composed resource that a person deletes. A workspace is not Ready
/// over it.
fn names_a_part(world: &World, message: &str) -> bool {
    world.api.all().any(|(id, object)| {
        let name = text(&object.manifest, "/metadata/name").unwrap_or_default();
        message.starts_with(&format!("{} {name} ", id.kind))
            && is_excused(world, &id.kind, &object.manifest)
    })
}

/// Whether a composed resource need not be well at rest.
fn is_excused(world: &World, kind: &str, manifest: &Value) -> bool {
    let uid = text(manifest, "/metadata/uid").unwrap_or_default();
    let says_nothing = matches!(kind, "Usage" | "Secret" | "WorkspaceRecord");
    says_nothing || world.by_hand.contains(uid)
}

/// The Secret of a namespaced workspace has the same SSH command as the status.
fn connection(world: &World) -> Result<(), String> {
    let Some(secret) = world.api.of_kind("Secret").next() else {
        return Ok(());
    };
    let ssh = text(&world.xr.status, "/ssh").unwrap_or_default();
    let said = text(secret, "/data/ssh").unwrap_or_default();
    if said == STANDARD.encode(ssh) {
        Ok(())
    } else {
        Err(format!("the Secret says {said}, the status {ssh}"))
    }
}

fn on_demand(world: &World) -> bool {
    market(world) == "OnDemand"
}

/// Whether the machine is in a security group that the function composes.
fn has_group(world: &World) -> bool {
    let catalogue = world.catalogue.as_ref();
    let network = catalogue.and_then(|c| c.pointer("/data/networks/us-east-1"));
    let is_others = network.is_some_and(|n| n.get("securityGroupIds").is_some());
    let exists = world.api.of_kind("SecurityGroup").next().is_some();
    on_demand(world) && (exists || !is_others)
}

fn market(world: &World) -> &str {
    text(&world.xr.parameters, "/capacityType")
        .or_else(|| text(&world.policy, "/defaults/capacityType"))
        .unwrap_or("SpotWithFallback")
}

/// Counts the objects by kind, the instances also by type, and the rules also by network.
fn kinds(world: &World) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    // A workspace that was once on demand keeps its security group and rules, which cost nothing.
    // They do not count.
    let counts = |id: &&Id| has_group(world) || !id.kind.starts_with("SecurityGroup");
    for (id, object) in world.api.all().filter(|(id, _)| counts(id)) {
        let manifest = &object.manifest;
        let what = match id.kind.as_str() {
            "Instance" => format!(
                "Instance {}",
                asked(manifest, "instanceType").unwrap_or_default()
            ),
            "SecurityGroupRule" => {
                let cidrs = manifest.pointer("/spec/forProvider/cidrBlocks/0");
                format!("rule {}", cidrs.and_then(Value::as_str).unwrap_or_default())
            }
            kind => kind.to_owned(),
        };
        *kinds.entry(what).or_insert(0) += 1;
    }
    kinds
}

/// The counts that the claim, the catalogue and the policy ask for.
fn expected(world: &World) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    let mut expect = |what: String, number: usize| {
        if number > 0 {
            kinds.insert(what, number);
        }
    };
    let parameters = &world.xr.parameters;
    let has_home = parameters.get("home").is_some();
    let on_demand = on_demand(world);
    let type_ = text(parameters, "/instanceType").unwrap_or("g4dn.xlarge");
    if on_demand {
        expect(format!("Instance {type_}"), 1);
    } else {
        expect("SpotPool".to_owned(), 1);
    }
    expect("Secret".to_owned(), usize::from(world.xr.is_namespaced));
    let records = usize::from(world.xr.is_namespaced);
    expect("WorkspaceRecord".to_owned(), records);
    expect("EBSVolume".to_owned(), usize::from(has_home));
    expect("VolumeAttachment".to_owned(), usize::from(has_home));
    let usages = 2 * usize::from(has_home) + usize::from(has_group(world));
    expect("Usage".to_owned(), usages);
    if has_group(world) {
        expect("SecurityGroup".to_owned(), 1);
        expect("rule 0.0.0.0/0".to_owned(), 1);
        for cidr in cidrs(world) {
            expect(format!("rule {cidr}"), 1);
        }
    }
    kinds
}

fn cidrs(world: &World) -> Vec<String> {
    let list = |value: &Value, pointer: &str| -> Vec<String> {
        let list = value.pointer(pointer).and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    let claimed = list(&world.xr.parameters, "/ssh/allowedCidrs");
    if claimed.is_empty() {
        list(&world.policy, "/defaults/sshCidrs")
    } else {
        claimed
    }
}

/// Checks that the only volume is attached to the only machine.
fn home(world: &World) -> Result<(), String> {
    let Some(home) = world.api.of_kind("EBSVolume").next() else {
        return Ok(());
    };
    let id = text(home, EXTERNAL_NAME).unwrap_or_default();
    let recorded = text(&world.xr.status, "/instanceId").unwrap_or_default();
    let attached = world.cloud.volumes.get(id).and_then(|v| v.attached.clone());
    if attached != Some((recorded.to_owned(), Hold::Attached)) {
        return Err(format!("{id} is attached to {attached:?}"));
    }
    tags(world, home, recorded)?;
    let size = world
        .xr
        .parameters
        .pointer("/home/sizeGiB")
        .and_then(Value::as_i64);
    if size > world.cloud.volumes.get(id).map(|v| v.size) {
        return Err(format!("the home has not grown to {size:?} GiB"));
    }
    Ok(())
}

/// Checks that the `Instance` and the `EBSVolume` ask for the same tags of the volume. Otherwise
/// each of them would remove the other's tags at every reconcile.
fn tags(world: &World, home: &Value, machine: &str) -> Result<(), String> {
    let mut instances = world.api.of_kind("Instance");
    let instance = instances.find(|i| text(i, EXTERNAL_NAME) == Some(machine));
    let asked = instance.and_then(|i| i.pointer("/spec/forProvider/volumeTags"));
    let tags = home.pointer("/spec/forProvider/tags");
    if tags.is_some() && tags == asked {
        Ok(())
    } else {
        Err(format!(
            "the home has the tags {tags:?}, its instance the volumeTags {asked:?}"
        ))
    }
}
