//! EC2's instances, as AWS documents them: idempotent tokens, states that take
//! their time, and lists that learn of an instance later than its creator.

use jiff::{SignedDuration, Timestamp};
use provider_aws::{Ec2Error, Image, LaunchRequest, Subnet, Tags};
use provider_core::{Instance, InstanceState, Offering};

use super::faults::error;
use super::firewall::Firewall;
use crate::regions::TAG_KEYS;

/// From a termination to its end.
const SHUTTING_DOWN: SignedDuration = SignedDuration::from_secs(35);
/// How long EC2 lists what is terminated.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);
pub const VPC: &str = "vpc-1";
pub const CLUSTER: &str = "cluster-uid";
pub const POOL_UID: &str = "pool-uid";
pub const RECLAIMED: &str = "Server.SpotInstanceTermination";

/// How slowly EC2 is.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Until a new instance is listed.
    pub lists_instance: SignedDuration,
    /// Until a new group is listed.
    pub lists_group: SignedDuration,
    /// From pending to running.
    pub boots: SignedDuration,
}

/// An instance as it is, whoever sees it.
#[derive(Clone, Debug)]
pub struct Machine {
    pub id: String,
    /// What it was launched with.
    pub request: LaunchRequest,
    /// Its tags at present.
    pub tags: Tags,
    pub born: Timestamp,
    pub listed_from: Timestamp,
    pub runs_from: Timestamp,
    pub is_stopped: bool,
    pub ended: Option<End>,
}

/// The end of an instance.
#[derive(Clone, Debug)]
pub struct End {
    pub at: Timestamp,
    pub reason: &'static str,
}

/// One region of one account.
#[derive(Clone, Debug)]
pub struct Cloud {
    pub machines: Vec<Machine>,
    pub firewall: Firewall,
    pub images: Vec<&'static str>,
    pub pace: Pace,
}

impl Machine {
    pub fn state(&self, now: Timestamp) -> InstanceState {
        match &self.ended {
            Some(end) if now.duration_since(end.at) < SHUTTING_DOWN => InstanceState::ShuttingDown,
            Some(_) => InstanceState::Terminated,
            None if self.is_stopped => InstanceState::Stopped,
            None if now < self.runs_from => InstanceState::Pending,
            None => InstanceState::Running,
        }
    }

    pub fn is_live(&self) -> bool {
        self.ended.is_none()
    }

    pub fn is_listed(&self, now: Timestamp) -> bool {
        let forgotten = |end: &End| now.duration_since(end.at) > SHUTTING_DOWN + REMEMBERED;
        self.listed_from <= now && !self.ended.as_ref().is_some_and(forgotten)
    }

    /// Whether it carries the tags of the pool under test.
    pub fn is_ours(&self) -> bool {
        is_ours(&self.tags)
    }

    pub fn slot(&self) -> u32 {
        self.tags[TAG_KEYS.slot].parse().unwrap()
    }

    pub fn launch(&self) -> i64 {
        self.tags[TAG_KEYS.launch].parse().unwrap()
    }

    /// As provider-aws reads it: only with every tag of a pool.
    pub fn read(&self, now: Timestamp) -> Option<Instance> {
        let state = self.state(now);
        let is_running = state == InstanceState::Running;
        Some(Instance {
            id: self.id.clone(),
            pool_uid: self.tags.get(TAG_KEYS.pool_uid)?.clone(),
            slot: self.tags.get(TAG_KEYS.slot)?.parse().ok()?,
            launch: self.tags.get(TAG_KEYS.launch)?.parse().ok()?,
            offering: self.request.offering.clone(),
            image_id: self.request.image.id.clone(),
            state,
            state_reason: self.ended.as_ref().map(|end| end.reason.to_owned()),
            public_ip: is_running.then(|| "203.0.113.7".to_owned()),
            private_ip: Some("10.0.0.7".to_owned()),
            launched_at: Timestamp::from_second(self.born.as_second()).ok(),
        })
    }
}

impl Cloud {
    /// Instances of the pool under test, dead ones too.
    pub fn ours(&self) -> impl Iterator<Item = &Machine> {
        self.machines.iter().filter(|m| m.is_ours())
    }

    /// Live instances of the pool under test.
    pub fn live(&self) -> Vec<&Machine> {
        self.ours().filter(|m| m.is_live()).collect()
    }

    pub fn machine(&mut self, id: &str) -> &mut Machine {
        let found = self.machines.iter_mut().find(|m| m.id == id);
        found.unwrap()
    }

    /// `RunInstances` without the faults. Answers the instance's index, and
    /// whether it is new.
    pub fn run(
        &mut self,
        request: &LaunchRequest,
        sells: impl FnOnce(&Offering) -> Option<&'static str>,
        now: Timestamp,
    ) -> Result<(usize, bool), Ec2Error> {
        const OPERATION: &str = "RunInstances";
        if let Some(code) = self.faulty(request) {
            return Err(error(OPERATION, code));
        }
        let same_token = |m: &Machine| m.request.token == request.token;
        if let Some(index) = self.machines.iter().position(same_token) {
            return if self.machines[index].request == *request {
                Ok((index, false))
            } else {
                Err(error(OPERATION, "IdempotentParameterMismatch"))
            };
        }
        if let Some(code) = sells(&request.offering) {
            return Err(error(OPERATION, code));
        }
        let later = |duration| now.saturating_add(duration).unwrap();
        let index = self.machines.len();
        self.machines.push(Machine {
            id: format!("i-{index}"),
            tags: request.tags.clone(),
            request: request.clone(),
            born: now,
            listed_from: later(self.pace.lists_instance),
            runs_from: later(self.pace.boots),
            is_stopped: false,
            ended: None,
        });
        Ok((index, true))
    }

    /// What EC2 refuses before it looks at the token.
    fn faulty(&self, request: &LaunchRequest) -> Option<&'static str> {
        let subnet = subnets().into_iter().find(|s| s.id == request.subnet_id);
        if subnet.is_none_or(|s| s.zone != request.offering.zone) {
            return Some("InvalidSubnetID.NotFound");
        }
        if !self.images.contains(&request.image.id.as_str()) {
            return Some("InvalidAMIID.NotFound");
        }
        let exists = |id: &String| self.firewall.groups.iter().any(|g| g.id == *id);
        (!request.group_ids.iter().all(exists)).then_some("InvalidGroup.NotFound")
    }

    pub fn end(&mut self, id: &str, reason: &'static str, at: Timestamp) {
        let machine = self.machine(id);
        if machine.is_live() {
            machine.ended = Some(End { at, reason });
        }
    }

    pub fn image(&self, id: &str) -> Option<Image> {
        self.images.contains(&id).then(|| Image {
            id: id.to_owned(),
            root_device: "/dev/sda1".into(),
        })
    }
}

pub fn is_ours(tags: &Tags) -> bool {
    let is = |key: &str, value: &str| tags.get(key).is_some_and(|v| v == value);
    is(TAG_KEYS.cluster, CLUSTER) && is(TAG_KEYS.pool_uid, POOL_UID)
}

pub fn subnets() -> Vec<Subnet> {
    ["us-east-1a", "us-east-1b"]
        .map(|zone| Subnet {
            id: format!("subnet-{zone}"),
            zone: zone.into(),
            vpc_id: VPC.into(),
        })
        .into()
}
