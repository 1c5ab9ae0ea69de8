//! What an observed compute resource shows of the machine behind it.

use api::capacity::InstanceCapacityType;
use function_workspace::cause::{Cause, Reason};

/// A compute resource, looked at: a `SpotPool` with its one instance, or an
/// on-demand `Instance`.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The machine that somebody could work on: it runs and has an address.
    pub machine: Option<Machine>,
    /// Whether its provider says that all is well.
    pub in_order: bool,
    /// What is to be expected of it.
    pub outlook: Outlook,
    /// Why it is not in order; without meaning when it is.
    pub cause: Cause,
}

impl Finding {
    /// What shows of a resource that does not exist yet.
    pub fn absent(cause: Cause) -> Self {
        Self {
            machine: None,
            in_order: false,
            outlook: Outlook::Waiting,
            cause,
        }
    }

    /// Whether the machine can be used and its provider agrees.
    pub fn serves_well(&self) -> bool {
        self.machine.is_some() && self.in_order
    }
}

/// What is to be expected of a compute resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Its status cannot be understood: nothing may be concluded from it.
    Unreadable,
    /// A machine runs, with or without an address.
    Runs,
    /// Nothing will come of it until a person changes something.
    NeedsPerson,
    /// A machine is on its way.
    Waiting,
    /// A stopped machine starts again.
    Starting,
}

/// A machine that runs and has an address.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// EC2's instance id.
    pub id: String,
    /// Its type.
    pub instance_type: String,
    /// The market that granted it.
    pub capacity_type: InstanceCapacityType,
    /// Its availability zone.
    pub zone: String,
    /// Public IPv4 address.
    pub public_ip: Option<String>,
    /// Private IPv4 address.
    pub private_ip: Option<String>,
    /// The address to connect to.
    pub address: String,
    /// Whether AWS has announced to take it back.
    pub is_taken_back: bool,
    /// What its agent says of its use.
    pub report: Option<String>,
    /// Its SSH host key, as its agent says.
    pub host_key: Option<String>,
}

/// The machine of the last call is gone. `why` is EC2's reason, where it told one.
pub fn lost(id: &str, why: Option<&str>) -> Cause {
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let message = format!("instance {id} is gone{why}, waiting for another one");
    Cause::new(Reason::Interrupted, message)
}
