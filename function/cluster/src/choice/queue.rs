//! Chooses the Kueue queue in which a workspace's pods wait for quota.

use api::cluster::ChosenQueue;
use api::policy::QueuePolicy;
use api::workspace::WorkspaceParameters;
use function_runtime::validation::Violation;

/// The queue that the claim names, or else the default of the policy; none without Kueue.
pub(super) fn chosen(
    parameters: &WorkspaceParameters,
    policy: Option<&QueuePolicy>,
    violations: &mut Vec<Violation>,
) -> Option<ChosenQueue> {
    let asked = parameters.queue.as_ref();
    let Some(policy) = policy else {
        if asked.is_some() {
            let problem = "the policy has no cluster.queue: leave it out";
            violations.push(Violation::new("spec.parameters.queue", problem));
        }
        return None;
    };
    let mut allow = |field: &str, asked: &Option<String>, allowed: Option<&[String]>| {
        let asked = asked.as_ref()?;
        if let Some(allowed) = allowed
            && !allowed.contains(asked)
        {
            let problem = match allowed {
                [] => "must be left out: the policy allows none".to_owned(),
                _ => format!("{asked} is not allowed; allowed are {}", allowed.join(", ")),
            };
            violations.push(Violation::new(
                format!("spec.parameters.queue.{field}"),
                problem,
            ));
        }
        Some(asked.clone())
    };
    let default = QueueNames {
        name: asked.and_then(|q| q.name.clone()),
        class: asked.and_then(|q| q.priority_class.clone()),
    };
    let only: Vec<String> = policy.default_priority_class.iter().cloned().collect();
    let classes = policy.allowed_priority_classes.as_deref().unwrap_or(&only);
    let name = allow("name", &default.name, policy.allowed.as_deref());
    let class = allow("priorityClass", &default.class, Some(classes));
    Some(ChosenQueue {
        name: name.unwrap_or_else(|| policy.default.clone()),
        priority_class: class.or_else(|| policy.default_priority_class.clone()),
    })
}

struct QueueNames {
    name: Option<String>,
    class: Option<String>,
}
