//! Who may connect to a workspace by the network: its own networks, and the policy's bastion.

use api::policy::WorkspacePolicy;
use api::workspace::Placement;

use crate::cause::{Cause, Reason};
use crate::ssh_networks;

/// Who may connect to a workspace by the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Why nobody may connect; none if somebody may.
    pub closed: Option<Cause>,
    /// Why the policy's bastion may not connect, and who can change that; none if it may, or if the
    /// policy has none.
    pub without_bastion: Option<String>,
}

/// Who is admitted by the rules of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Whether anybody is, the bastion or somebody else.
    pub anybody: bool,
    /// Whether the bastion is.
    pub bastion: bool,
}

impl Reach {
    /// Who may connect to a workspace in this placement.
    pub fn of(policy: &WorkspacePolicy, placement: Placement, admitted: Admitted) -> Self {
        let has_bastion = policy.bastion.is_some();
        let without_bastion =
            (has_bastion && !admitted.bastion).then(|| out_of_reach(placement).to_owned());
        let closed = (!admitted.anybody).then(|| nobody(policy, without_bastion.as_deref()));
        Self {
            closed,
            without_bastion,
        }
    }
}

/// The message about a bastion that does not reach this placement.
fn out_of_reach(placement: Placement) -> &'static str {
    match placement {
        Placement::Ec2 => {
            "the policy's bastion does not reach machines on EC2: only the platform team can set \
             bastion.cidrs or bastion.securityGroupId of the policy"
        }
        Placement::Cluster => {
            "the policy's bastion does not reach pods: only the platform team can set \
             bastion.namespace and bastion.podLabels of the policy"
        }
    }
}

/// Why nobody may connect. `without_bastion` says why the policy's bastion may not.
fn nobody(policy: &WorkspacePolicy, without_bastion: Option<&str>) -> Cause {
    const OWN: &str = "add the networks you connect from to spec.parameters.ssh.allowedCidrs";
    let (reason, message) = match without_bastion {
        None => (Reason::NoNetworks, format!("nobody can connect: {OWN}")),
        Some(why) if ssh_networks::is_of_bastion_only(policy) => (
            Reason::BastionOutOfReach,
            format!("nobody can connect: bastion.only closes all other networks, and {why}"),
        ),
        Some(why) => (
            Reason::BastionOutOfReach,
            format!("nobody can connect: {why}; or {OWN}"),
        ),
    };
    Cause::new(reason, message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::policy;

    fn reach(bastion: &Value, placement: Placement, admitted: [bool; 2]) -> Reach {
        let input = json!({
            "apiVersion": "workspace.fn.platform.acme.io/v1alpha1",
            "kind": "WorkspacePolicy",
            "behaviourVersion": "v3",
            "catalogue": {"name": "gpu-workspaces"},
            "allowedInstanceTypes": ["g4dn.*"],
            "bastion": bastion,
        });
        let policy = policy::read(Some(&input)).unwrap();
        let [anybody, bastion] = admitted;
        Reach::of(&policy, placement, Admitted { anybody, bastion })
    }

    #[test]
    fn a_bastion_that_reaches_a_workspace_is_not_complained_of() {
        let networks = json!({"cidrs": ["10.9.0.0/28"]});
        for placement in [Placement::Ec2, Placement::Cluster] {
            let all = [true, true];
            assert_eq!(reach(&networks, placement, all), Reach::default());
            // Without a bastion, there is none to miss.
            let others = [true, false];
            assert_eq!(reach(&Value::Null, placement, others), Reach::default());
        }
    }

    #[test]
    fn a_workspace_that_the_bastion_does_not_reach_names_the_fields_of_its_placement() {
        let networks = json!({"cidrs": ["10.9.0.0/28"]});
        let said = |placement| {
            let reach = reach(&networks, placement, [true, false]);
            assert_eq!(reach.closed, None);
            reach.without_bastion.unwrap()
        };
        assert_eq!(
            said(Placement::Ec2),
            "the policy's bastion does not reach machines on EC2: only the platform team can set \
             bastion.cidrs or bastion.securityGroupId of the policy"
        );
        assert_eq!(
            said(Placement::Cluster),
            "the policy's bastion does not reach pods: only the platform team can set \
             bastion.namespace and bastion.podLabels of the policy"
        );
    }

    #[test]
    fn a_workspace_that_nobody_reaches_says_what_to_change() {
        let pods = |only: bool| json!({"namespace": "gpu-bastion", "podLabels": {"app": "b"}, "only": only});
        let none = [false, false];
        let closed = |bastion: Value| reach(&bastion, Placement::Ec2, none).closed.unwrap();
        let without = closed(Value::Null);
        assert_eq!(without.reason, Reason::NoNetworks);
        assert_eq!(
            without.message,
            "nobody can connect: add the networks you connect from to \
             spec.parameters.ssh.allowedCidrs"
        );
        let beside = closed(pods(false));
        assert_eq!(beside.reason, Reason::BastionOutOfReach);
        assert_eq!(
            beside.message,
            "nobody can connect: the policy's bastion does not reach machines on EC2: only the \
             platform team can set bastion.cidrs or bastion.securityGroupId of the policy; or add \
             the networks you connect from to spec.parameters.ssh.allowedCidrs"
        );
        let only = closed(pods(true));
        assert_eq!(only.reason, Reason::BastionOutOfReach);
        assert_eq!(
            only.message,
            "nobody can connect: bastion.only closes all other networks, and the policy's bastion \
             does not reach machines on EC2: only the platform team can set bastion.cidrs or \
             bastion.securityGroupId of the policy"
        );
    }
}
