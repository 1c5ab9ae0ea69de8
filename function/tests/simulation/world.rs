//! Everything around one workspace.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::api_server::{Api, Id};
use super::cloud::Cloud;
use super::composite::Composite;
use super::{spot, upbound, usages};
use crate::dice::Dice;

/// The namespace that everything is in.
pub const NAMESPACE: &str = "team-vision";

/// A workspace's world.
pub struct World {
    /// Kubernetes.
    pub api: Api,
    /// EC2.
    pub cloud: Cloud,
    /// The workspace's XR.
    pub xr: Composite,
    /// The Composition's input; null where there is none.
    pub policy: Value,
    /// The `EnvironmentConfig`, where there is one.
    pub catalogue: Option<Value>,
    /// The claim's Namespace, as the API server shows it.
    pub namespace: Option<Value>,
    /// Chance.
    pub dice: Dice,
    /// What must never happen, and did.
    pub violations: Vec<String>,
    /// UIDs of what a person deleted.
    pub by_hand: BTreeSet<String>,
    /// Whether nobody could know of the first volume any more.
    pub has_lost_track: bool,
    /// Whether the XR's status was lost once.
    pub has_lost_status: bool,
    /// What happened, where somebody will read it.
    pub log: Option<Vec<String>>,
}

impl World {
    /// A world without a workspace's resources.
    pub fn new(seed: u64, parameters: Value, is_logged: bool) -> Self {
        Self {
            api: Api::default(),
            cloud: Cloud::default(),
            // Every other workspace has no claim.
            xr: Composite::new(parameters, seed.is_multiple_of(2)),
            policy: policy(),
            catalogue: Some(catalogue()),
            namespace: Some(namespace("alice")),
            dice: Dice::new(seed),
            violations: Vec::new(),
            by_hand: BTreeSet::new(),
            has_lost_track: false,
            has_lost_status: false,
            log: is_logged.then(Vec::new),
        }
    }

    /// Writes down what happened.
    pub fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(what());
        }
    }

    /// Something happened that never may.
    pub fn violate(&mut self, what: impl Into<String>) {
        let what = what.into();
        self.note(|| format!("VIOLATION: {what}"));
        self.violations.push(what);
    }

    /// An object's controller looks at it. Answers whether it wants to look again
    /// without being called.
    pub fn look(&mut self, id: &Id) -> bool {
        match id.kind.as_str() {
            "SpotPool" => spot::look(self, id),
            "Usage" => usages::look(self, id),
            "Secret" => false,
            _ => upbound::look(self, id),
        }
    }

    /// The ids of all objects.
    pub fn objects(&self) -> Vec<Id> {
        self.api.all().map(|(id, _)| id.clone()).collect()
    }

    /// One line about everything that exists.
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
        "behaviourVersion": "v1",
        "catalogue": {"name": "gpu-workspaces"},
        "defaults": {"capacityType": "SpotWithFallback", "sshCidrs": ["203.0.113.0/24"]},
        "allowedInstanceTypes": ["g4dn.*", "g5.*"],
        "instance": {"sudo": true},
        "refreshSeconds": 300
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
            "owners": {"alice": {"publicKeys": []}}
        }
    })
}

/// The claim's Namespace, which belongs to somebody.
pub fn namespace(owner: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"platform.acme.io/owner": owner}}
    })
}
