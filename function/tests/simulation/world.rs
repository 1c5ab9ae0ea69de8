//! The state of the simulation of one workspace.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::api_server::{Api, Id};
use super::cloud::Cloud;
use super::composite::Composite;
use super::{spot, upbound, usages};
use crate::dice::Dice;

/// The namespace that everything is in.
pub const NAMESPACE: &str = "team-vision";

/// The simulation of one workspace.
pub struct World {
    /// The Kubernetes API server.
    pub api: Api,
    /// EC2.
    pub cloud: Cloud,
    /// The workspace's XR.
    pub xr: Composite,
    /// The Composition's input, or null where there is none.
    pub policy: Value,
    /// The `EnvironmentConfig`, where there is one.
    pub catalogue: Option<Value>,
    /// The claim's Namespace, as the API server shows it.
    pub namespace: Option<Value>,
    /// The source of random numbers.
    pub dice: Dice,
    /// The broken rules.
    pub violations: Vec<String>,
    /// The UIDs of the objects whose deletion a person asked for.
    pub by_hand: BTreeSet<String>,
    /// Whether the function may have lost track of the first home volume, so that it may make a
    /// second one.
    pub has_lost_track: bool,
    /// Whether a person deleted the object of a home volume. Where the policy says `Delete`, the
    /// volume goes with it.
    pub has_home_deleted_by_hand: bool,
    /// Whether the XR's status was lost once.
    pub has_lost_status: bool,
    /// The log of events, if a test wants it.
    pub log: Option<Vec<String>>,
}

impl World {
    /// A simulation without composed resources.
    pub fn new(seed: u64, parameters: Value, is_logged: bool) -> Self {
        Self {
            api: Api::default(),
            cloud: Cloud::default(),
            // Every second workspace is namespaced and has no claim.
            xr: Composite::new(parameters, seed.is_multiple_of(2)),
            policy: policy(),
            catalogue: Some(catalogue()),
            namespace: Some(namespace("alice")),
            dice: Dice::new(seed),
            violations: Vec::new(),
            by_hand: BTreeSet::new(),
            has_lost_track: false,
            has_home_deleted_by_hand: false,
            has_lost_status: false,
            log: is_logged.then(Vec::new),
        }
    }

    /// Writes an event to the log.
    pub fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(what());
        }
    }

    /// Records a broken rule.
    pub fn violate(&mut self, what: impl Into<String>) {
        let what = what.into();
        self.note(|| format!("VIOLATION: {what}"));
        self.violations.push(what);
    }

    /// Lets an object's controller reconcile it. Returns whether the controller wants to reconcile
    /// it again without a change.
    pub fn look(&mut self, id: &Id) -> bool {
        match id.kind.as_str() {
            "SpotPool" => spot::look(self, id),
            "Usage" => usages::look(self, id),
            "Secret" | "WorkspaceRecord" => false,
            _ => upbound::look(self, id),
        }
    }

    /// The ids of all objects.
    pub fn objects(&self) -> Vec<Id> {
        self.api.all().map(|(id, _)| id.clone()).collect()
    }

    /// A description with one line for each object, machine, volume and condition.
    pub fn summary(&self) -> String {
        let objects = self.api.all().map(|(_, object)| {
            let manifest = &object.manifest;
            let text = |pointer| super::manifest::text(manifest, pointer).unwrap_or("-");
            let going = text(super::manifest::DELETED) != "-";
            format!(
                "{}{} {} {} well={}",
                text(super::manifest::KEY),
                if going { " GOING" } else { "" },
                text(super::manifest::EXTERNAL_NAME),
                text("/status/atProvider/instanceState"),
                super::manifest::is_well(manifest)
            )
        });
        let vms = self.cloud.vms.iter().filter(|(_, vm)| !vm.is_over());
        let vms = vms.map(|(id, vm)| {
            let type_ = vm.made[0].as_deref().unwrap_or_default();
            format!("{id} {type_} {} {}", vm.state, vm.zone)
        });
        let volumes = self.cloud.volumes.iter();
        let volumes = volumes.map(|(id, v)| format!("{id} {:?} {}", v.attached, v.zone));
        let conditions = self.xr.conditions.values();
        let conditions =
            conditions.map(|c| format!("{} {} {}", c["type"], c["status"], c["message"]));
        let status = format!("{} {}", self.xr.parameters, self.xr.status);
        let xr = std::iter::once(status).chain(conditions);
        let all: Vec<String> = objects.chain(vms).chain(volumes).chain(xr).collect();
        format!("    {}", all.join("\n    "))
    }
}

/// The policy of the golden cases.
pub fn policy() -> Value {
    json!({
        "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
        "kind": "WorkspacePolicy",
        "behaviourVersion": "v3",
        "onDemand": "ProviderAws",
        "catalogue": {"name": "gpu-workspaces"},
        "defaults": {"capacityType": "SpotWithFallback", "sshCidrs": ["203.0.113.0/24"]},
        "allowedInstanceTypes": ["g4dn.*", "g5.*"],
        "instance": {"sudo": true},
        "refreshInterval": "5m"
    })
}

/// A catalogue of one region.
pub fn catalogue() -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1beta1",
        "kind": "EnvironmentConfig",
        "metadata": {"name": "gpu-workspaces"},
        "data": {
            "images": {"us-east-1": {"default": {
                "id": "ami-00000000000c0de01",
                "pytorch": {"version": "2.12.1", "python": "/opt/pytorch/bin/python3"}
            }}},
            "networks": {"us-east-1": {}},
            "owners": {"alice": {"publicKeys": [
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEfakefakefakefakefakefakefakefakefakefakefake a"
            ]}}
        }
    })
}

/// The claim's Namespace, with a label that names its owner.
pub fn namespace(owner: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"platform.acme.io/owner": owner}}
    })
}
