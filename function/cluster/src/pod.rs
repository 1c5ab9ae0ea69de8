//! What one pod says of itself.

use function_workspace::cause::{Cause, Reason};

use crate::names::Names;
use crate::seen::{CONTAINER, Doing, Ended, PREPARE, Pod, Waiting};

/// Whether one can log in to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One can.
    Ready,
    /// Not yet.
    Waits(Cause),
    /// Not before a person changes something.
    NeedsPerson(Cause),
}

/// Judges a pod by its name, whether it exists or not.
pub fn verdict(name: &str, pod: Option<Pod<'_>>, names: &Names) -> Verdict {
    let Some(pod) = pod else {
        let (set, namespace) = (&names.name, &names.namespace);
        return waits(
            Reason::PodMissing,
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
        return waits(Reason::PodEnding, format!("pod {name} is ending"));
    }
    if pod.is_gated() {
        return waits(Reason::PodGated, format!("pod {name} waits to be let in"));
    }
    if let Some(why) = pod.unschedulable() {
        let for_its_home = why.to_lowercase().contains("persistentvolumeclaim");
        return waits(
            if for_its_home {
                Reason::WaitingForHome
            } else {
                Reason::Unschedulable
            },
            format!("no node takes pod {name}: {why}"),
        );
    }
    let containers = [PREPARE, CONTAINER];
    containers
        .into_iter()
        .find_map(|container| trouble(name, pod, container))
        .unwrap_or_else(|| waits(Reason::Starting, format!("pod {name} is starting")))
}

/// What keeps a container from running.
fn trouble(name: &str, pod: Pod<'_>, container: &str) -> Option<Verdict> {
    let limit = pod.memory_limit(container);
    let last = match pod.last_run(container) {
        Doing::Ended(ended) => said(ended, limit),
        _ => "it says nothing of why".to_owned(),
    };
    match pod.container(container) {
        Doing::Waiting { why, message } => match why {
            Waiting::CrashLoop => Some(needs_person(
                Reason::CrashLooping,
                format!("pod {name}: container {container} ends again and again: {last}"),
            )),
            Waiting::Image => Some(needs_person(
                Reason::ImageUnavailable,
                format!("pod {name} cannot get its image: {}", pull(message)),
            )),
            // A ConfigMap or Secret that is not there yet will be.
            Waiting::Creation => Some(waits(
                Reason::ContainerFails,
                format!("pod {name}: container {container} cannot be made: {message}"),
            )),
            Waiting::Start => None,
        },
        Doing::Ended(ended) if ended.code != 0 => Some(waits(
            Reason::ContainerEnded,
            format!(
                "pod {name}: container {container} ended: {}",
                said(ended, limit)
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

/// Tells the user how a container's run ended.
fn said(ended: Ended<'_>, memory_limit: Option<&str>) -> String {
    match (ended.out_of_memory, memory_limit) {
        (true, Some(limit)) => format!("out of memory (OOMKilled), its limit is {limit}"),
        (true, None) => "out of memory (OOMKilled)".to_owned(),
        _ if ended.message.is_empty() => format!("exit status {}", ended.code),
        // Programs end with what matters; what comes before may hold times.
        _ => ended.message.lines().last().unwrap_or_default().to_owned(),
    }
}

fn waits(reason: Reason, message: String) -> Verdict {
    Verdict::Waits(Cause::new(reason, message))
}

fn needs_person(reason: Reason, message: String) -> Verdict {
    Verdict::NeedsPerson(Cause::new(reason, message))
}

#[cfg(test)]
mod tests {
    use function_runtime::composite::Origin;
    use serde_json::{Value, json};

    use super::*;

    fn message(terminated: &Value) -> String {
        let pod = json!({
            "metadata": {"name": "alice-0"},
            "spec": {"containers": [
                {"name": CONTAINER, "resources": {"limits": {"memory": "16Gi"}}},
            ]},
            "status": {"containerStatuses": [
                {"name": CONTAINER, "state": {"terminated": terminated}},
            ]},
        });
        let origin = Origin {
            namespace: "team-vision".to_owned(),
            name: "alice".to_owned(),
        };
        let names = Names::of(&origin, "cluster.local");
        match verdict("alice-0", Some(Pod::new(&pod)), &names) {
            Verdict::Waits(cause) => cause.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_kubernetes_calls_out_of_memory_is_called_that() {
        let oom = json!({"exitCode": 137, "reason": "OOMKilled", "message": "step 4"});
        assert!(
            message(&oom).ends_with("out of memory (OOMKilled), its limit is 16Gi"),
            "{}",
            message(&oom)
        );
        let killed = json!({"exitCode": 137, "reason": "Error"});
        assert!(
            message(&killed).ends_with("ended: exit status 137"),
            "{}",
            message(&killed)
        );
    }
}
