//! The state of one pod.

use function_workspace::cause::{Cause, Reason};
use function_workspace::tenant_text;

use crate::names::Names;
use crate::seen::{CONTAINER, Doing, Ended, PREPARE, Pod, Waiting};

/// Whether the owner can log in to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The pod is ready.
    Ready,
    /// The pod is not ready yet.
    Waits(Cause),
    /// The pod cannot become ready until a person changes something.
    NeedsPerson(Cause),
}

/// The state of the pod with this name. `None` is a pod that does not exist.
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
        return waits(
            Reason::PodGated,
            format!(
                "pod {name} has a scheduling gate, which another controller such as Kueue removes"
            ),
        );
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

/// Why a container does not run; none if nothing is wrong.
fn trouble(name: &str, pod: Pod<'_>, container: &str) -> Option<Verdict> {
    let limit = pod.memory_limit(container);
    let last = match pod.last_run(container) {
        Doing::Ended(ended) => said(ended, limit),
        _ => "Kubernetes gives no reason".to_owned(),
    };
    match pod.container(container) {
        Doing::Waiting { why, message } => match why {
            Waiting::CrashLoop => Some(needs_person(
                Reason::CrashLooping,
                format!("pod {name}: container {container} ends again and again: {last}"),
            )),
            Waiting::Image => Some(needs_person(
                Reason::ImageUnavailable,
                format!(
                    "pod {name} cannot get its image: {}",
                    tenant_text::bounded(pull(message))
                ),
            )),
            // A missing ConfigMap or Secret is created soon.
            Waiting::Creation => Some(waits(
                Reason::ContainerFails,
                format!(
                    "pod {name}: container {container} cannot be made: {}",
                    tenant_text::bounded(message)
                ),
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

/// The message of the registry. While kubelet waits for its next attempt, it puts text before it.
fn pull(message: &str) -> &str {
    message
        .split_once("ErrImagePull: ")
        .map_or(message, |(_, said)| said)
}

/// The text about how a container ended.
fn said(ended: Ended<'_>, memory_limit: Option<&str>) -> String {
    match (ended.out_of_memory, memory_limit) {
        (true, Some(limit)) => format!("out of memory (OOMKilled), its limit is {limit}"),
        (true, None) => "out of memory (OOMKilled)".to_owned(),
        _ if ended.message.is_empty() => format!("exit status {}", ended.code),
        // The last line matters. Earlier lines may hold times, which would change the message.
        _ => tenant_text::bounded(ended.message.lines().last().unwrap_or_default()),
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
    use api::policy::BehaviourVersion;
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
        let names = crate::names::tests::names("alice", BehaviourVersion::V3);
        match verdict("alice-0", Some(Pod::new(&pod.into())), &names) {
            Verdict::Waits(cause) => cause.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_containers_last_words_are_bounded_and_printable() {
        let words = format!("Traceback\n\u{1b}]0;{}", "x".repeat(4096));
        let said = message(&json!({"exitCode": 1, "reason": "Error", "message": words}));
        assert!(said.contains("ended: ?]0;xxx"), "{said}");
        assert!(said.len() < 600, "{}", said.len());
    }

    #[test]
    fn only_an_oom_kill_is_reported_as_out_of_memory() {
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
