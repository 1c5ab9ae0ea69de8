//! The command line.

use clap::Parser;

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
    /// Let one of several replicas work while the others stand by.
    #[arg(long, env = "LEADER_ELECTION")]
    pub leader_election: bool,
}
