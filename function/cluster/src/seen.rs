//! What is observed of a workspace in the cluster.

use std::collections::BTreeMap;

use api::condition::READY;
use function_runtime::object::ObservedObject;
use function_runtime::request::Request;
use function_workspace::labels::OWNER_LABEL;
use serde_json::Value;

use crate::names;
use crate::resource_names;

/// The container that the owner works in.
pub const CONTAINER: &str = "workspace";
/// The one before it.
pub const PREPARE: &str = "prepare";

/// What Crossplane observes and fetches.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The composed resources, by composition resource name.
    pub observed: &'a BTreeMap<String, Value>,
    pods: Option<&'a [Value]>,
    homes: Option<&'a [Value]>,
    /// Kueue's Workloads of the namespace; `None` where Kueue is not asked.
    pub workloads: Option<&'a [Value]>,
}

impl<'a> Seen<'a> {
    /// Looks at a request.
    pub fn new(request: &'a Request) -> Self {
        let list = |name: &str| request.required.get(name).map(Vec::as_slice);
        Self {
            observed: &request.observed,
            pods: list(names::PODS),
            homes: list(names::HOMES),
            workloads: list(names::WORKLOADS),
        }
    }

    /// The `StatefulSet`, where there is one.
    pub fn stateful_set(self) -> Option<StatefulSet<'a>> {
        self.observed
            .get(resource_names::STATEFUL_SET)
            .map(StatefulSet)
    }

    /// The pods that exist, in no order.
    pub fn pods(self) -> impl Iterator<Item = Pod<'a>> {
        self.pods.unwrap_or_default().iter().map(Pod::new)
    }

    /// Whether Crossplane has looked for pods.
    pub fn knows_pods(self) -> bool {
        self.pods.is_some()
    }

    /// The pod of a name.
    pub fn pod(self, name: &str) -> Option<Pod<'a>> {
        self.pods().find(|pod| pod.name() == name)
    }

    /// The homes' volume claims, in no order.
    pub fn homes(self) -> impl Iterator<Item = VolumeClaim<'a>> {
        self.homes.unwrap_or_default().iter().map(VolumeClaim)
    }

    /// Whether Crossplane has looked for homes.
    pub fn knows_homes(self) -> bool {
        self.homes.is_some()
    }

    /// The home of a pod.
    pub fn home_of(self, pod: &str) -> Option<VolumeClaim<'a>> {
        self.homes()
            .find(|home| home.name().strip_prefix("home-") == Some(pod))
    }

    /// The public host key, once a pod has made one.
    pub fn host_key(self) -> Option<&'a str> {
        let secret = self.observed.get(resource_names::HOST_KEYS)?;
        text(secret, &["data", crate::identity::PUBLIC_HOST_KEY])
    }
}

/// An observed `StatefulSet`.
#[derive(Clone, Copy, Debug)]
pub struct StatefulSet<'a>(&'a Value);

impl<'a> StatefulSet<'a> {
    /// What tells it from one that had its name before.
    pub fn uid(self) -> &'a str {
        text(self.0, &["metadata", "uid"]).unwrap_or_default()
    }

    /// One of its annotations.
    pub fn annotation(self, key: &str) -> Option<&'a str> {
        text(self.0, &["metadata", "annotations", key])
    }

    /// Whether it is on its way out.
    pub fn is_ending(self) -> bool {
        ObservedObject::new(self.0).deleting()
    }

    /// How many pods it is to have.
    pub fn replicas(self) -> i64 {
        number(self.0, &["spec", "replicas"])
    }

    /// How many pods it has, ending ones among them.
    pub fn current(self) -> i64 {
        number(self.0, &["status", "replicas"])
    }

    /// How many of its pods are ready, as of its present generation.
    pub fn ready(self) -> i64 {
        let observed = number(self.0, &["status", "observedGeneration"]);
        if observed < number(self.0, &["metadata", "generation"]) {
            return 0;
        }
        number(self.0, &["status", "readyReplicas"])
    }

    /// Its homes' template, which cannot change.
    pub fn home_template(self) -> Option<&'a Value> {
        self.0.pointer("/spec/volumeClaimTemplates/0")
    }
}

/// An observed pod.
#[derive(Clone, Copy, Debug)]
pub struct Pod<'a>(&'a Value);

/// What a container does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing<'a> {
    /// It waits for something.
    Waiting {
        /// What kubelet waits for.
        why: Waiting,
        /// What kubelet says of it.
        message: &'a str,
    },
    /// It runs.
    Running,
    /// It ended.
    Ended(Ended<'a>),
    /// Nobody says.
    Unknown,
}

/// What kubelet waits for before it starts a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The pause after a container that ended again and again.
    CrashLoop,
    /// The image, which cannot be pulled.
    Image,
    /// Something that the container is made of.
    Creation,
    /// Nothing that is wrong.
    Start,
}

impl Waiting {
    /// By the reasons of kubelet (`pkg/kubelet/container/sync_result.go` and
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

/// How a container's run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended<'a> {
    /// Its exit status.
    pub code: i64,
    /// Whether Kubernetes says that it ran out of memory (`OOMKilled`).
    pub out_of_memory: bool,
    /// Its termination message; kubelet falls back to the end of its log.
    pub message: &'a str,
}

impl<'a> Pod<'a> {
    /// Looks at an observed pod.
    pub fn new(observed: &'a Value) -> Self {
        Self(observed)
    }

    /// How much memory a container may use.
    pub fn memory_limit(self, container: &str) -> Option<&'a str> {
        let containers = self.0.get("spec")?.get("containers")?.as_array()?;
        let mut containers = containers.iter();
        let named = containers.find(|c| text(c, &["name"]) == Some(container))?;
        text(named, &["resources", "limits", "memory"])
    }

    /// Its name.
    pub fn name(self) -> &'a str {
        ObservedObject::new(self.0).name()
    }

    /// Its address.
    pub fn ip(self) -> Option<&'a str> {
        text(self.0, &["status", "podIP"])
    }

    /// Whether it is on its way out.
    pub fn is_ending(self) -> bool {
        ObservedObject::new(self.0).deleting()
    }

    /// Whether one can log in.
    pub fn is_ready(self) -> bool {
        !self.is_ending() && ObservedObject::new(self.0).holds(READY)
    }

    /// Whether somebody may work in it.
    pub fn has_started(self) -> bool {
        self.container(CONTAINER) == Doing::Running
    }

    /// Whether it waits to be let in, by Kueue for example.
    pub fn is_gated(self) -> bool {
        let gates = self
            .0
            .pointer("/spec/schedulingGates")
            .and_then(Value::as_array);
        gates.is_some_and(|gates| !gates.is_empty())
    }

    /// Why no node takes it.
    pub fn unschedulable(self) -> Option<&'a str> {
        let scheduled = ObservedObject::new(self.0).failing("PodScheduled")?;
        (scheduled.reason == "Unschedulable").then_some(scheduled.message)
    }

    /// What one of its containers does.
    pub fn container(self, name: &str) -> Doing<'a> {
        self.state(name, "state")
    }

    /// How the container's last run ended, where it had one.
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

    fn status_of(self, name: &str) -> Option<&'a Value> {
        ["initContainerStatuses", "containerStatuses"]
            .into_iter()
            .filter_map(|list| self.0.get("status")?.get(list)?.as_array())
            .flatten()
            .find(|status| text(status, &["name"]) == Some(name))
    }
}

/// An observed `PersistentVolumeClaim` of a home.
#[derive(Clone, Copy, Debug)]
pub struct VolumeClaim<'a>(&'a Value);

impl<'a> VolumeClaim<'a> {
    /// The whole object.
    pub fn object(self) -> &'a Value {
        self.0
    }

    /// Its name.
    pub fn name(self) -> &'a str {
        ObservedObject::new(self.0).name()
    }

    /// Whose files are in it.
    pub fn owner(self) -> Option<&'a str> {
        text(self.0, &["metadata", "labels", OWNER_LABEL])
    }

    /// Whether there is a volume.
    pub fn is_bound(self) -> bool {
        self.phase() == "Bound"
    }

    /// `Pending`, `Bound` or `Lost`.
    pub fn phase(self) -> &'a str {
        text(self.0, &["status", "phase"]).unwrap_or("Pending")
    }

    /// The storage class, where one is named.
    pub fn storage_class(self) -> Option<&'a str> {
        text(self.0, &["spec", "storageClassName"])
    }

    /// How much it asks for.
    pub fn size(self) -> Option<&'a str> {
        text(self.0, &["spec", "resources", "requests", "storage"])
    }
}

/// A text at a path of keys.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str().filter(|text| !text.is_empty())
}

/// A whole number at a path of keys; 0 where there is none, as Kubernetes leaves
/// zeros out.
pub fn number(value: &Value, path: &[&str]) -> i64 {
    at(value, path).and_then(Value::as_i64).unwrap_or_default()
}

fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}
