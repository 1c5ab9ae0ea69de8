//! The observed and required resources of a workspace in the cluster.

use std::collections::BTreeMap;

use api::condition::READY;
use function_runtime::json::Json;
use function_runtime::object::ObservedObject;
use function_runtime::request::Request;
use function_workspace::labels::OWNER_LABEL;

use crate::{identity, names, resource_names};

/// The name of the container in which the owner works.
pub const CONTAINER: &str = "workspace";
/// The name of the init container that prepares the host keys.
pub const PREPARE: &str = "prepare";

/// The observed and required resources.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The composed resources, by composition resource name.
    pub observed: &'a BTreeMap<String, Json<'a>>,
    pods: Option<&'a [Json<'a>]>,
    homes: Option<&'a [Json<'a>]>,
    earlier_homes: &'a [Json<'a>],
    required: &'a BTreeMap<String, Vec<Json<'a>>>,
    /// The Workloads of Kueue in the namespace; `None` if they are not required or not fetched yet.
    pub workloads: Option<&'a [Json<'a>]>,
}

impl<'a> Seen<'a> {
    /// Reads a request.
    pub fn new(request: &'a Request<'a>) -> Self {
        let list = |name: &str| request.required.get(name).map(Vec::as_slice);
        Self {
            observed: &request.observed,
            pods: list(names::PODS),
            homes: list(names::HOMES),
            required: &request.required,
            earlier_homes: list(names::EARLIER_HOMES).unwrap_or_default(),
            workloads: list(names::WORKLOADS),
        }
    }

    /// The observed StatefulSet; none if it does not exist.
    pub fn stateful_set(self) -> Option<StatefulSet<'a>> {
        self.observed
            .get(resource_names::STATEFUL_SET)
            .map(StatefulSet)
    }

    /// The existing pods, in no particular order. A pod with the workspace's label that another
    /// object made is not one of them.
    pub fn pods(self) -> impl Iterator<Item = Pod<'a>> {
        let pods = self.pods.unwrap_or_default().iter().map(Pod::new);
        pods.filter(|pod| pod.is_of_workspace())
    }

    /// Whether Crossplane has fetched the pods.
    pub fn knows_pods(self) -> bool {
        self.pods.is_some()
    }

    /// The pod with this name. If there is a StatefulSet, a pod of an earlier one does not count.
    pub fn pod(self, name: &str) -> Option<Pod<'a>> {
        let set = self.stateful_set().map(StatefulSet::uid);
        self.pods()
            .find(|pod| pod.name() == name && set.is_none_or(|uid| pod.made_by() == Some(uid)))
    }

    /// The `PersistentVolumeClaim`s with the workspace's label, in no particular order.
    pub fn homes(self) -> impl Iterator<Item = VolumeClaim<'a>> {
        let homes = self.homes.unwrap_or_default().iter();
        homes.chain(self.earlier_homes).map(VolumeClaim)
    }

    /// Whether Crossplane has fetched the homes.
    pub fn knows_homes(self) -> bool {
        self.homes.is_some()
    }

    /// The home with this name.
    pub fn home(self, name: &str) -> Option<VolumeClaim<'a>> {
        self.homes().find(|home| home.name() == name)
    }

    /// Whether the home with this name is a composed resource.
    pub fn composes_home(self, name: &str) -> bool {
        let mut composed = self.observed.iter();
        composed.any(|(key, home)| {
            resource_names::home_of_pod(key).is_some() && VolumeClaim(home).name() == name
        })
    }

    /// The objects that Crossplane fetched for a requirement; none before that.
    pub fn existing(self, requirement: &str) -> impl Iterator<Item = &'a Json<'a>> {
        self.required.get(requirement).into_iter().flatten()
    }

    /// The public host key in base64; none until a pod has created it.
    pub fn host_key(self) -> Option<&'a str> {
        let secret = self.observed.get(resource_names::HOST_KEYS)?;
        text(secret, &["data", identity::PUBLIC_HOST_KEY])
    }
}

/// An observed `StatefulSet`.
#[derive(Clone, Copy, Debug)]
pub struct StatefulSet<'a>(&'a Json<'a>);

impl<'a> StatefulSet<'a> {
    /// The UID. A later StatefulSet with the same name has another UID.
    pub fn uid(self) -> &'a str {
        text(self.0, &["metadata", "uid"]).unwrap_or_default()
    }

    /// The annotation with this key.
    pub fn annotation(self, key: &str) -> Option<&'a str> {
        text(self.0, &["metadata", "annotations", key])
    }

    /// Whether the StatefulSet is being deleted.
    pub fn is_ending(self) -> bool {
        ObservedObject::new(self.0).deleting()
    }

    /// The desired number of pods.
    pub fn replicas(self) -> i64 {
        number(self.0, &["spec", "replicas"])
    }

    /// The current number of pods, including pods that are being deleted.
    pub fn current(self) -> i64 {
        number(self.0, &["status", "replicas"])
    }

    /// The number of ready pods; 0 while the status is older than the spec.
    pub fn ready(self) -> i64 {
        let observed = number(self.0, &["status", "observedGeneration"]);
        if observed < number(self.0, &["metadata", "generation"]) {
            return 0;
        }
        number(self.0, &["status", "readyReplicas"])
    }

    /// The volume claim template of the homes, which cannot change.
    pub fn home_template(self) -> Option<&'a Json<'a>> {
        self.0.pointer("/spec/volumeClaimTemplates/0")
    }
}

/// An observed pod.
#[derive(Clone, Copy, Debug)]
pub struct Pod<'a>(&'a Json<'a>);

/// The state of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing<'a> {
    /// The container waits.
    Waiting {
        /// Why kubelet has not started the container.
        why: Waiting,
        /// The message of kubelet.
        message: &'a str,
    },
    /// It runs.
    Running,
    /// The container has ended.
    Ended(Ended<'a>),
    /// The status does not say.
    Unknown,
}

/// Why kubelet has not started a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The container ended repeatedly, and kubelet waits before its next attempt.
    CrashLoop,
    /// The image cannot be pulled.
    Image,
    /// The container cannot be created, for example because a ConfigMap is missing.
    Creation,
    /// The container starts normally.
    Start,
}

impl Waiting {
    /// Maps the reasons of kubelet (`pkg/kubelet/container/sync_result.go` and
    /// `pkg/kubelet/images/types.go` of Kubernetes).
    fn of(reason: &str) -> Self {
        match reason {
            "CrashLoopBackOff" => Self::CrashLoop,
            "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
                Self::Image
            }
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                Self::Creation
            }
            _ => Self::Start,
        }
    }
}

/// How a container ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended<'a> {
    /// The exit status.
    pub code: i64,
    /// Whether Kubernetes reports that the container ran out of memory (`OOMKilled`).
    pub out_of_memory: bool,
    /// The termination message. kubelet uses the end of the log if there is none.
    pub message: &'a str,
}

impl<'a> Pod<'a> {
    /// Wraps an observed pod.
    pub fn new(observed: &'a Json<'a>) -> Self {
        Self(observed)
    }

    /// The memory limit of a container.
    pub fn memory_limit(self, container: &str) -> Option<&'a str> {
        let containers = self.0.get("spec")?.get("containers")?.as_list()?;
        let mut containers = containers.iter();
        let named = containers.find(|c| text(c, &["name"]) == Some(container))?;
        text(named, &["resources", "limits", "memory"])
    }

    /// The name of the pod.
    pub fn name(self) -> &'a str {
        ObservedObject::new(self.0).name()
    }

    /// Whether the StatefulSet of the workspace, or an earlier one with its name, made the pod. A
    /// StatefulSet controls its pods, and the label of the workspace has its name.
    fn is_of_workspace(self) -> bool {
        let object = ObservedObject::new(self.0);
        object.controller().is_some_and(|controller| {
            controller.kind == "StatefulSet"
                && object.label(names::WORKSPACE_LABEL) == Some(controller.name)
        })
    }

    /// The UID of the object that made the pod.
    fn made_by(self) -> Option<&'a str> {
        let controller = ObservedObject::new(self.0).controller();
        controller.map(|controller| controller.uid)
    }

    /// The IP address of the pod.
    pub fn ip(self) -> Option<&'a str> {
        text(self.0, &["status", "podIP"])
    }

    /// Whether the pod is being deleted.
    pub fn is_ending(self) -> bool {
        ObservedObject::new(self.0).deleting()
    }

    /// Whether the pod is ready, so that the owner can log in.
    pub fn is_ready(self) -> bool {
        !self.is_ending() && ObservedObject::new(self.0).holds(READY)
    }

    /// Whether the owner may work in the pod: its container runs.
    pub fn has_started(self) -> bool {
        self.container(CONTAINER) == Doing::Running
    }

    /// Whether the pod holds resources of a node, and so costs money: it does so before its container
    /// runs, and also if that never runs.
    pub fn holds_node(self) -> bool {
        let text = |path| self.0.pointer(path).and_then(Json::as_str);
        let is_over = matches!(text("/status/phase"), Some("Succeeded" | "Failed"));
        text("/spec/nodeName").is_some_and(|node| !node.is_empty()) && !is_over
    }

    /// Whether the pod has scheduling gates, for example of Kueue.
    pub fn is_gated(self) -> bool {
        let gates = self
            .0
            .pointer("/spec/schedulingGates")
            .and_then(Json::as_list);
        gates.is_some_and(|gates| !gates.is_empty())
    }

    /// Why no node can run the pod.
    pub fn unschedulable(self) -> Option<&'a str> {
        let scheduled = ObservedObject::new(self.0).failing("PodScheduled")?;
        (scheduled.reason == "Unschedulable").then_some(scheduled.message)
    }

    /// The current state of a container.
    pub fn container(self, name: &str) -> Doing<'a> {
        self.state(name, "state")
    }

    /// How the container's last run ended.
    pub fn last_run(self, name: &str) -> Doing<'a> {
        self.state(name, "lastState")
    }

    fn state(self, name: &str, which: &str) -> Doing<'a> {
        let Some(state) = self.status_of(name).and_then(|status| status.get(which)) else {
            return Doing::Unknown;
        };
        if let Some(waiting) = state.get("waiting") {
            return Doing::Waiting {
                why: Waiting::of(text(waiting, &["reason"]).unwrap_or_default()),
                message: text(waiting, &["message"]).unwrap_or_default(),
            };
        }
        if let Some(ended) = state.get("terminated") {
            return Doing::Ended(Ended {
                code: number(ended, &["exitCode"]),
                out_of_memory: text(ended, &["reason"]) == Some("OOMKilled"),
                message: text(ended, &["message"]).unwrap_or_default().trim(),
            });
        }
        match state.get("running") {
            Some(_) => Doing::Running,
            None => Doing::Unknown,
        }
    }

    fn status_of(self, name: &str) -> Option<&'a Json<'a>> {
        ["initContainerStatuses", "containerStatuses"]
            .into_iter()
            .filter_map(|list| self.0.get("status")?.get(list)?.as_list())
            .flatten()
            .find(|status| text(status, &["name"]) == Some(name))
    }
}

/// An observed `PersistentVolumeClaim` of a home.
#[derive(Clone, Copy, Debug)]
pub struct VolumeClaim<'a>(&'a Json<'a>);

impl<'a> VolumeClaim<'a> {
    /// Wraps an observed `PersistentVolumeClaim`.
    pub fn new(observed: &'a Json<'a>) -> Self {
        Self(observed)
    }

    /// The observed object.
    pub fn object(self) -> &'a Json<'a> {
        self.0
    }

    /// The name of the `PersistentVolumeClaim`.
    pub fn name(self) -> &'a str {
        ObservedObject::new(self.0).name()
    }

    /// `namespace/name`; none if it is longer than Kubernetes allows.
    pub fn namespaced_name(self) -> Option<String> {
        const LONGEST: usize = 63 + "/".len() + 253;
        let namespace = text(self.0, &["metadata", "namespace"])?;
        let name = format!("{namespace}/{}", self.name());
        (name.len() <= LONGEST).then_some(name)
    }

    /// The owner of the files, from the label.
    pub fn owner(self) -> Option<&'a str> {
        ObservedObject::new(self.0).label(OWNER_LABEL)
    }

    /// The UID of the `DevUser` whose files these are; none if no `DevUser` was known when the
    /// StatefulSet made the home.
    pub fn owner_uid(self) -> Option<&'a str> {
        text(self.0, &["metadata", "annotations", identity::OWNER_UID])
    }

    /// The name of the StatefulSet of the workspace, from the label.
    pub fn workspace(self) -> Option<&'a str> {
        ObservedObject::new(self.0).label(names::WORKSPACE_LABEL)
    }

    /// Whether the claim is bound to a volume.
    pub fn is_bound(self) -> bool {
        self.phase() == "Bound"
    }

    /// The phase: `Pending`, `Bound` or `Lost`.
    pub fn phase(self) -> &'a str {
        text(self.0, &["status", "phase"]).unwrap_or("Pending")
    }

    /// The storage class; none if the claim names none.
    pub fn storage_class(self) -> Option<&'a str> {
        text(self.0, &["spec", "storageClassName"])
    }

    /// The requested size.
    pub fn size(self) -> Option<&'a str> {
        text(self.0, &["spec", "resources", "requests", "storage"])
    }
}

/// The text at a path of keys; none if it is missing or empty.
pub fn text<'a>(value: &'a Json<'a>, path: &[&str]) -> Option<&'a str> {
    value.at(path)?.as_str().filter(|text| !text.is_empty())
}

/// The whole number at a path of keys. A missing number is 0, because Kubernetes leaves zeros out.
pub fn number(value: &Json<'_>, path: &[&str]) -> i64 {
    value.at(path).and_then(Json::as_i64).unwrap_or_default()
}
