//! EC2's instances, as AWS documents them: idempotent tokens, states that take
//! their time, and lists that learn of an instance later than its creator.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use provider_aws::{Ec2Error, Image, LaunchPlace, LaunchRequest, Subnet, Tags, TemplateRequest};
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
pub const TEMPLATE_MISSING: &str = "InvalidLaunchTemplateName.NotFoundException";
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
    pub offering: Offering,
    pub image_id: String,
    pub group_ids: Vec<String>,
    /// Its tags at present.
    pub tags: Tags,
    pub born: Timestamp,
    pub listed_from: Timestamp,
    pub runs_from: Timestamp,
    pub is_stopped: bool,
    pub is_impaired: bool,
    /// When AWS takes it back, as it announced.
    pub ends_at: Option<Timestamp>,
    pub ended: Option<End>,
}

/// What a token stands for: EC2 answers it again, whatever became of the instances.
#[derive(Clone, Debug)]
pub struct Fleet {
    pub request: LaunchRequest,
    pub machines: Vec<usize>,
    pub refusals: Vec<(Offering, &'static str)>,
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
    /// Launches that were granted, by token.
    pub fleets: BTreeMap<String, Fleet>,
    /// Launch templates by name.
    pub templates: BTreeMap<String, TemplateRequest>,
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
            launch: self.tags.get(TAG_KEYS.launch)?.parse().ok()?,
            generation: self.tags.get(TAG_KEYS.generation).cloned(),
            lease: self.tags.get(TAG_KEYS.lease).cloned(),
            lease_digest: self.tags.get(TAG_KEYS.lease_digest).cloned(),
            offering: self.offering.clone(),
            image_id: self.image_id.clone(),
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

    /// `CreateFleet` without the faults. Answers what is new of it.
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
        if let Some(code) = self.faulty(request, &template) {
            return Err(error(OPERATION, code));
        }
        if let Some(earlier) = self.fleets.get(&request.token) {
            return if earlier.request == *request {
                Ok(Vec::new())
            } else {
                Err(error(OPERATION, "IdempotentParameterMismatch"))
            };
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
            let offering = Offering {
                instance_type: place.instance_type.clone(),
                zone: place.zone.clone(),
                market: request.market,
            };
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
        let later = |duration| now.saturating_add(duration).unwrap();
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
            ends_at: None,
            ended: None,
        });
    }

    /// What EC2 refuses before it looks at the token.
    fn faulty(&self, request: &LaunchRequest, template: &TemplateRequest) -> Option<&'static str> {
        let known = subnets();
        let is_there = |place: &LaunchPlace| {
            let is_it = |s: &Subnet| s.id == place.subnet_id && s.zone == place.zone;
            known.iter().any(is_it)
        };
        if !request.places.iter().all(is_there) {
            return Some("InvalidSubnetID.NotFound");
        }
        if !self.images.contains(&template.image.id.as_str()) {
            return Some("InvalidAMIID.NotFound");
        }
        let exists = |id: &String| self.firewall.groups.iter().any(|g| g.id == *id);
        (!template.group_ids.iter().all(exists)).then_some("InvalidGroup.NotFound")
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
