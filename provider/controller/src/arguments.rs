//! The command line.

use clap::{ArgAction, Parser};

use crate::access::{Address, Rights};

/// Keeps spot GPU pools at their desired size.
#[derive(Parser, Debug)]
#[command(version)]
pub struct Arguments {
    /// Log decisions and their reasons.
    #[arg(short, long, env = "DEBUG")]
    pub debug: bool,
    /// Namespace of the provider's identity; Crossplane sets it.
    #[arg(long, env = "POD_NAMESPACE", default_value = "crossplane-system")]
    pub namespace: String,
    /// Number of pools reconciled at once. A reconcile mostly waits for the API server or for AWS.
    #[arg(long, default_value_t = 300)]
    pub max_reconcile_rate: u16,
    /// How often a pool is polled for which no event arrives, a tenth more or less; the annotation
    /// crossplane.io/poll-interval overrides it.
    #[arg(long, default_value = "1m")]
    pub poll: kube::core::Duration,
    /// How long an instance of this control plane has to belong to no pool before it is terminated.
    #[arg(long, default_value = "10m")]
    pub orphan_grace: kube::core::Duration,
    /// Address that serves /metrics, /readyz and /healthz; empty: they are not served.
    #[arg(long, env = "OPERATIONS_ADDRESS", default_value = ":8080")]
    pub operations_address: String,
    /// Let one of several processes work while the others stand by. Without it all of them work.
    #[arg(
        long,
        env = "LEADER_ELECTION",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true"
    )]
    pub leader_election: bool,
    /// Let a `ProviderConfig` of any namespace use the identity of the provider's pod: IRSA,
    /// `PodIdentity`, or a token of the pod. Whoever may write one then has the provider's rights in
    /// AWS, and every role that trusts it.
    #[arg(long)]
    pub namespaced_identity: bool,
    /// The servers that a `ProviderConfig` may name as its endpoint, each as scheme, host and port,
    /// separated by commas. None is needed for AWS's own, or in a `ClusterProviderConfig`.
    #[arg(long, value_delimiter = ',', value_parser = Address::listed)]
    pub allowed_endpoints: Vec<Address>,
}

impl Arguments {
    /// What a `ProviderConfig` may do.
    pub fn rights(&self) -> Rights {
        Rights {
            identity: self.namespaced_identity,
            endpoints: self.allowed_endpoints.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_works_unless_leader_election_is_switched_off() {
        let elects = |given: &[&str]| {
            let all = ["provider"].iter().chain(given);
            Arguments::try_parse_from(all).unwrap().leader_election
        };
        assert!(elects(&[]));
        assert!(elects(&["--leader-election"]));
        assert!(elects(&["--leader-election=true"]));
        assert!(!elects(&["--leader-election=false"]));
    }

    #[test]
    fn every_listed_endpoint_counts_and_a_wrong_one_is_refused() {
        let given = [
            "--allowed-endpoints=http://10.0.0.7:4566,https://a.org",
            "--allowed-endpoints=https://b.org",
        ];
        let read = Arguments::try_parse_from(["provider"].iter().chain(&given)).unwrap();
        assert_eq!(read.rights().endpoints.len(), 3);
        let refused = Arguments::try_parse_from(["provider", "--allowed-endpoints=a.org"]);
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("--allowed-endpoints"), "{said}");
        assert!(said.contains("scheme, host and port"), "{said}");
    }
}
