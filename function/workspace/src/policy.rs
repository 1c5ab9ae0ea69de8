//! Reads `WorkspacePolicy`, the function's input in the Composition of workspaces.

use api::duration::{Bounds, Duration};
use api::patterns;
use api::policy::{BehaviourVersion, OnDemandProvider, WorkspacePolicy};
use api::{POLICY_GROUP, VERSION};
use function_runtime::input;
use function_runtime::validation::{Schema, Violation, Violations};
use serde_json::Value;

use crate::{authorities, bastion, image_digest, ssh_networks};

static POLICY: Schema<WorkspacePolicy> = Schema::of("input", patterns::message);

const KIND: &str = "WorkspacePolicy";
/// The shortest and the longest time between two reconciles.
pub const REFRESH: Bounds = Bounds::new("10s", "1d");
/// The shortest and the longest time between two reports of an agent.
const REPORT: Bounds = Bounds::new("5s", "1h");

/// Reads and checks the policy. Violations name fields under `input`.
pub fn read(input: Option<&Value>) -> Result<WorkspacePolicy, Violations> {
    let input = input::given(input, KIND)?;
    let policy = POLICY.read(input)?;
    let version = format!("{POLICY_GROUP}/{VERSION}");
    let mut violations = input::check_kind(input, &version, KIND);
    check_provider_config_ref(input, &mut violations);
    check_networks(&policy, &mut violations);
    violations.extend(bastion::violations(&policy));
    violations.extend(authorities::violations(&policy));
    check_tags(&policy, &mut violations);
    violations.extend(agent_by_tag(&policy));
    violations.extend(on_demand_before_v3(&policy));
    violations.extend(intervals(&policy));
    Violations::into_result(violations)?;
    Ok(policy)
}

/// Refuses unknown fields of `providerConfigRef`. Its type is shared with CRDs, where the API
/// server prunes unknown fields, so the type itself accepts them.
fn check_provider_config_ref(input: &Value, violations: &mut Vec<Violation>) {
    let reference = input.get("providerConfigRef").and_then(Value::as_object);
    for name in reference.into_iter().flat_map(|r| r.keys()) {
        if name != "kind" && name != "name" {
            let path = format!("input.providerConfigRef.{name}");
            violations.push(Violation::new(path, "is no known field"));
        }
    }
}

fn check_networks(policy: &WorkspacePolicy, violations: &mut Vec<Violation>) {
    let ceiling = policy.ssh_cidr_ceiling.as_deref().unwrap_or_default();
    violations.extend(ssh_networks::malformed(ceiling, "input.sshCidrCeiling"));
    if violations.is_empty() {
        violations.extend(networks_outside(policy));
    }
}

/// The violations of the policy's default networks: unusable, outside its ceiling, or too many
/// addresses together.
pub(crate) fn networks_outside(policy: &WorkspacePolicy) -> Vec<Violation> {
    ssh_networks::read(&policy.defaults.ssh_cidrs, ssh_networks::DEFAULTS, policy).1
}

/// A provider of on-demand workspaces that the behaviour version does not know.
fn on_demand_before_v3(policy: &WorkspacePolicy) -> Option<Violation> {
    let is_known = policy.behaviour_version == BehaviourVersion::V3;
    let problem = "SpotPool needs behaviourVersion v3 or later";
    (policy.on_demand == Some(OnDemandProvider::SpotPool) && !is_known)
        .then(|| Violation::new("input.onDemand", problem))
}

/// The intervals that are too short or too long.
fn intervals(policy: &WorkspacePolicy) -> Vec<Violation> {
    let agent = policy.lifecycle.agent.as_ref();
    let in_pods = policy.cluster.as_ref().and_then(|c| c.agent.as_ref());
    let own = |path, interval| outside(path, interval, REFRESH);
    let of_agent = |path, interval| outside(path, interval, REPORT);
    let violations = [
        own("input.refreshInterval", &policy.refresh_interval),
        own(
            "input.minimumRefreshInterval",
            &policy.minimum_refresh_interval,
        ),
        agent.and_then(|agent| {
            of_agent(
                "input.lifecycle.agent.reportInterval",
                &agent.report_interval,
            )
        }),
        in_pods.and_then(|agent| {
            of_agent("input.cluster.agent.reportInterval", &agent.report_interval)
        }),
    ];
    violations.into_iter().flatten().collect()
}

/// The violation of an interval that is not between the bounds.
pub fn outside(path: &str, interval: &Duration, bounds: Bounds) -> Option<Violation> {
    let problem = bounds.problem(interval);
    problem.map(|problem| Violation::new(path, problem))
}

/// The agent's image, if it must be named by digest and is not.
pub(crate) fn agent_by_tag(policy: &WorkspacePolicy) -> Option<Violation> {
    let cluster = policy.cluster.as_ref()?;
    let agent = cluster.agent.as_ref()?;
    (cluster.require_image_digest && !image_digest::is_in(&agent.image)).then(|| {
        let problem = format!(
            "must end with a digest (@sha256:…), as cluster.requireImageDigest says; it is {}",
            agent.image
        );
        Violation::new("input.cluster.agent.image", problem)
    })
}

/// Refuses reserved tag keys. The CRD of `SpotPool` refuses them too, but only when Crossplane
/// applies the pool of a workspace.
fn check_tags(policy: &WorkspacePolicy, violations: &mut Vec<Violation>) {
    for key in policy.instance.tags.keys() {
        if key.starts_with(api::tags::RESERVED_PREFIX) || key.starts_with("aws:") {
            let path = format!("input.instance.tags.{key}");
            violations.push(Violation::new(path, "is a reserved tag key"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn input() -> Value {
        json!({
            "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
            "kind": "WorkspacePolicy",
            "behaviourVersion": "v2",
            "catalogue": {"name": "gpu-workspaces"},
            "allowedInstanceTypes": ["g4dn.*"]
        })
    }

    fn refused(change: impl FnOnce(&mut Value)) -> String {
        let mut input = input();
        change(&mut input);
        read(Some(&input)).unwrap_err().to_string()
    }

    #[test]
    fn a_minimal_policy_gets_its_defaults() {
        let policy = read(Some(&input())).unwrap();
        assert_eq!(policy.refresh_interval.to_string(), "10m");
        assert_eq!(policy.provider_config_ref.name, "default");
    }

    #[test]
    fn a_missing_policy_is_refused_with_the_next_step() {
        let message = read(None).unwrap_err().to_string();
        assert_eq!(
            message,
            "input: is required: give the pipeline step a WorkspacePolicy as its input"
        );
    }

    #[test]
    fn a_misspelt_field_is_refused_by_its_path() {
        let at_root = refused(|i| i["refreshSecond"] = json!(10));
        assert_eq!(at_root, "input.refreshSecond: is no known field");
        let nested = refused(|i| i["defaults"] = json!({"sshCidr": []}));
        assert_eq!(nested, "input.defaults.sshCidr: is no known field");
        let shared = refused(|i| {
            i["providerConfigRef"] =
                json!({"kind": "ProviderConfig", "name": "a", "namespace": "b"});
        });
        assert_eq!(
            shared,
            "input.providerConfigRef.namespace: is no known field"
        );
    }

    #[test]
    fn a_policy_of_another_kind_is_refused() {
        let kind = refused(|i| i["kind"] = json!("Input"));
        assert_eq!(kind, "input.kind: must be WorkspacePolicy");
        let version = refused(|i| i["behaviourVersion"] = json!("v9"));
        assert!(version.starts_with("input.behaviourVersion: "), "{version}");
        let bounds = refused(|i| i["refreshInterval"] = json!("1s"));
        assert_eq!(
            bounds,
            "input.refreshInterval: must be at least 10s and at most 1d"
        );
    }

    #[test]
    fn an_agent_by_tag_is_refused_where_the_policy_wants_digests() {
        let input = |image: &str| {
            let mut input = input();
            input["cluster"] = json!({
                "defaultFlavor": "t4", "requireImageDigest": true, "agent": {"image": image}
            });
            input
        };
        let by_digest = format!("registry.test/agent@sha256:{}", "0a".repeat(32));
        assert!(read(Some(&input(&by_digest))).is_ok());
        assert_eq!(
            read(Some(&input("registry.test/agent:v1")))
                .unwrap_err()
                .to_string(),
            "input.cluster.agent.image: must end with a digest (@sha256:…), as \
             cluster.requireImageDigest says; it is registry.test/agent:v1"
        );
    }

    #[test]
    fn an_invalid_pattern_of_instance_types_is_refused() {
        let message = refused(|i| i["allowedInstanceTypes"] = json!(["g*"]));
        assert!(
            message.starts_with("input.allowedInstanceTypes[0]: write "),
            "{message}"
        );
    }

    #[test]
    fn networks_of_the_policy_are_checked_like_those_of_a_claim() {
        let open = refused(|i| i["defaults"] = json!({"sshCidrs": ["0.0.0.0/0"]}));
        assert!(open.starts_with("input.defaults.sshCidrs[0]: "), "{open}");
        let ceiling = refused(|i| i["sshCidrCeiling"] = json!(["10.0.0.0/8", "vpn"]));
        assert!(
            ceiling.starts_with("input.sshCidrCeiling[1]: "),
            "{ceiling}"
        );
        let outside = refused(|i| {
            i["sshCidrCeiling"] = json!(["10.0.0.0/8"]);
            i["defaults"] = json!({"sshCidrs": ["192.0.2.0/24"]});
        });
        assert!(
            outside.starts_with("input.defaults.sshCidrs[0]: "),
            "{outside}"
        );
    }

    #[test]
    fn reserved_tag_keys_are_refused() {
        let message = refused(|i| i["instance"] = json!({"tags": {"aws:x": "1"}}));
        assert_eq!(message, "input.instance.tags.aws:x: is a reserved tag key");
    }
}
