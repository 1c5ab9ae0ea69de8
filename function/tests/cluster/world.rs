//! Simulates a namespace with one workspace, and Crossplane's reconcile of that workspace.

use std::collections::{BTreeMap, BTreeSet};

use crate::case::own_names::home_of_pod;
use function_gpu_workspace::kinds::render;
use function_runtime::json::Json;
use function_runtime::request::Request;
use function_runtime::requirement::{Requirement, Selector};
use function_runtime::response::{Response, Severity};
use serde_json::{Value, json};

use crate::case;
use crate::dice::Dice;
use crate::kubernetes::{Refused, webhook};
use crate::sight::SET;

#[derive(Clone, Debug, Default)]
pub struct Pod {
    /// The UID of the pod's StatefulSet.
    pub set: u64,
    /// The image in the template from which the pod was made.
    pub image: String,
    /// Whether Kueue's scheduling gate still holds the pod back.
    pub gated: bool,
    /// The pod's progress: 0 made, 1 on a machine, 2 running, 3 ready.
    pub progress: u8,
    /// Whether the pod is being deleted.
    pub ending: bool,
}

impl Pod {
    fn object(&self, name: &str) -> Value {
        let is_bad = self.image.ends_with("bad");
        let state = match (self.progress, is_bad) {
            (0 | 1, _) => json!({"waiting": {"reason": "ContainerCreating"}}),
            (_, true) => json!({"waiting": {"reason": "ImagePullBackOff", "message": "none"}}),
            (_, false) => json!({"running": {}}),
        };
        let is_ready = self.progress == 3 && !is_bad;
        let ready = if is_ready { "True" } else { "False" };
        let gates = if self.gated { json!([{}]) } else { json!([]) };
        let mut object = json!({
            "metadata": {
                "name": name,
                "namespace": "dev-alice",
                "labels": {"platform.acme.io/cluster-workspace": workspace(name)},
                "ownerReferences": [{
                    "kind": "StatefulSet",
                    "name": workspace(name),
                    "uid": format!("u-{}", self.set),
                    "controller": true,
                }],
            },
            "spec": {"schedulingGates": gates},
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "containerStatuses": [{"name": "workspace", "state": state}],
            }
        });
        if self.ending {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-20T10:00:05Z");
        }
        object
    }
}

/// A Workload of Kueue.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// The UID of the Workload's StatefulSet.
    pub set: u64,
    /// `Pending`, `OnHold` or `QuotaReserved`.
    pub state: &'static str,
}

/// The state of the simulation.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The claim's parameters.
    pub parameters: Value,
    /// The Composition's input.
    pub policy: Value,
    /// The flavor's spec, where it exists.
    pub flavor: Option<Value>,
    /// The XR's status.
    pub status: Value,
    /// The composed resources by composition resource name, without the StatefulSet and the homes.
    pub objects: BTreeMap<String, Value>,
    /// The StatefulSet.
    pub set: Option<Value>,
    /// The pods of the `StatefulSet` by name.
    pub pods: BTreeMap<String, Pod>,
    /// The `PersistentVolumeClaims` of the homes by name. Their status says whether a volume is
    /// bound.
    pub homes: BTreeMap<String, Value>,
    /// The homes that Crossplane deletes with the composite: their names by composition resource
    /// name.
    pub composed_homes: BTreeMap<String, String>,
    /// Kueue's Workloads.
    pub workloads: Vec<Workload>,
    /// Whether there is quota.
    pub has_quota: bool,
    /// Whether the policy ever said that a home is deleted with its claim.
    pub ever_deletes: bool,
    /// Whether the composite is namespaced, without a claim.
    pub is_namespaced: bool,
    /// The last UID that was given to a StatefulSet.
    pub uids: u64,
    /// The outcome of the last reconcile.
    pub last: String,
}

impl World {
    /// The StatefulSet's UID.
    pub fn set_uid(&self) -> Option<u64> {
        let uid = self.set.as_ref()?["metadata"]["uid"].as_str()?;
        uid.strip_prefix("u-")?.parse().ok()
    }

    /// Whether the claim wants the workspace to run.
    pub fn is_to_run(&self) -> bool {
        self.parameters["lifecycle"]["state"] != "Stopped"
    }

    fn objects_of(&self, requirement: &Requirement) -> Vec<Value> {
        let none = Vec::new;
        match (requirement.kind, &requirement.selector) {
            ("EnvironmentConfig", _) => vec![json!({"data": {"images": {}}})],
            ("WorkspaceFlavor", _) => {
                let flavor = self.flavor.iter();
                flavor.map(|spec| json!({"spec": spec})).collect()
            }
            ("Pod", selector) => {
                let pods = self.pods.iter().map(|(n, p)| p.object(n));
                pods.filter(|pod| is_selected(pod, selector)).collect()
            }
            ("PersistentVolumeClaim", selector) => {
                let homes = self.homes.values();
                homes
                    .filter(|home| is_selected(home, selector))
                    .cloned()
                    .collect()
            }
            ("StatefulSet", selector) => {
                let set = self.set.iter();
                set.filter(|set| is_selected(set, selector))
                    .cloned()
                    .collect()
            }
            ("Workload", Selector::Labelled { value, .. }) => {
                let all = self.workloads.iter();
                let mine = all.filter(|w| format!("u-{}", w.set) == *value);
                mine.map(workload).collect()
            }
            ("Workload", _) => self.workloads.iter().map(workload).collect(),
            ("LocalQueue", _) => ["a", "b"]
                .map(|name| {
                    json!({
                        "metadata": {"name": name, "namespace": "dev-alice"},
                        "spec": {"clusterQueue": "gpus"}
                    })
                })
                .into(),
            _ => none(),
        }
    }

    fn request(&self) -> Request<'static> {
        let mut observed = self.objects.clone();
        observed.extend(self.set.clone().map(|set| (SET.to_owned(), set)));
        for (key, name) in &self.composed_homes {
            observed.extend(self.homes.get(name).map(|home| (key.clone(), home.clone())));
        }
        let legacy = json!({"observed": {"composite": {"resource": {
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": "GpuDevWorkspace",
            "metadata": {"name": "alice-x7k2p", "uid": "xr"},
            "spec": {
                "claimRef": {"namespace": "dev-alice", "name": "alice"},
                "parameters": self.parameters,
            },
            "status": self.status,
        }}}});
        let namespaced = case::namespaced(&legacy).filter(|_| self.is_namespaced);
        let whole = namespaced.unwrap_or(legacy);
        Request {
            policy: Some(self.policy.clone()),
            composite: (whole.pointer("/observed/composite/resource").cloned()).map(Json::from),
            observed: (observed.into_iter())
                .map(|(key, object)| (key, object.into()))
                .collect(),
            now: case::now(),
            ..Request::default()
        }
    }

    /// Calls the function as Crossplane does: again after each fetch, until the requirements no
    /// longer change.
    fn answer(&self) -> Result<Response, String> {
        let mut request = self.request();
        let mut asked = Vec::new();
        for _ in 0..5 {
            let response = render(&request);
            if is_fatal(&response) || response.requirements == asked {
                return Ok(response);
            }
            asked.clone_from(&response.requirements);
            let found = asked.iter().map(|r| {
                let found = self.objects_of(r).into_iter().map(Json::from);
                (r.name.clone(), found.collect())
            });
            request.required = found.collect();
        }
        Err("the requirements do not become stable".to_owned())
    }

    /// Reconciles once. With `is_cut_short`, Crossplane may end in the middle of the reconcile.
    pub fn reconcile(&mut self, dice: &mut Dice, is_cut_short: bool) -> Result<(), String> {
        self.ever_deletes |= self.policy["home"]["onDelete"] == "Delete";
        let response = self.answer()?;
        if is_fatal(&response) {
            "refused".clone_into(&mut self.last);
            return Ok(());
        }
        let desired = response.desired.ok_or("nothing is desired")?;
        let mut objects: Vec<(String, Value)> = desired
            .resources
            .into_iter()
            .map(|(key, composed)| (key, composed.object))
            .collect();
        self.collect(&objects.iter().map(|(key, _)| key.clone()).collect())?;
        while !objects.is_empty() {
            if is_cut_short && dice.percent(15) {
                "cut short".clone_into(&mut self.last);
                return Ok(());
            }
            let (key, object) = objects.swap_remove(dice.below(objects.len()));
            if let Err(Refused(why)) = self.apply(&key, object)? {
                // Crossplane ends the reconcile at once, and writes no status.
                self.last = format!("refused by Kueue: {why}");
                return Ok(());
            }
        }
        self.status = json!(desired.status);
        "applied".clone_into(&mut self.last);
        Ok(())
    }

    /// Deletes the composed resources that are no longer desired.
    fn collect(&mut self, desired: &BTreeSet<String>) -> Result<(), String> {
        if let Some(home) = self.composed_homes.keys().find(|k| !desired.contains(*k)) {
            return Err(format!("{home} is deleted, and the claim exists"));
        }
        self.objects.retain(|key, _| desired.contains(key));
        if !desired.contains(SET)
            && let Some(set) = &mut self.set
        {
            set["metadata"]["deletionTimestamp"] = json!("2026-11-20T10:00:05Z");
            self.nobody_is_thrown_out("the StatefulSet is deleted")?;
        }
        Ok(())
    }

    fn apply(&mut self, key: &str, object: Value) -> Result<Result<(), Refused>, String> {
        if home_of_pod(key).is_some() {
            let name = object["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            self.homes.entry(name.clone()).or_insert_with(|| object);
            self.composed_homes.insert(key.to_owned(), name);
        } else if key == SET {
            return self.apply_set(object);
        } else if !self.objects.contains_key(key) || key != "cluster-host-keys" {
            self.objects.insert(key.to_owned(), object);
        }
        Ok(Ok(()))
    }

    fn apply_set(&mut self, mut object: Value) -> Result<Result<(), Refused>, String> {
        let Some(old) = &self.set else {
            self.uids += 1;
            object["metadata"]["uid"] = json!(format!("u-{}", self.uids));
            object["metadata"]["generation"] = json!(1);
            self.set = Some(object);
            return Ok(Ok(()));
        };
        let homes = |of: &Value| of.pointer("/spec/volumeClaimTemplates/0/spec").cloned();
        if homes(old) != homes(&object) {
            return Err("volumeClaimTemplates are changed".to_owned());
        }
        if let Err(refused) = webhook(old, &object, &self.workloads) {
            return Ok(Err(refused));
        }
        let mut generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        generation += i64::from(old["spec"] != object["spec"]);
        object["metadata"]["generation"] = json!(generation);
        for field in ["uid", "deletionTimestamp"] {
            if let Some(value) = old["metadata"].get(field) {
                object["metadata"][field] = value.clone();
            }
        }
        object["status"] = old["status"].clone();
        let fewer = object["spec"]["replicas"].as_i64() < old["spec"]["replicas"].as_i64();
        self.set = Some(object);
        if fewer {
            self.nobody_is_thrown_out("replicas go")?;
        }
        Ok(Ok(()))
    }

    fn nobody_is_thrown_out(&self, how: &str) -> Result<(), String> {
        let works = |pod: &Pod| pod.progress >= 2 && !pod.ending && !pod.image.ends_with("bad");
        let worker = self.pods.iter().find(|(_, pod)| works(pod));
        match worker {
            Some((name, _)) if self.is_to_run() => {
                Err(format!("{how} while somebody works in {name}"))
            }
            _ => Ok(()),
        }
    }
}

fn is_fatal(response: &Response) -> bool {
    let mut events = response.events.iter();
    events.any(|event| event.severity == Severity::Fatal)
}

/// Whether Crossplane finds an object of the simulated namespace by this selector.
fn is_selected(object: &Value, selector: &Selector) -> bool {
    match selector {
        Selector::NamedIn { name, .. } => object["metadata"]["name"] == **name,
        Selector::Labelled { key, value, .. } => object["metadata"]["labels"][key] == **value,
        _ => true,
    }
}

/// The name of the StatefulSet of a pod.
fn workspace(pod: &str) -> &str {
    pod.rsplit_once('-').map_or(pod, |(set, _)| set)
}

fn workload(workload: &Workload) -> Value {
    let reserved = workload.state == "QuotaReserved";
    let status = |holds: bool| if holds { "True" } else { "False" };
    json!({
        "metadata": {
            "namespace": "dev-alice",
            "uid": format!("w-{}", workload.set),
            "labels": {"kueue.x-k8s.io/job-uid": format!("u-{}", workload.set)},
        },
        "spec": {"queueName": "a", "priority": 0, "active": true},
        "status": {"conditions": [
            {"type": "QuotaReserved", "status": status(reserved), "reason": workload.state,
             "message": "so it is"},
            {"type": "Admitted", "status": status(reserved), "reason": "Admitted"},
        ]}
    })
}
