//! Rules that every answer about a workspace in the cluster must keep.

use crate::case::own_names::{home_of_pod, is_own};
use base64::Engine as _;
use function_runtime::response::{Response, Severity};
use serde_json::Value;

use crate::sight::{SET, Sight, status_of};

/// The broken rule, with what the test saw.
pub type Outcome = Result<(), String>;

/// An answer with its request.
pub struct Answer<'a> {
    /// The request in JSON.
    pub sight: Sight<'a>,
    /// The function's answer.
    pub response: &'a Response,
}

impl Answer<'_> {
    /// Returns the first broken rule.
    pub fn check(&self) -> Outcome {
        self.conditions()?;
        self.private_keys_stay_private()?;
        self.the_queue_of_the_pods_is_asked_for()?;
        if self.is_fatal() {
            return Ok(());
        }
        self.nothing_is_lost()?;
        self.nobody_is_thrown_out()?;
        self.objects()?;
        self.ready_means_that_one_can_log_in()
    }

    /// Whether the answer is a fatal result, so that Crossplane applies nothing.
    pub fn is_fatal(&self) -> bool {
        let mut events = self.response.events.iter();
        events.any(|event| event.severity == Severity::Fatal)
    }

    /// A desired resource.
    pub fn desired(&self, key: &str) -> Option<&Value> {
        let composed = self.response.desired.as_ref()?.resources.get(key)?;
        Some(&composed.object)
    }

    /// A field of the desired status.
    pub fn status(&self, field: &str) -> Option<&Value> {
        self.response.desired.as_ref()?.status.get(field)
    }

    /// The StatefulSet's record says whether its pods wait in a queue of Kueue. The function then
    /// requires the queue's Workloads, even if status is lost or the policy has no queue any more.
    fn the_queue_of_the_pods_is_asked_for(&self) -> Outcome {
        let asks_for = |name: &str| {
            let mut requirements = self.response.requirements.iter();
            requirements.any(|requirement| requirement.name == name)
        };
        let record = self.sight.record().unwrap_or_default();
        let is_queued = record.pointer("/pods/queue").is_some_and(Value::is_object);
        if is_queued && asks_for("pods") && !asks_for("workloads") {
            return Err("the pods are in a queue, and its Workloads are not required".to_owned());
        }
        Ok(())
    }

    /// The answer drops no composed resource. Only the StatefulSet may go, and only where `may_go`
    /// allows it.
    fn nothing_is_lost(&self) -> Outcome {
        for key in self.sight.keys() {
            if key == SET || self.desired(key).is_some() || !is_own(key) {
                continue;
            }
            return Err(format!("{key} is dropped"));
        }
        let Some(set) = self.sight.observed(SET) else {
            return self.homes();
        };
        let Some(desired) = self.desired(SET) else {
            return if self.sight.may_go() {
                self.homes()
            } else {
                Err("the StatefulSet is dropped".to_owned())
            };
        };
        let template = |of: &Value| {
            let template = of.pointer("/spec/volumeClaimTemplates/0")?;
            Some((
                template.pointer("/metadata/name").cloned(),
                template.get("spec").cloned(),
            ))
        };
        if template(set) != template(desired) {
            return Err("volumeClaimTemplates change, which Kubernetes refuses".to_owned());
        }
        self.homes()
    }

    fn homes(&self) -> Outcome {
        let composed = self.sight.keys().filter(|k| home_of_pod(k).is_some());
        for key in composed {
            let spec = |of: Option<&Value>| of.map(|home| home["spec"].clone());
            let desired = self.desired(key);
            if spec(desired) != spec(self.sight.observed(key)) {
                return Err(format!("{key} is changed"));
            }
        }
        Ok(())
    }

    /// Only a stop by the claim may end a pod in which a user works.
    fn nobody_is_thrown_out(&self) -> Outcome {
        let (replicas, _) = self.sight.replicas();
        let Some(desired) = self.desired(SET) else {
            return Ok(());
        };
        let wanted = desired["spec"]["replicas"].as_i64().unwrap_or(-1);
        let nodes = self.nodes();
        if wanted != 0 && wanted != replicas && Some(wanted) != nodes {
            return Err(format!("{wanted} replicas are neither all nor none"));
        }
        let may_end = !self.sight.is_to_run() || !self.sight.somebody_works();
        // A person may have scaled the StatefulSet by hand. So the rule compares with the recorded
        // number of nodes. What cannot be resolved stays as it is observed.
        let mut conditions = self.response.conditions.iter();
        let is_resolved = conditions.any(|c| c.type_ == "ConfigResolved" && c.holds());
        let is_kept = !is_resolved && wanted == replicas;
        let record = self.sight.record().unwrap_or_default();
        let made_for = record.pointer("/pods/nodes").and_then(Value::as_i64);
        let ends_one = wanted == 0 || made_for.is_some_and(|nodes| wanted < nodes);
        let is_at_work = self.sight.observed(SET).is_some() && !may_end && replicas > 0;
        if is_at_work && ends_one && !is_kept {
            return Err(format!(
                "{wanted} replicas while somebody works in {replicas}"
            ));
        }
        Ok(())
    }

    fn nodes(&self) -> Option<i64> {
        self.status("pods")?["nodes"].as_i64()
    }

    fn private_keys_stay_private(&self) -> Outcome {
        let secret = self.sight.observed("cluster-host-keys");
        let data = secret
            .and_then(|s| s.get("data"))
            .and_then(Value::as_object);
        let holds = |text: &str| text.len() > 8 && self.texts().any(|said| said.contains(text));
        let private = data.into_iter().flatten().filter(|(name, _)| {
            let name = std::path::Path::new(name);
            name.extension().is_none_or(|extension| extension != "pub")
        });
        for (name, value) in private {
            let encoded = value.as_str().unwrap_or_default();
            let decoded = base64::engine::general_purpose::STANDARD.decode(encoded);
            let decoded = String::from_utf8(decoded.unwrap_or_default()).unwrap_or_default();
            if holds(encoded) || holds(&decoded) {
                return Err(format!("the Secret's {name} is in the answer"));
            }
        }
        let desired = self.desired("cluster-host-keys");
        if desired.is_some_and(|secret| secret.get("data").is_some()) {
            return Err("the Secret's data is desired".to_owned());
        }
        Ok(())
    }

    /// Crossplane can apply each composed resource, and no resource carries metadata of other
    /// controllers.
    fn objects(&self) -> Outcome {
        let desired = self.response.desired.as_ref().map(|d| &d.resources);
        for (key, composed) in desired.into_iter().flatten() {
            let object = &composed.object;
            if object.get("status").is_some() || !is_own(key) {
                return Err(format!("{key} has a status, or is nobody's"));
            }
            let metadata = object["metadata"].as_object().cloned().unwrap_or_default();
            let known = ["name", "namespace", "labels", "annotations"];
            if let Some(field) = metadata.keys().find(|f| !known.contains(&f.as_str())) {
                return Err(format!("{key} has metadata.{field}"));
            }
            let text = object["metadata"].to_string();
            if text.contains("argocd.") || text.contains("crossplane.io/") {
                return Err(format!("{key} has others' metadata: {text}"));
            }
        }
        let set = self.desired(SET);
        let template = set.and_then(|set| set.pointer("/spec/template/metadata"));
        match template
            .map(Value::to_string)
            .filter(|text| text.contains("kueue.x-k8s.io/") || text.contains("argocd"))
        {
            Some(text) => Err(format!("the pod template has others' keys: {text}")),
            None => Ok(()),
        }
    }

    fn ready_means_that_one_can_log_in(&self) -> Outcome {
        let desired = self.response.desired.as_ref();
        if desired.is_none_or(|desired| desired.ready != Some(true)) {
            return Ok(());
        }
        let set = self.sight.observed(SET).cloned().unwrap_or_default();
        let number = |pointer: &str| set.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
        let nodes = self.nodes().unwrap_or_else(|| number("/spec/replicas"));
        if number("/status/readyReplicas") < nodes
            || number("/status/observedGeneration") < number("/metadata/generation")
        {
            return Err("Ready, and the StatefulSet is not".to_owned());
        }
        let named = |found: &[&Value], name: &str| -> Option<Value> {
            let mut found = found.iter().filter(|o| o["metadata"]["name"] == name);
            found.next().map(|o| (*o).clone())
        };
        let set_name = set["metadata"]["name"].as_str().unwrap_or_default();
        let has_home = set.pointer("/spec/volumeClaimTemplates/0").is_some();
        for node in 0..nodes {
            let name = format!("{set_name}-{node}");
            let pods = self.sight.found("pods");
            let is_ready = pods.is_none_or(|pods| {
                named(&pods, &name).is_some_and(|pod| {
                    status_of(&pod, "Ready") == Some("True")
                        && pod.pointer("/metadata/deletionTimestamp").is_none()
                })
            });
            let is_bound = self.sight.found("homes").is_none_or(|homes| {
                let home = named(&homes, &format!("home-{name}"));
                home.is_some_and(|home| home["status"]["phase"] == "Bound")
            });
            if !is_ready || (has_home && !is_bound) {
                return Err(format!("Ready, and {name} or its home is not"));
            }
        }
        let keys = self.status("hostKeys").and_then(Value::as_array);
        let has_key = keys.is_some_and(|keys| !keys.is_empty());
        let is_ready = self.status("phase").is_some_and(|phase| phase == "Ready");
        if is_ready && has_key && self.status("ssh").is_some() {
            Ok(())
        } else {
            Err("Ready without its phase, a host key or its line".to_owned())
        }
    }

    /// All texts of the answer, except the pods' programs.
    fn texts(&self) -> impl Iterator<Item = String> {
        let desired = self.response.desired.iter();
        let objects = desired.clone().flat_map(|desired| &desired.resources);
        let objects = objects.filter(|(key, _)| *key != "cluster-files");
        let status = desired.clone().flat_map(|desired| desired.status.values());
        let connection = desired.flat_map(|desired| desired.connection.values());
        let conditions = self.response.conditions.iter().map(|c| c.message.clone());
        let events = self.response.events.iter().map(|e| e.message.clone());
        objects
            .map(|(_, composed)| composed.object.to_string())
            .chain(status.map(Value::to_string))
            .chain(connection.cloned())
            .chain(conditions)
            .chain(events)
    }

    fn conditions(&self) -> Outcome {
        let mut types = Vec::new();
        for condition in &self.response.conditions {
            let name = condition.type_;
            let is_word = condition.reason.chars().all(|c| c.is_ascii_alphanumeric())
                && condition
                    .reason
                    .starts_with(|c: char| c.is_ascii_uppercase());
            if types.contains(&name) || !is_word {
                return Err(format!("condition {condition:?}"));
            }
            if !condition.holds() && condition.message.trim().is_empty() {
                return Err(format!("{name} does not say why"));
            }
            if condition.message.contains("10:00:05") {
                return Err(format!("{name} tells a time: {}", condition.message));
            }
            types.push(name);
        }
        match types.as_slice() {
            ["ConfigResolved", "ComputeReady", ..] => Ok(()),
            _ => Err(format!("conditions {types:?}")),
        }
    }
}
