//! The observed `SpotPool`: what runs, and what the provider says about it.

use api::condition::{self, Condition, ConditionStatus, LAUNCHED, READY, SYNCED};
use api::pool::{PoolInstance, SpotPoolParameters, SpotPoolStatus};
use function_runtime::object::ObservedObject;
use provider_core::{ErrorClass, InstanceState};
use serde::Deserialize;
use serde_json::Value;

use crate::unreadable::{self, Unreadable};

const KIND: &str = "SpotPool";
const PROVIDER: &str = "provider-gpu-spot";

/// An observed pool.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedPool {
    /// Its name.
    pub name: String,
    /// Somebody is deleting it.
    pub deleting: bool,
    /// What its spec asks the provider for.
    pub parameters: SpotPoolParameters,
    /// What the provider reported.
    pub status: SpotPoolStatus,
    /// Why the report has an unknown shape.
    pub unreadable: Option<String>,
}

impl ObservedPool {
    /// Reads a pool. A report in an unknown shape leaves the pool not ready; it
    /// says nothing about the instance.
    ///
    /// # Errors
    ///
    /// The spec has an unknown shape: it may ask for a home that this function does not see.
    pub fn read(pool: &Value) -> Result<Self, Unreadable> {
        let object = ObservedObject::new(pool);
        let parameters = unreadable::read(pool, &["spec", "forProvider"], KIND, PROVIDER)?;
        let status = match pool.get("status") {
            None => Ok(SpotPoolStatus::default()),
            Some(status) => SpotPoolStatus::deserialize(status),
        };
        Ok(Self {
            name: object.name().to_owned(),
            deleting: object.deleting(),
            parameters,
            unreadable: status.as_ref().err().map(ToString::to_string),
            status: status.unwrap_or_default(),
        })
    }

    /// Whether it has a home volume.
    pub fn has_home(&self) -> bool {
        self.parameters.home.is_some()
    }

    /// The size of that volume.
    pub fn home_size_gib(&self) -> Option<i32> {
        self.parameters.home.as_ref().map(|home| home.size_gib)
    }

    /// Whether it is to have an instance.
    pub fn is_on(&self) -> bool {
        self.parameters.size.minimum > 0
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
        self.instances_in(|state| state == Some(InstanceState::Running))
    }

    /// The instances that are not gone.
    pub fn alive(&self) -> impl Iterator<Item = &PoolInstance> {
        self.instances_in(|state| state != Some(InstanceState::Terminated))
    }

    /// The instances that run or are about to.
    pub fn starting_or_running(&self) -> impl Iterator<Item = &PoolInstance> {
        use InstanceState::{Pending, Running};
        self.instances_in(|state| matches!(state, Some(Pending | Running)))
    }

    /// The instance that was launched last, of those that run or are about to.
    pub fn newest(&self) -> Option<&PoolInstance> {
        self.starting_or_running()
            .max_by_key(|instance| (instance.launch, &instance.id))
    }

    /// Whether somebody may have worked on an instance of it: one that is neither
    /// new nor at its end.
    pub fn may_hold_work(&self) -> bool {
        use InstanceState::{Pending, ShuttingDown, Terminated};
        let holds_none = |state| matches!(state, Some(Pending | ShuttingDown | Terminated));
        self.instances_in(|state| !holds_none(state))
            .next()
            .is_some()
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

    /// The last launch's failure, where trying again cannot cure it: a person has to change
    /// configuration, permissions or a quota. The reasons of `Launched` are classes of
    /// errors.
    pub fn terminal_launch_failure(&self) -> Option<&Condition> {
        let condition = self.failing(LAUNCHED)?;
        let class = ErrorClass::parse(&condition.reason)?;
        class.needs_person().then_some(condition)
    }

    fn instances_in(
        &self,
        is_asked: impl Fn(Option<InstanceState>) -> bool,
    ) -> impl Iterator<Item = &PoolInstance> {
        let instances = self.status.at_provider.instances.iter();
        instances.filter(move |instance| is_asked(InstanceState::parse(&instance.state)))
    }

    fn holds(&self, type_: &str) -> bool {
        condition::find(&self.status.conditions, type_)
            .is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// Instances in subnets of the platform's choice may be reached by their private
    /// addresses only.
    fn address<'a>(&self, instance: &'a PoolInstance) -> Option<&'a str> {
        let has_subnets = self.parameters.subnet_ids.is_some();
        let private = instance.private_ip.as_deref().filter(|_| has_subnets);
        instance.public_ip.as_deref().or(private)
    }
}
