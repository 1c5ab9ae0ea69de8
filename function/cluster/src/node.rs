//! What one node's pod says of itself.

use function_workspace::cause::Cause;

use crate::names::Names;
use crate::seen::{CONTAINER, Doing, PREPARE, Pod};

/// The reason of a pod that no machine takes, for its own sake.
pub const UNSCHEDULABLE: &str = "Unschedulable";

/// Whether one can log in to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One can.
    Ready,
    /// Not yet.
    Waits(Cause),
    /// Not before a person changes something.
    NeedsPerson(Cause),
}

/// Judges a node. `name` is its pod's, whether that exists or not.
pub fn verdict(name: &str, pod: Option<Pod<'_>>, names: &Names) -> Verdict {
    let Some(pod) = pod else {
        let (set, namespace) = (&names.name, &names.namespace);
        return waits(
            "PodMissing",
            format!(
                "pod {name} does not exist yet; if it does not come: kubectl -n {namespace} \
                 describe statefulset {set}"
            ),
        );
    };
    if pod.is_ready() {
        return Verdict::Ready;
    }
    if pod.is_ending() {
        return waits("PodEnding", format!("pod {name} is ending"));
    }
    if pod.is_gated() {
        return waits("PodGated", format!("pod {name} waits to be let in"));
    }
    if let Some(why) = pod.unschedulable() {
        let for_its_home = why.to_lowercase().contains("persistentvolumeclaim");
        return waits(
            if for_its_home {
                "WaitingForHome"
            } else {
                UNSCHEDULABLE
            },
            format!("no machine takes pod {name}: {why}"),
        );
    }
    let containers = [PREPARE, CONTAINER];
    containers
        .into_iter()
        .find_map(|container| trouble(name, pod, container))
        .unwrap_or_else(|| waits("Starting", format!("pod {name} is starting")))
}

/// What keeps a container from running.
fn trouble(name: &str, pod: Pod<'_>, container: &str) -> Option<Verdict> {
    let last = match pod.last_run(container) {
        Doing::Ended { code, message } => ended(code, message),
        _ => "it says nothing of why".to_owned(),
    };
    match pod.container(container) {
        Doing::Waiting { reason, message } => match reason {
            "CrashLoopBackOff" => Some(needs_person(
                "CrashLooping",
                format!("pod {name}: container {container} ends again and again: {last}"),
            )),
            "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
                Some(needs_person(
                    "ImageUnavailable",
                    format!("pod {name} cannot get its image: {}", pull(message)),
                ))
            }
            // A ConfigMap or Secret that is not there yet will be.
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                Some(waits(
                    "ContainerFails",
                    format!("pod {name}: container {container} cannot be made: {message}"),
                ))
            }
            _ => None,
        },
        Doing::Ended { code, message } if code != 0 => Some(waits(
            "ContainerEnded",
            format!(
                "pod {name}: container {container} ended: {}",
                ended(code, message)
            ),
        )),
        _ => None,
    }
}

/// What the registry says. While kubelet waits for another try it says so first.
fn pull(message: &str) -> &str {
    message
        .split_once("ErrImagePull: ")
        .map_or(message, |(_, said)| said)
}

fn ended(code: i64, message: &str) -> String {
    match (code, message) {
        // By the kernel, and nobody was left to say a word.
        (137, "") => "killed (137), as for more memory than its limit".to_owned(),
        (code, "") => format!("exit status {code}"),
        // Programs end with what matters; what comes before may hold times.
        (_, message) => message.lines().last().unwrap_or_default().to_owned(),
    }
}

fn waits(reason: &str, message: String) -> Verdict {
    Verdict::Waits(Cause::new(reason, message))
}

fn needs_person(reason: &str, message: String) -> Verdict {
    Verdict::NeedsPerson(Cause::new(reason, message))
}
