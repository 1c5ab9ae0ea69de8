//! A simulation of EC2: machines, volumes, security groups, and the time that changes take.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::dice::Dice;

/// The zones of the region.
pub const ZONES: [&str; 2] = ["us-east-1a", "us-east-1b"];

#[derive(Clone, Debug, PartialEq)]
pub struct Vm {
    /// The state, in EC2's words.
    pub state: &'static str,
    /// The inputs of its launch: type, image, user data, subnet.
    pub made: [Option<String>; 4],
    /// Its zone.
    pub zone: String,
    /// The public address while the machine runs.
    pub public_ip: Option<String>,
    /// Its private address.
    pub private_ip: String,
    /// `Spot` or `OnDemand`.
    pub market: &'static str,
    /// The UID of the object that it belongs to.
    pub owner: String,
}

impl Vm {
    /// Whether EC2 has terminated the machine.
    pub fn is_over(&self) -> bool {
        self.state == "terminated"
    }
}

/// The state of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// EC2 is attaching the volume.
    Attaching,
    /// The volume is attached.
    Attached,
    /// EC2 is detaching the volume.
    Detaching,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// Its zone.
    pub zone: String,
    /// The size in GiB.
    pub size: i64,
    /// The machine to which the volume is attached, and the state of the attachment.
    pub attached: Option<(String, Hold)>,
    /// Whether the volume was ever attached, so that it may hold files.
    pub was_attached: bool,
    /// The volume's tags, by key.
    pub tags: Value,
}

/// The faults of the moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "faults come and go independently"
)]
pub struct Faults {
    /// EC2 has no capacity for these types.
    pub no_capacity: Vec<&'static str>,
    /// EC2 refuses every on-demand machine.
    pub no_quota: bool,
    /// upbound's provider cannot observe anything.
    pub is_blind: bool,
    /// New machines stay pending.
    pub never_boots: bool,
    /// EC2 takes long to attach and to detach volumes.
    pub is_slow: bool,
}

/// The simulated EC2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cloud {
    /// The machines by id.
    pub vms: BTreeMap<String, Vm>,
    /// The volumes by id.
    pub volumes: BTreeMap<String, Volume>,
    /// The ids of the security groups.
    pub groups: Vec<String>,
    /// The faults of the moment.
    pub faults: Faults,
    made: u64,
}

impl Cloud {
    /// A number for the next machine, volume or group.
    pub fn next(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Launches a machine.
    pub fn run(
        &mut self,
        made: [Option<String>; 4],
        zone: Option<&str>,
        market: &'static str,
        owner: &str,
        dice: &mut Dice,
    ) -> String {
        let number = self.next();
        let subnet = made[3].as_deref();
        let zone = match (zone, subnet) {
            (Some(zone), _) => zone,
            (None, Some(subnet)) => zone_of(subnet),
            (None, None) => *dice.pick::<&str>(&ZONES),
        };
        let is_private = subnet.is_some();
        let id = format!("i-{number:017x}");
        self.vms.insert(
            id.clone(),
            Vm {
                state: "pending",
                zone: zone.to_owned(),
                public_ip: (!is_private).then(|| format!("198.51.100.{number}")),
                private_ip: format!("10.0.0.{number}"),
                market,
                owner: owner.to_owned(),
                made,
            },
        );
        id
    }

    /// Makes a volume.
    pub fn make_volume(&mut self, zone: &str, size: i64, tags: Value) -> String {
        let id = format!("vol-{:017x}", self.next());
        let volume = Volume {
            zone: zone.to_owned(),
            size,
            attached: None,
            was_attached: false,
            tags,
        };
        self.volumes.insert(id.clone(), volume);
        id
    }

    /// Terminates a machine. EC2 detaches its volumes by force.
    pub fn terminate(&mut self, id: &str) {
        if let Some(vm) = self.vms.get_mut(id)
            && !matches!(vm.state, "shutting-down" | "terminated")
        {
            vm.state = "shutting-down";
            vm.public_ip = None;
        }
    }

    /// The volume that is attached to a machine.
    pub fn volume_at(&self, vm: &str) -> Option<&str> {
        let mut volumes = self.volumes.iter();
        let found = volumes.find(|(_, v)| v.attached.as_ref().is_some_and(|(at, _)| at == vm));
        found.map(|(id, _)| id.as_str())
    }

    /// Lets time pass. For each unfinished change, `arrives` decides whether it completes now.
    pub fn tick(&mut self, mut arrives: impl FnMut() -> bool) {
        let faults = self.faults.clone();
        for vm in self.vms.values_mut() {
            vm.state = match vm.state {
                "pending" if !faults.never_boots && arrives() => "running",
                "stopping" if arrives() => "stopped",
                "shutting-down" if arrives() => "terminated",
                state => state,
            };
        }
        for volume in self.volumes.values_mut() {
            let Some((vm, hold)) = volume.attached.clone() else {
                continue;
            };
            let is_over = self.vms.get(&vm).is_none_or(Vm::is_over);
            let arrives = !faults.is_slow && arrives();
            volume.attached = match hold {
                _ if is_over => None,
                Hold::Attaching if arrives => Some((vm, Hold::Attached)),
                Hold::Detaching if arrives => None,
                hold => Some((vm, hold)),
            };
            volume.was_attached |= volume.attached.is_some();
        }
    }
}

/// The zone of a subnet.
pub fn zone_of(subnet: &str) -> &'static str {
    if subnet.ends_with('2') {
        ZONES[1]
    } else {
        ZONES[0]
    }
}

/// A field of `spec.forProvider` as a text.
pub fn asked(manifest: &Value, field: &str) -> Option<String> {
    let value = manifest
        .pointer("/spec/forProvider")?
        .get(field)?
        .as_str()?;
    (!value.is_empty()).then(|| value.to_owned())
}
