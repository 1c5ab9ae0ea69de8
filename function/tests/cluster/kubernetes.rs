//! A simulation of Kubernetes' controllers and of Kueue 0.19. Kueue's behaviour was taken from its
//! source and from a real cluster.

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::world::{Pod, Workload, World};

const QUEUE: &str = "kueue.x-k8s.io/queue-name";
const CLASS: &str = "kueue.x-k8s.io/priority-class";

/// A request that an admission webhook refuses, with the reason.
#[derive(Debug)]
pub struct Refused(pub &'static str);

fn label<'a>(set: &'a Value, key: &str) -> &'a str {
    set["metadata"]["labels"][key].as_str().unwrap_or_default()
}

fn replicas(set: &Value) -> i64 {
    set["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// The fields of the pod template that Kueue counts.
fn shape(set: &Value) -> Value {
    let spec = &set["spec"]["template"]["spec"];
    let resources = |list: &str| {
        let containers = spec[list].as_array().into_iter().flatten();
        containers
            .map(|c| c["resources"]["requests"].clone())
            .collect::<Vec<_>>()
    };
    json!([
        resources("containers"),
        resources("initContainers"),
        spec["nodeSelector"],
        spec["tolerations"],
        spec["runtimeClassName"],
    ])
}

/// Kueue's validating webhook of `StatefulSets`.
pub fn webhook(old: &Value, new: &Value, workloads: &[Workload]) -> Result<(), Refused> {
    let (was, is) = (label(old, QUEUE), label(new, QUEUE));
    let is_ready = old["status"]["readyReplicas"].as_i64().unwrap_or_default() > 0;
    if was != is && (is_ready || is.is_empty()) {
        return Err(Refused("the queue's name is immutable"));
    }
    let (had, has) = (label(old, CLASS), label(new, CLASS));
    if has.is_empty() && !had.is_empty() {
        return Err(Refused("the priority class cannot be removed"));
    }
    if is_ready && had.is_empty() && !has.is_empty() {
        return Err(Refused("the priority class cannot be added"));
    }
    if is.is_empty() {
        return Ok(());
    }
    if shape(old) != shape(new) {
        return Err(Refused("the pods' shape is immutable"));
    }
    match (replicas(old), replicas(new)) {
        (before, after) if before != after && before != 0 && after != 0 => {
            Err(Refused("replicas are immutable"))
        }
        (0, after) if after > 0 => {
            let uid = old["metadata"]["uid"].as_str().unwrap_or_default();
            let mut mine = workloads.iter();
            let mut mine = mine.by_ref().filter(|w| format!("u-{}", w.set) == uid);
            if old["status"]["replicas"].as_i64().unwrap_or_default() > 0 {
                Err(Refused("scaling down is still in progress"))
            } else if mine.any(|workload| workload.state != "OnHold") {
                Err(Refused(
                    "workload from previous scale-down is still being deleted",
                ))
            } else {
                Ok(())
            }
        }
        _ => Ok(()),
    }
}

impl World {
    /// Lets the controllers act once.
    pub fn tick(&mut self, dice: &mut Dice) {
        self.stateful_set();
        self.kueue();
        let secret = self.objects.get_mut("cluster-host-keys");
        let is_made = secret.is_some();
        let mut made_keys = false;
        self.pods.retain(|name, pod| {
            if pod.ending {
                return dice.percent(30);
            }
            let is_let_in = self
                .workloads
                .iter()
                .any(|w| w.set == pod.set && w.state == "QuotaReserved");
            pod.gated &= !is_let_in;
            if !pod.gated && is_made && pod.progress < 3 && dice.percent(70) {
                pod.progress += 1;
                made_keys |= pod.progress == 2;
                if let Some(home) = self.homes.get_mut(&format!("home-{name}")) {
                    home["status"]["phase"] = json!("Bound");
                }
            }
            true
        });
        if let Some(secret) = secret.filter(|_| made_keys) {
            let key = "c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUhvc3Rob3N0aG9zdGhvc3Rob3N0aG9zdGhvc3Rob3N0aG9zdGhvc3Rob3MgYWxpY2U=";
            secret["data"] = json!({"ssh_host_ed25519_key.pub": key});
        }
    }

    fn stateful_set(&mut self) {
        let Some(uid) = self.set_uid() else {
            return;
        };
        let Some(mut set) = self.set.take() else {
            return;
        };
        let is_ending = set["metadata"].get("deletionTimestamp").is_some();
        let wanted = if is_ending { 0 } else { replicas(&set) };
        let name = set["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let is_queued = !label(&set, QUEUE).is_empty();
        for node in 0..wanted {
            let pod = format!("{name}-{node}");
            if let Some(template) = set.pointer("/spec/volumeClaimTemplates/0") {
                self.homes.entry(format!("home-{pod}")).or_insert_with(|| {
                    let mut home = template.clone();
                    home["metadata"]["name"] = json!(format!("home-{pod}"));
                    home
                });
            }
            let image = &set["spec"]["template"]["spec"]["containers"][0]["image"];
            self.pods.entry(pod).or_insert_with(|| Pod {
                set: uid,
                image: image.as_str().unwrap_or_default().to_owned(),
                gated: is_queued,
                ..Pod::default()
            });
        }
        for (pod, state) in &mut self.pods {
            let node = pod
                .rsplit_once('-')
                .and_then(|(_, node)| node.parse::<i64>().ok());
            state.ending |= state.set == uid && node.is_none_or(|node| node >= wanted);
        }
        let mine = || self.pods.values().filter(|pod| pod.set == uid);
        let ready = mine().filter(|p| p.progress == 3 && !p.ending && !p.image.ends_with("bad"));
        set["status"] = json!({
            "observedGeneration": set["metadata"]["generation"],
            "replicas": mine().count(),
            "readyReplicas": ready.count(),
        });
        if !is_ending || mine().next().is_some() {
            self.set = Some(set);
        }
    }

    fn kueue(&mut self) {
        let uid = self.set_uid();
        self.workloads.retain(|workload| Some(workload.set) == uid);
        let (Some(uid), Some(set)) = (uid, &self.set) else {
            return;
        };
        if label(set, QUEUE).is_empty() {
            return;
        }
        let replicas = replicas(set);
        if self.workloads.is_empty() && replicas > 0 {
            let state = "Pending";
            self.workloads.push(Workload { set: uid, state });
        }
        for workload in &mut self.workloads {
            workload.state = match (workload.state, replicas, self.has_quota) {
                ("QuotaReserved", 0, _) => "OnHold",
                ("OnHold", 1.., _) => "Pending",
                ("Pending", _, true) => "QuotaReserved",
                (state, _, _) => state,
            };
        }
    }

    /// A more important workspace preempts this one and takes its quota.
    pub fn preempt(&mut self) {
        let reserved = self
            .workloads
            .iter_mut()
            .find(|w| w.state == "QuotaReserved");
        if let Some(workload) = reserved {
            workload.state = "Pending";
            self.has_quota = false;
            self.pods.values_mut().for_each(|pod| pod.ending = true);
        }
    }
}
