//! The observed `SpotPool`: what runs, and what the provider says about it.

use api::condition::{self, Condition, ConditionStatus, LAUNCHED, READY, SYNCED};
use api::pool::{PoolInstance, SpotPoolStatus};
use serde::Deserialize;
use serde_json::Value;

const RUNNING: &str = "running";

/// An observed pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedPool {
    /// Its name.
    pub name: String,
    /// Somebody is deleting it.
    pub deleting: bool,
    /// The image in its spec.
    pub image_id: Option<String>,
    /// The types in its spec.
    pub instance_types: Vec<String>,
    /// Whether its instances are in subnets of the platform's choice, which may
    /// be private.
    pub has_subnets: bool,
    /// Whether it has a home volume.
    pub has_home: bool,
    /// The size of that volume.
    pub home_size_gib: Option<i32>,
    /// What the provider reported.
    pub status: SpotPoolStatus,
    /// Why the report could not be read.
    pub unreadable: Option<String>,
}

impl ObservedPool {
    /// Reads a pool. A report in an unknown shape leaves the pool not ready; it
    /// says nothing about the instance.
    pub fn read(pool: &Value) -> Self {
        let for_provider = |field: &str| pool.pointer(&format!("/spec/forProvider{field}"));
        let status = pool.get("status").map(SpotPoolStatus::deserialize);
        let (status, unreadable) = match status {
            None => (SpotPoolStatus::default(), None),
            Some(Ok(status)) => (status, None),
            Some(Err(error)) => (SpotPoolStatus::default(), Some(error.to_string())),
        };
        let types = for_provider("/instanceTypes").and_then(Value::as_array);
        let name = pool.pointer("/metadata/name").and_then(Value::as_str);
        let size = for_provider("/home/sizeGiB").and_then(Value::as_f64);
        Self {
            name: name.unwrap_or_default().to_owned(),
            #[allow(
                clippy::cast_possible_truncation,
                reason = "the CRD bounds it to 16384"
            )]
            home_size_gib: size.map(|size| size as i32),
            deleting: pool.pointer("/metadata/deletionTimestamp").is_some(),
            image_id: for_provider("/image/id")
                .and_then(Value::as_str)
                .map(str::to_owned),
            instance_types: types
                .into_iter()
                .flatten()
                .filter_map(|t| t.as_str().map(str::to_owned))
                .collect(),
            has_subnets: for_provider("/subnetIds").is_some(),
            has_home: for_provider("/home").is_some(),
            status,
            unreadable,
        }
    }

    /// The pool's own readiness: `Ready` alone is kept from an earlier time when
    /// reconciling fails, so `Synced` has to agree.
    pub fn is_ready(&self) -> bool {
        !self.deleting && self.holds(READY) && self.holds(SYNCED)
    }

    /// The instance that the workspace is, and its address: the one of the last
    /// call while it runs, or else the one that was launched last.
    pub fn usable(&self, current: Option<&str>) -> Option<(&PoolInstance, &str)> {
        let usable = || {
            let running = self.running();
            running.filter_map(|instance| Some((instance, self.address(instance)?)))
        };
        usable()
            .find(|(instance, _)| Some(instance.id.as_str()) == current)
            .or_else(|| usable().max_by_key(|(instance, _)| (instance.launch, &instance.id)))
    }

    /// The instances that EC2 calls running.
    pub fn running(&self) -> impl Iterator<Item = &PoolInstance> {
        let instances = self.status.at_provider.instances.iter();
        instances.filter(|instance| instance.state == RUNNING)
    }

    /// The instances that are not gone.
    pub fn alive(&self) -> impl Iterator<Item = &PoolInstance> {
        let instances = self.status.at_provider.instances.iter();
        instances.filter(|instance| instance.state != "terminated")
    }

    /// The instance that is on its way, launched last.
    pub fn starting(&self) -> Option<&PoolInstance> {
        let instances = self.status.at_provider.instances.iter();
        instances
            .filter(|instance| instance.state == "pending" || instance.state == RUNNING)
            .max_by_key(|instance| (instance.launch, &instance.id))
    }

    /// Whether somebody may have worked on an instance of it: one that is neither
    /// new nor at its end.
    pub fn may_hold_work(&self) -> bool {
        let ended = |state: &str| matches!(state, "pending" | "shutting-down" | "terminated");
        let mut instances = self.status.at_provider.instances.iter();
        instances.any(|instance| !ended(&instance.state))
    }

    /// An instance by its id, in whatever state.
    pub fn instance(&self, id: &str) -> Option<&PoolInstance> {
        let mut instances = self.status.at_provider.instances.iter();
        instances.find(|instance| instance.id == id)
    }

    /// The pool's condition of a type, where it is `False`.
    pub fn failing(&self, type_: &str) -> Option<&Condition> {
        condition::find(&self.status.conditions, type_)
            .filter(|condition| condition.status == ConditionStatus::False)
    }

    /// The last launch's failure, where there is one.
    pub fn launch_failure(&self) -> Option<(&Condition, LaunchFailure)> {
        let condition = self.failing(LAUNCHED)?;
        Some((condition, LaunchFailure::of(&condition.reason)))
    }

    fn holds(&self, type_: &str) -> bool {
        condition::find(&self.status.conditions, type_)
            .is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    fn address<'a>(&self, instance: &'a PoolInstance) -> Option<&'a str> {
        let private = instance.private_ip.as_deref().filter(|_| self.has_subnets);
        instance.public_ip.as_deref().or(private)
    }
}

/// Whether trying again can cure a failed launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchFailure {
    /// A person has to change something: configuration, permissions, a quota.
    NeedsPerson,
    /// The provider tries again: capacity, throttling, anything transient.
    Retried,
}

impl LaunchFailure {
    /// The class by the reasons of the `Launched` condition.
    fn of(reason: &str) -> Self {
        match reason {
            "Configuration" | "Denied" | "Quota" => Self::NeedsPerson,
            _ => Self::Retried,
        }
    }
}
