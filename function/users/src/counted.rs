//! Lines of a user's quota that count custom resources, such as
//! `count/gpudevworkspaceclaims.platform.acme.io`.
//!
//! Kubernetes' quota controller looks for new kinds every 30 seconds. A quota that has a line for a
//! kind that the controller does not know is counted up to five minutes later, and until then the API
//! server refuses every object of that kind (`status unknown for quota`). So from behaviour version
//! v3 on, such a line is written once the kind's definition is old enough.

use std::collections::BTreeMap;

use api::policy::BehaviourVersion;
use function_runtime::json::Json;
use function_runtime::request::{Request, Required};
use function_runtime::requirement::{Requirement, Selector};
use jiff::{SignedDuration, Timestamp};

use crate::objects::User;
use crate::resource_names;

/// The age from which on Kubernetes knows a kind: its 30 seconds, twice.
const KNOWN_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// The quota of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The lines to write, `spec.hard`.
    pub hard: BTreeMap<String, String>,
    /// Why a line is not written yet; none if no line waits for a moment only. A kind without a
    /// definition may never get one, so the `DevUser` does not wait for it.
    pub wait: Option<String>,
}

/// Decides which lines of the quota are written.
pub fn quota(request: &Request, user: User<'_>) -> Quota {
    let mut quota = Quota::default();
    for (line, amount) in wanted(user) {
        match definition(&line).filter(|_| is_new(request, user, &line)) {
            None => drop(quota.hard.insert(line, amount)),
            Some(definition) => match state(request, definition) {
                State::Old => {
                    quota.wait = Some(format!("waiting for Kubernetes to count {line}"));
                    quota.hard.insert(line, amount);
                }
                State::Absent => {}
                State::Unresolved => {
                    let text =
                        format!("waiting for Crossplane to fetch the definition {definition}");
                    quota.wait = Some(text);
                }
                State::Young(until) => {
                    let text = format!(
                        "the definition {definition} is new: {line} counts from {until:.0} on"
                    );
                    quota.wait = Some(text);
                }
            },
        }
    }
    quota
}

/// The definitions that Crossplane must fetch: those of lines that are not written yet.
pub fn requirements(request: &Request, user: User<'_>) -> Vec<Requirement> {
    let lines = wanted(user);
    let new = lines.keys().filter(|line| is_new(request, user, line));
    new.filter_map(|line| definition(line))
        .map(|definition| Requirement {
            name: requirement(definition),
            api_version: "apiextensions.k8s.io/v1",
            kind: "CustomResourceDefinition",
            selector: Selector::Named(definition.to_owned()),
        })
        .collect()
}

/// The lines of policy and user. The user's replace those of the policy.
fn wanted(user: User<'_>) -> BTreeMap<String, String> {
    let mut hard = user.policy.quota.clone();
    hard.extend(user.spec.quota.clone());
    hard
}

/// The name of the definition whose objects a line counts; none for kinds of Kubernetes itself, which
/// have no definition.
fn definition(line: &str) -> Option<&str> {
    let resource = line.strip_prefix("count/")?;
    let (_, group) = resource.split_once('.')?;
    let is_kubernetes_own = !group.contains('.') || group.ends_with(".k8s.io");
    (!is_kubernetes_own).then_some(resource)
}

/// Whether a line has to wait for its definition: it is not in the observed quota.
fn is_new(request: &Request, user: User<'_>, line: &str) -> bool {
    if user.policy.behaviour_version != BehaviourVersion::V3 {
        return false;
    }
    let quota = request.observed.get(resource_names::QUOTA);
    let hard = quota.and_then(|quota| quota.pointer("/spec/hard"));
    hard.and_then(|hard| hard.get(line)).is_none()
}

enum State {
    Unresolved,
    Absent,
    Young(Timestamp),
    Old,
}

fn state(request: &Request, definition: &str) -> State {
    match request.required(&requirement(definition)) {
        Required::Unresolved => State::Unresolved,
        Required::Absent => State::Absent,
        Required::Present(found) => match known_from(found) {
            Some(known) if known > request.now => State::Young(known),
            _ => State::Old,
        },
    }
}

fn known_from(definition: &Json<'_>) -> Option<Timestamp> {
    let created = definition.pointer("/metadata/creationTimestamp")?;
    let created: Timestamp = created.as_str()?.parse().ok()?;
    created.checked_add(KNOWN_AFTER).ok()
}

fn requirement(definition: &str) -> String {
    format!("definition-{definition}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_custom_resources_have_a_definition() {
        let claims = "gpudevworkspaceclaims.platform.acme.io";
        assert_eq!(definition(&format!("count/{claims}")), Some(claims));
        for own in ["pods", "requests.cpu", "count/pods", "count/jobs.batch"] {
            assert_eq!(definition(own), None, "{own}");
        }
        assert_eq!(definition("count/ingresses.networking.k8s.io"), None);
    }
}
