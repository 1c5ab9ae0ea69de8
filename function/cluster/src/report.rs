//! The report about a workspace in the cluster: phase, pods, conditions and events.

use api::cluster::{ChosenPods, NodeStatus};
use api::condition::{ADMITTED, COMPUTE_READY, HOME_READY};
use api::workspace::{GpuDevWorkspaceStatus, Phase};
use function_runtime::response::{Condition, Event, Severity};
use function_workspace::cause::{Cause, Reason};
use function_workspace::host_key;
use function_workspace::report::{self, Report};

use crate::names::Names;
use crate::plan::Step;
use crate::pod::{self, Verdict};
use crate::queue::{self, Admission};
use crate::seen::{Pod, Seen, StatefulSet, VolumeClaim};

/// The input of a report.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The names of the workspace's objects.
    pub names: &'a Names,
    /// The observed and required resources.
    pub seen: Seen<'a>,
    /// The settings of the pods.
    pub pods: Option<&'a ChosenPods>,
    /// What happens to the pods.
    pub step: Step,
    /// Whether the workspace has a home, or is to have one.
    pub has_home: bool,
    /// Why the workspace is not to run, and its phase then; none if it is to run.
    pub rest: Option<(&'a Cause, Phase)>,
    /// The status that the last call wrote.
    pub previous: &'a GpuDevWorkspaceStatus,
}

impl Subject<'_> {
    /// Builds the report from the state of queue, home and pods.
    pub fn report(self) -> Report {
        let previous = self.previous;
        let admission = match self.step {
            Step::Run => queue::admission(self.seen, self.pods),
            // A workspace that is not to run does not wait for quota.
            Step::Stop | Step::Restart | Step::Rest => None,
        };
        let home = self.has_home.then(|| self.home_trouble());
        let (cause, phase) = self.verdict(admission.as_ref(), home.clone().flatten());
        let ready = cause.is_none();
        let host = self.names.host(0);
        let known = self.host_key();
        let status = GpuDevWorkspaceStatus {
            phase: Some(phase),
            message: cause.as_ref().map(|cause| cause.message.clone()),
            ssh: ready.then(|| report::ssh_by_devctl(&self.names.claim, &self.names.namespace)),
            private_ip: self.ready_ip(0),
            opencv_version: self.pods.map(|pods| pods.opencv_version.clone()),
            pytorch_version: self.pods.map(|pods| pods.pytorch_version.clone()),
            pods: self.pods.cloned(),
            nodes: self.nodes(),
            // A stopped workspace keeps its host keys.
            host_keys: match &known {
                Some(key) => vec![key.clone()],
                None => previous.host_keys.clone(),
            },
            queue: admission.as_ref().and_then(Admission::status),
            ..GpuDevWorkspaceStatus::default()
        };
        let compute = match &cause {
            None => Condition::is_true(COMPUTE_READY, "Available"),
            Some(cause) => cause.condition(COMPUTE_READY),
        };
        let home = home.map(|cause| match cause {
            None => Condition::is_true(HOME_READY, "Bound"),
            Some(cause) => cause.condition(HOME_READY),
        });
        let admitted = self.admitted(admission.as_ref());
        Report {
            events: events(previous.phase, &status),
            conditions: [compute].into_iter().chain(home).chain(admitted).collect(),
            connection: connection(&host, known, ready),
            ready,
            status,
        }
    }

    /// `Admitted`, for every workspace with a queue. It must not be left out, because Crossplane
    /// keeps conditions that a response leaves out.
    fn admitted(self, admission: Option<&Admission>) -> Option<Condition> {
        self.pods?.queue.as_ref()?;
        Some(match admission {
            Some(admission) => admission.condition(),
            None => {
                Condition::is_false(ADMITTED, "Stopped", "the workspace is stopped or restarts")
            }
        })
    }

    fn host_key(self) -> Option<String> {
        self.seen.host_key().and_then(host_key)
    }

    /// The number of pods that exist or are to exist.
    fn count(self) -> i64 {
        let by_set = || self.seen.stateful_set().map_or(0, StatefulSet::replicas);
        self.pods.map_or_else(by_set, |pods| i64::from(pods.nodes))
    }

    /// Why the workspace is not ready, and its phase.
    fn verdict(self, admission: Option<&Admission>, home: Option<Cause>) -> (Option<Cause>, Phase) {
        match self.step {
            Step::Rest => {
                let (cause, phase) = self.rest.unzip();
                let said = self.previous.message.as_deref().unwrap_or("stopped");
                let unsaid = || Cause::new(Reason::Stopped, said);
                let cause = cause.cloned().unwrap_or_else(unsaid);
                return (Some(cause), phase.unwrap_or(Phase::Stopped));
            }
            Step::Stop => return (Some(self.ending("stopping")), Phase::Stopping),
            Step::Restart => {
                return (
                    Some(self.ending("starting again with what the claim and its flavor say now")),
                    Phase::Provisioning,
                );
            }
            Step::Run => {}
        }
        if let Some(waiting) = admission.and_then(Admission::waiting) {
            return (Some(waiting), Phase::Queued);
        }
        let unready = self.pod_verdicts().find_map(|(_, verdict)| match verdict {
            Verdict::Ready => None,
            Verdict::Waits(cause) => Some((cause, false)),
            Verdict::NeedsPerson(cause) => Some((cause, true)),
        });
        // Many volumes are created only after their pod is assigned to a node.
        let waits_for_pod = unready
            .as_ref()
            .is_some_and(|(cause, _)| cause.reason == Reason::Unschedulable);
        if let Some(cause) = home.filter(|_| !waits_for_pod) {
            return (Some(cause), self.unready(false));
        }
        if let Some((cause, needs_person)) = unready {
            return (Some(cause), self.unready(needs_person));
        }
        match self.shortcoming() {
            Some(cause) => (Some(cause), self.unready(false)),
            None => (None, Phase::Ready),
        }
    }

    /// Why the workspace is not ready although every pod is.
    fn shortcoming(self) -> Option<Cause> {
        let pods = self.count().max(1);
        let ready = self.seen.stateful_set().map_or(0, StatefulSet::ready);
        if ready < pods {
            let message = format!("{ready} of {pods} pods are ready");
            return Some(Cause::new(Reason::Starting, message));
        }
        self.host_key().is_none().then(|| {
            let message = format!("Secret {} has no host key yet", self.names.host_keys());
            Cause::new(Reason::Starting, message)
        })
    }

    fn ending(self, what: &str) -> Cause {
        let mut left: Vec<&str> = self.seen.pods().map(Pod::name).collect();
        left.sort_unstable();
        let message = match left.as_slice() {
            [] => what.to_owned(),
            left => format!("{what}: waiting for {} to end", left.join(", ")),
        };
        Cause::new(Reason::Stopping, message)
    }

    fn unready(self, needs_person: bool) -> Phase {
        match self.previous.phase {
            _ if needs_person => Phase::Failed,
            Some(Phase::Ready | Phase::Interrupted) => Phase::Interrupted,
            _ => Phase::Provisioning,
        }
    }

    /// Why a home is not ready; none if all are.
    fn home_trouble(self) -> Option<Cause> {
        // Homes of pods that the workspace no longer has do not count.
        let pods = i32::try_from(self.count()).unwrap_or(i32::MAX);
        let pods = if self.seen.knows_homes() { pods } else { 0 };
        let trouble = (0..pods).find_map(|ordinal| {
            let name = self.names.home(ordinal);
            match self.seen.home(&name) {
                None => Some(format!(
                    "waiting for the StatefulSet to make PersistentVolumeClaim {name}"
                )),
                Some(home) if !home.is_bound() => Some(self.unbound(home)),
                Some(_) => None,
            }
        });
        trouble.map(|message| Cause::new(Reason::HomeUnbound, message))
    }

    fn unbound(self, home: VolumeClaim<'_>) -> String {
        let (name, phase, namespace) = (home.name(), home.phase(), &self.names.namespace);
        let class = match home.storage_class() {
            Some(class) => format!("StorageClass {class}"),
            None => "no StorageClass, and the cluster has no default one".to_owned(),
        };
        format!(
            "PersistentVolumeClaim {name} is {phase} ({class}): kubectl -n {namespace} describe \
             pvc {name}"
        )
    }

    fn pod_verdicts(self) -> impl Iterator<Item = (i32, Verdict)> {
        let pods = i32::try_from(self.count()).unwrap_or(i32::MAX);
        // Until Crossplane has fetched the pods, nothing is known about them.
        let pods = if self.seen.knows_pods() { pods } else { 0 };
        (0..pods).map(move |ordinal| {
            let name = self.names.pod(ordinal);
            (
                ordinal,
                pod::verdict(&name, self.seen.pod(&name), self.names),
            )
        })
    }

    fn nodes(self) -> Vec<NodeStatus> {
        if !self.seen.knows_pods() {
            return self.previous.nodes.clone();
        }
        let is_to_run = self.step == Step::Run;
        self.pod_verdicts()
            .filter(|(ordinal, _)| is_to_run || self.seen.pod(&self.names.pod(*ordinal)).is_some())
            .map(|(ordinal, verdict)| NodeStatus {
                name: self.names.pod(ordinal),
                host: self.names.host(ordinal),
                ready: verdict == Verdict::Ready,
                ip: self.ready_ip(ordinal),
                message: match verdict {
                    Verdict::Ready => None,
                    Verdict::Waits(cause) | Verdict::NeedsPerson(cause) => Some(cause.message),
                },
            })
            .collect()
    }

    /// The address of a ready pod. It is left out before, because each change of status causes
    /// another reconcile.
    fn ready_ip(self, ordinal: i32) -> Option<String> {
        let pod = self.seen.pod(&self.names.pod(ordinal))?;
        pod.ip().filter(|_| pod.is_ready()).map(str::to_owned)
    }
}

/// The public key in the Secret.
fn host_key(encoded: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(encoded)
        .ok()?;
    host_key::read(&String::from_utf8(bytes).ok()?)
}

fn connection(host: &str, key: Option<String>, ready: bool) -> Vec<(&'static str, String)> {
    let Some(key) = key.filter(|_| ready) else {
        return Vec::new();
    };
    let mut details = report::connection(host);
    details.push(("known_hosts", format!("{host} {key}")));
    details
}

/// The severity of a new queue event. It is a warning if the workspace was ready before.
fn lost(before: Option<Phase>) -> Severity {
    match before {
        Some(Phase::Ready) => Severity::Warning,
        _ => Severity::Normal,
    }
}

fn events(before: Option<Phase>, status: &GpuDevWorkspaceStatus) -> Vec<Event> {
    let queued = before != status.phase && status.phase == Some(Phase::Queued);
    let queued = queued.then(|| Event {
        severity: lost(before),
        reason: "WorkspaceQueued",
        message: status.message.clone().unwrap_or_default(),
    });
    let ssh = status.ssh.as_deref().unwrap_or_default();
    let transition = report::phase_event(before, status, format!("ready: {ssh}"));
    queued.into_iter().chain(transition).collect()
}
