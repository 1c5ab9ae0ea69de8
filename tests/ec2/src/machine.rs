//! One instance, with the state that EC2 shows of it.

use jiff::{SignedDuration, Timestamp};
use provider_aws::{TagKeys, Tags};
use provider_core::{Instance, InstanceState, Offering, ScheduledEvent};

/// The time from the end of an instance until EC2 shows it as terminated.
const SHUTTING_DOWN: SignedDuration = SignedDuration::from_secs(35);
/// How long EC2 lists terminated instances.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);
/// The actual state of an instance. EC2's lists may not show it yet.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its id.
    pub id: String,
    /// Its type, zone and market.
    pub offering: Offering,
    /// The image that it booted.
    pub image_id: String,
    /// Its security groups.
    pub group_ids: Vec<String>,
    /// Its present tags.
    pub tags: Tags,
    /// The time of its launch.
    pub born: Timestamp,
    /// The time from which lists show it.
    pub listed_from: Timestamp,
    /// The time until which it is pending.
    pub runs_from: Timestamp,
    /// Whether it has been stopped.
    pub is_stopped: bool,
    /// Whether it fails EC2's status checks.
    pub is_impaired: bool,
    /// The event that AWS has scheduled for it; none without one.
    pub scheduled: Option<ScheduledEvent>,
    /// Whether it has termination protection, or stop protection: EC2 refuses its end with the same
    /// code.
    pub is_protected: bool,
    /// The output on its console.
    pub console: Vec<u8>,
    /// The time at which AWS takes it back, if AWS has announced an interruption.
    pub ends_at: Option<Timestamp>,
    /// Its end, if it has ended.
    pub ended: Option<End>,
}

/// The end of an instance.
#[derive(Clone, Debug)]
pub struct End {
    /// The time of the end.
    pub at: Timestamp,
    /// EC2's state reason.
    pub reason: &'static str,
    /// What EC2 says about it.
    pub message: &'static str,
}

impl Machine {
    /// The state that EC2 shows.
    pub fn state(&self, now: Timestamp) -> InstanceState {
        match &self.ended {
            Some(end) if now.duration_since(end.at) < SHUTTING_DOWN => InstanceState::ShuttingDown,
            Some(_) => InstanceState::Terminated,
            None if self.is_stopped => InstanceState::Stopped,
            None if now < self.runs_from => InstanceState::Pending,
            None => InstanceState::Running,
        }
    }

    /// Whether it has not ended.
    pub fn is_live(&self) -> bool {
        self.ended.is_none()
    }

    /// Whether lists show it. They show it neither at once after its launch nor long after its end.
    pub fn is_listed(&self, now: Timestamp) -> bool {
        let forgotten = |end: &End| now.duration_since(end.at) > SHUTTING_DOWN + REMEMBERED;
        self.listed_from <= now && !self.ended.as_ref().is_some_and(forgotten)
    }

    /// The instance as the crate `provider-aws` reads it; `None` if it lacks a pool's tags.
    pub fn read(&self, keys: &TagKeys, now: Timestamp) -> Option<Instance> {
        let state = self.state(now);
        let is_running = state == InstanceState::Running;
        let tags = self.tags.iter();
        let tags = tags.map(|(key, value)| (key.as_str(), value.as_str()));
        Some(Instance {
            id: self.id.clone(),
            pool_uid: self.tags.get(keys.pool_uid)?.clone(),
            launch: self.tags.get(keys.launch)?.parse().ok()?,
            generation: self.tags.get(keys.generation).cloned(),
            lease: self.tags.get(keys.lease).cloned(),
            lease_digest: self.tags.get(keys.lease_digest).cloned(),
            authorized_keys: keys.authorized_keys(tags),
            activity: self.tags.get(keys.activity).cloned(),
            host_key: self.tags.get(keys.host_key).cloned(),
            setup: self.tags.get(keys.setup).cloned(),
            offering: self.offering.clone(),
            image_id: self.image_id.clone(),
            state,
            state_reason: self.ended.as_ref().map(|end| end.reason.to_owned()),
            state_message: self.ended.as_ref().map(|end| end.message.to_owned()),
            public_ip: is_running.then(|| "203.0.113.7".to_owned()),
            private_ip: self.is_live().then(|| "10.0.0.7".to_owned()),
            launched_at: Timestamp::from_second(self.born.as_second()).ok(),
        })
    }
}
