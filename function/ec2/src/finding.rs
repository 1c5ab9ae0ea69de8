//! The observed state of a compute resource.

use std::net::IpAddr;

use api::capacity::InstanceCapacityType;
use function_workspace::cause::{Cause, Reason};
use function_workspace::host_key;
use function_workspace::setup::Setup;
use provider_core::InstanceState;

/// The observed state of a compute resource: a `SpotPool` with one instance, or an on-demand
/// `Instance`.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The machine that the owner can use; none unless it runs and has an address.
    pub machine: Option<Machine>,
    /// Whether the provider reports no problem.
    pub in_order: bool,
    /// The expected development.
    pub outlook: Outlook,
    /// Why the resource is not in order. Not used if it is in order.
    pub cause: Cause,
}

impl Finding {
    /// The state of a resource that does not exist yet.
    pub fn absent(cause: Cause) -> Self {
        Self {
            machine: None,
            in_order: false,
            outlook: Outlook::Waiting,
            cause,
        }
    }

    /// Whether the owner can use the machine and the provider reports no problem.
    pub fn serves_well(&self) -> bool {
        self.machine.is_some() && self.in_order
    }
}

/// The expected development of a compute resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// The status of the resource cannot be read, so nothing is known.
    Unreadable,
    /// A machine runs, with or without an address.
    Runs,
    /// No machine will start until a person changes something.
    NeedsPerson,
    /// A machine is being created.
    Waiting,
    /// A stopped machine starts again.
    Starting,
}

/// A machine that runs and has an address.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The instance id in EC2.
    pub id: String,
    /// The instance type.
    pub instance_type: String,
    /// The market.
    pub capacity_type: InstanceCapacityType,
    /// The availability zone.
    pub zone: String,
    /// Public IPv4 address.
    pub public_ip: Option<String>,
    /// Private IPv4 address.
    pub private_ip: Option<String>,
    /// The address to connect to.
    pub address: String,
    /// Whether AWS has announced an interruption.
    pub is_taken_back: bool,
    /// What AWS has scheduled for the machine, for its owner; none if that is nothing.
    pub scheduled: Option<String>,
    /// The last report of the agent.
    pub report: Option<String>,
    /// The SSH host keys that the machine reports, each as type and base64 data.
    pub host_keys: Vec<String>,
    /// The setup of the software.
    pub setup: Setup,
}

/// Whether the owner may have worked on an instance in this state, or in an unknown one: the
/// instance is neither pending nor ending.
pub fn may_hold_work(state: Option<InstanceState>) -> bool {
    use InstanceState::{Pending, ShuttingDown, Terminated};
    !matches!(state, Some(Pending | ShuttingDown | Terminated))
}

/// The host keys of a machine: the key that its agent reports, or else those that its console shows.
/// A machine without an agent makes other keys on its first boot than its home has.
pub fn host_keys(of_agent: Option<&str>, of_console: &[String]) -> Vec<String> {
    match of_agent.and_then(host_key::read) {
        Some(key) => vec![key],
        None => of_console
            .iter()
            .filter_map(|key| host_key::read(key))
            .collect(),
    }
}

/// The text of a status, if it is an IP address. Every object of the workspace repeats the address,
/// so the function repeats no other text.
pub fn address(text: Option<&str>) -> Option<&str> {
    text.filter(|text| text.parse::<IpAddr>().is_ok())
}

/// The text of a status, if it may be the id of a volume in EC2.
pub fn volume_id(text: Option<&str>) -> Option<&str> {
    const LONGEST: usize = 32;
    text.filter(|text| text.starts_with("vol-") && text.len() <= LONGEST)
}

/// The cause if the machine of the last call is gone. `why` is EC2's reason; none if EC2 gives
/// none.
pub fn lost(id: &str, why: Option<&str>) -> Cause {
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let message = format!("instance {id} is gone{why}, waiting for another one");
    Cause::new(Reason::Interrupted, message)
}
