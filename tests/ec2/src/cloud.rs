//! EC2's instances, as AWS documents them: client tokens make launches idempotent, an instance
//! stays in a state for some time, and lists show an instance later than the call that launched it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use provider_aws::{Ec2Error, Image, LaunchPlace, LaunchRequest, Subnet, TemplateRequest};
use provider_core::Offering;

use crate::{Buckets, End, Faults, Firewall, Machine, Storage, error};

/// EC2's error code for a throttled call.
const THROTTLED: &str = "RequestLimitExceeded";
/// The time from an interruption warning to the end of the instance.
const WARNED: SignedDuration = SignedDuration::from_mins(2);
/// EC2's error code for a launch template that does not exist.
pub const TEMPLATE_MISSING: &str = "InvalidLaunchTemplateName.NotFoundException";
/// EC2's error code for a security group that does not exist.
const GROUP_MISSING: &str = "InvalidGroup.NotFound";
/// EC2's state reason of a spot instance that AWS took back.
pub const RECLAIMED: &str = "Server.SpotInstanceTermination";

/// How slow EC2 is.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The time until EC2 lists a new instance.
    pub lists_instance: SignedDuration,
    /// The time until EC2 lists a new security group.
    pub lists_group: SignedDuration,
    /// The time until EC2 lists a new volume or snapshot.
    pub lists_volume: SignedDuration,
    /// The time that a new instance is pending.
    pub boots: SignedDuration,
}

/// What EC2 may do, and what AWS does not document of a fleet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// EC2 refuses the token of a launch whose instances have ended, as it does for `RunInstances`.
    pub refuses_ended_tokens: bool,
    /// EC2 looks for limits before it looks for the token, as it does for `CreateVolume`.
    pub looks_for_limits_first: bool,
    /// What a launch does with a security group that lists do not show yet.
    pub young_groups: YoungGroups,
}

/// How much later than a list a launch finds a new group: parts of EC2 learn of it at different times.
const FOUND_LATER: SignedDuration = SignedDuration::from_secs(10);

/// What EC2 does with a launch into a security group that it does not find yet ("Eventual consistency
/// in the Amazon EC2 API").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum YoungGroups {
    /// EC2 finds the group.
    #[default]
    Found,
    /// EC2 refuses the call.
    RefusedInFront,
    /// EC2 refuses each offering inside a fleet's answer.
    RefusedInside,
}

/// The result of a launch. EC2 gives it again for the same client token, even if the instances have
/// ended.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The request.
    pub request: LaunchRequest,
    /// The indexes of its instances in [`Cloud::machines`].
    pub machines: Vec<usize>,
    /// The offerings of which EC2 refused instances, with its error code.
    pub refusals: Vec<(Offering, &'static str)>,
}

/// One region of one account.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// All instances, also those that have ended, oldest first.
    pub machines: Vec<Machine>,
    /// The accepted launches, by client token.
    pub fleets: BTreeMap<String, Fleet>,
    /// Launch templates by name.
    pub templates: BTreeMap<String, TemplateRequest>,
    /// Security groups.
    pub firewall: Firewall,
    /// Volumes and snapshots.
    pub storage: Storage,
    /// The subnets to launch into.
    pub subnets: Vec<Subnet>,
    /// The images that exist.
    pub images: Vec<&'static str>,
    /// When the owners of images deprecate them, by id.
    pub deprecated: BTreeMap<&'static str, Timestamp>,
    /// How slow EC2 is.
    pub pace: Pace,
    /// What EC2 does beyond AWS's documents.
    pub habits: Habits,
    /// The token buckets, by which EC2 throttles calls.
    pub buckets: Buckets,
}

impl Cloud {
    /// The instance with this id.
    pub fn find(&mut self, id: &str) -> Option<&mut Machine> {
        self.machines.iter_mut().find(|m| m.id == id)
    }

    /// Takes a token for a call, or returns the error of a throttled call. A caller must call this
    /// before it carries out the operation, because EC2 throttles before anything else.
    pub fn admit(&mut self, operation: &'static str, now: Timestamp) -> Result<(), Ec2Error> {
        if self.buckets.take(operation, now) {
            Ok(())
        } else {
            Err(error(operation, THROTTLED))
        }
    }

    /// `CreateFleet`. For an offering and the number of missing instances, `sells` returns how many
    /// of them EC2 has, and the error code if it has fewer. Returns the indexes of the new
    /// instances.
    pub fn launch(
        &mut self,
        request: &LaunchRequest,
        sells: impl Fn(&Offering, u32) -> (u32, Option<&'static str>),
        now: Timestamp,
    ) -> Result<Vec<usize>, Ec2Error> {
        const OPERATION: &str = "CreateFleet";
        let template = match self.templates.get(&request.template) {
            Some(template) => template.clone(),
            None => return Err(error(OPERATION, TEMPLATE_MISSING)),
        };
        // aws-samples/aws-plugin-for-slurm#19: the subnets of one zone count as the same pool.
        let pools: BTreeSet<_> = request
            .places
            .iter()
            .map(|p| (&p.instance_type, &p.zone))
            .collect();
        if pools.len() < request.places.len() {
            return Err(error(OPERATION, "InvalidFleetConfig"));
        }
        match self.faulty(request, &template, now) {
            Some(GROUP_MISSING) if self.habits.young_groups == YoungGroups::RefusedInside => {
                let refused = |place| (offering(place, request), GROUP_MISSING);
                let fleet = Fleet {
                    request: request.clone(),
                    machines: Vec::new(),
                    refusals: request.places.iter().map(refused).collect(),
                };
                self.fleets.insert(request.token.clone(), fleet);
                return Ok(Vec::new());
            }
            Some(code) => return Err(error(OPERATION, code)),
            None => {}
        }
        if let Some(earlier) = self.fleets.get(&request.token) {
            let mut of_fleet = earlier.machines.iter().map(|index| &self.machines[*index]);
            let has_ended = !earlier.machines.is_empty() && of_fleet.all(|m| !m.is_live());
            if self.habits.refuses_ended_tokens && has_ended {
                return Err(error(OPERATION, "IdempotentInstanceTerminated"));
            }
            let lacks = |place: &LaunchPlace| sells(&offering(place, request), 1).1;
            let mut places = request.places.iter().map(lacks);
            if self.habits.looks_for_limits_first
                && let Some(Some(code)) = places.next()
                && places.all(|code| code.is_some())
            {
                return Err(error(OPERATION, code));
            }
            return if earlier.request == *request {
                Ok(Vec::new())
            } else {
                Err(error(OPERATION, "IdempotentParameterMismatch"))
            };
        }
        if !self.buckets.take_instances(request.count, now) {
            return Err(error(OPERATION, THROTTLED));
        }
        let mut fleet = Fleet {
            request: request.clone(),
            machines: Vec::new(),
            refusals: Vec::new(),
        };
        let mut missing = request.count;
        for place in &request.places {
            if missing == 0 {
                break;
            }
            let offering = offering(place, request);
            let (granted, refused) = sells(&offering, missing);
            missing -= granted;
            for _ in 0..granted {
                fleet.machines.push(self.machines.len());
                self.bear(&offering, request, &template, now);
            }
            fleet.refusals.extend(refused.map(|code| (offering, code)));
        }
        let born = fleet.machines.clone();
        self.fleets.insert(request.token.clone(), fleet);
        Ok(born)
    }

    fn bear(
        &mut self,
        offering: &Offering,
        request: &LaunchRequest,
        template: &TemplateRequest,
        now: Timestamp,
    ) {
        let later = |duration| now.saturating_add(duration).unwrap_or(Timestamp::MAX);
        self.machines.push(Machine {
            id: format!("i-{}", self.machines.len()),
            offering: offering.clone(),
            image_id: template.image.id.clone(),
            group_ids: template.group_ids.clone(),
            tags: request.tags.clone(),
            born: now,
            listed_from: later(self.pace.lists_instance),
            runs_from: later(self.pace.boots),
            is_stopped: false,
            is_impaired: false,
            scheduled: None,
            is_protected: false,
            console: Vec::new(),
            ends_at: None,
            ended: None,
        });
    }

    /// The error code of a request that EC2 refuses before it looks at the client token.
    fn faulty(
        &self,
        request: &LaunchRequest,
        template: &TemplateRequest,
        now: Timestamp,
    ) -> Option<&'static str> {
        let is_there = |place: &LaunchPlace| {
            let is_it = |s: &Subnet| s.id == place.subnet_id && s.zone == place.zone;
            self.subnets.iter().any(is_it)
        };
        if !request.places.iter().all(is_there) {
            return Some("InvalidSubnetID.NotFound");
        }
        if !self.images.contains(&template.image.id.as_str()) {
            return Some("InvalidAMIID.NotFound");
        }
        let are_found = self.habits.young_groups == YoungGroups::Found;
        let later = |at: Timestamp| at.saturating_add(FOUND_LATER).unwrap_or(Timestamp::MAX);
        let is_late = |at: Timestamp| !are_found && later(at) > now;
        let exists = |id: &String| {
            let mut groups = self.firewall.groups.iter();
            groups.any(|g| g.id == *id && !is_late(g.listed_from))
        };
        (!template.group_ids.iter().all(exists)).then_some(GROUP_MISSING)
    }

    /// Ends an instance, unless it has ended already. `reason` is EC2's state reason.
    pub fn end(&mut self, id: &str, reason: &'static str, at: Timestamp) {
        self.kill(id, (reason, ""), at);
    }

    /// Ends instances that were just launched, if the faults say so.
    pub fn kill_born(&mut self, born: &[usize], faults: &Faults, now: Timestamp) {
        let Some(reason) = faults.dies_at_birth else {
            return;
        };
        for index in born {
            let id = self.machines[*index].id.clone();
            self.kill(&id, reason, now);
        }
    }

    /// Ends an instance with a state reason and its message.
    pub fn kill(
        &mut self,
        id: &str,
        (reason, message): (&'static str, &'static str),
        at: Timestamp,
    ) {
        if let Some(machine) = self.find(id).filter(|m| m.is_live()) {
            machine.ended = Some(End {
                at,
                reason,
                message,
            });
        }
    }

    /// `TerminateInstances`. EC2 terminates nothing if it does not know one of the instances. It
    /// terminates no instance in the zone of a protected one ("Terminate Amazon EC2 instances" in
    /// the Amazon EC2 User Guide). Returns the ids of those that it terminates, and its error.
    pub fn terminate(&self, ids: &[String]) -> (Vec<String>, Result<(), Ec2Error>) {
        const OPERATION: &str = "TerminateInstances";
        let mut named = Vec::new();
        for id in ids {
            match self.machines.iter().find(|machine| machine.id == *id) {
                Some(machine) => named.push(machine),
                None => {
                    return (
                        Vec::new(),
                        Err(error(OPERATION, "InvalidInstanceID.NotFound")),
                    );
                }
            }
        }
        let is_kept = |machine: &&&Machine| machine.is_protected && machine.is_live();
        let kept: Vec<&str> = named
            .iter()
            .filter(is_kept)
            .map(|m| m.offering.zone.as_str())
            .collect();
        let ends = named
            .iter()
            .filter(|m| !kept.contains(&m.offering.zone.as_str()));
        let ends = ends.map(|machine| machine.id.clone()).collect();
        if kept.is_empty() {
            (ends, Ok(()))
        } else {
            (ends, Err(error(OPERATION, "OperationNotPermitted")))
        }
    }

    /// Announces that AWS takes an instance back in two minutes.
    pub fn interrupt(&mut self, id: &str, now: Timestamp) {
        if let Some(machine) = self.find(id) {
            machine.ends_at = now.saturating_add(WARNED).ok();
        }
    }

    /// Ends the instances whose announced end has come, and detaches volumes from terminated ones.
    pub fn pass_time(&mut self, now: Timestamp) {
        for machine in &mut self.machines {
            if let Some(at) = machine.ends_at.filter(|at| *at <= now)
                && machine.is_live()
            {
                machine.ended = Some(End {
                    at,
                    reason: RECLAIMED,
                    message: "",
                });
            }
        }
        self.detach(now);
    }

    /// The output on the console of an instance; empty without one.
    pub fn console(&self, id: &str) -> Vec<u8> {
        let mut machines = self.machines.iter();
        let machine = machines.find(|machine| machine.id == id);
        machine
            .map(|machine| machine.console.clone())
            .unwrap_or_default()
    }

    /// The image with this id, if it exists.
    pub fn image(&self, id: &str) -> Option<Image> {
        self.images.contains(&id).then(|| Image {
            id: id.to_owned(),
            root_device: "/dev/sda1".into(),
            deprecated_at: self.deprecated.get(id).copied(),
        })
    }
}

fn offering(place: &LaunchPlace, request: &LaunchRequest) -> Offering {
    Offering {
        instance_type: place.instance_type.clone(),
        zone: place.zone.clone(),
        market: request.market,
    }
}
