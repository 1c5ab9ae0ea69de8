//! The observed `SpotPool`.

use api::condition::{self, Condition, ConditionStatus, LAUNCHED, READY, SYNCED};
use api::home::HomeOnDelete;
use api::pool::{PoolInstance, SpotPoolParameters, SpotPoolStatus};
use function_runtime::json::Json;
use function_runtime::object::ObservedObject;
use provider_core::{ErrorClass, InstanceState};

use crate::finding;
use crate::prices::HomeVolume;
use crate::unreadable::{self, Unreadable};

/// The kind of pools.
pub const KIND: &str = "SpotPool";
const PROVIDER: &str = "provider-gpu-spot";

/// An observed pool.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedPool {
    /// The name of the pool.
    pub name: String,
    /// Whether the pool is being deleted.
    pub deleting: bool,
    /// The desired fields, `spec.forProvider`.
    pub parameters: SpotPoolParameters,
    /// The status that the provider wrote.
    pub status: SpotPoolStatus,
    /// Why the status cannot be read; none if it can be read.
    pub unreadable: Option<String>,
}

impl ObservedPool {
    /// Reads a pool. If its status cannot be read, the pool is not ready, and nothing is known
    /// about its instance.
    ///
    /// # Errors
    ///
    /// The spec cannot be read. It may have a home that the function does not see.
    pub fn read(pool: &Json<'_>) -> Result<Self, Unreadable> {
        let object = ObservedObject::new(pool);
        let parameters = unreadable::read(pool, &["spec", "forProvider"], KIND, PROVIDER)?;
        let status = match pool.get("status") {
            None => Ok(SpotPoolStatus::default()),
            Some(status) => status.read(),
        };
        Ok(Self {
            name: object.name().to_owned(),
            deleting: object.deleting(),
            parameters,
            unreadable: status.as_ref().err().map(ToString::to_string),
            status: status.unwrap_or_default(),
        })
    }

    /// Whether the pool has a home volume.
    pub fn has_home(&self) -> bool {
        self.parameters.home.is_some()
    }

    /// The home volume; none if EC2 has not created it. A home that was taken out of the spec stays.
    pub fn home_volume(&self) -> Option<HomeVolume<'_>> {
        let home = self.status.at_provider.home.as_ref()?;
        let size = home.size_gib.or_else(|| self.home_size_gib())?;
        let wished = self.parameters.home.as_ref();
        Some(HomeVolume {
            id: finding::volume_id(home.volume_id.as_deref())?,
            size_gib: u64::try_from(size).ok()?,
            stays: wished.is_none_or(|home| home.on_delete == HomeOnDelete::Retain),
        })
    }

    /// The size of the home volume in GiB, as the pool's spec has it.
    pub fn home_size_gib(&self) -> Option<i32> {
        self.parameters.home.as_ref().map(|home| home.size_gib)
    }

    /// Whether the pool is to have an instance.
    pub fn is_on(&self) -> bool {
        self.parameters.size.minimum > 0
    }

    /// Whether the pool is ready. `Ready` keeps its old value when a reconcile fails, so `Synced`
    /// must be true as well.
    pub fn is_ready(&self) -> bool {
        !self.deleting && self.holds(READY) && self.holds(SYNCED)
    }

    /// The instance of the workspace and its address: the instance of the last call if it runs, or
    /// else the one with the highest launch number.
    pub fn usable(&self, current: Option<&str>) -> Option<(&PoolInstance, &str)> {
        let usable = || {
            let running = self.running();
            running.filter_map(|instance| Some((instance, self.address(instance)?)))
        };
        usable()
            .find(|(instance, _)| Some(instance.id.as_str()) == current)
            .or_else(|| usable().max_by_key(|(instance, _)| (instance.launch, &instance.id)))
    }

    /// The instances with the EC2 state `running`.
    pub fn running(&self) -> impl Iterator<Item = &PoolInstance> {
        self.instances_in(|state| state == Some(InstanceState::Running))
    }

    /// The instances that are not terminated.
    pub fn alive(&self) -> impl Iterator<Item = &PoolInstance> {
        self.instances_in(|state| state != Some(InstanceState::Terminated))
    }

    /// The instances that are pending or running.
    pub fn starting_or_running(&self) -> impl Iterator<Item = &PoolInstance> {
        use InstanceState::{Pending, Running};
        self.instances_in(|state| matches!(state, Some(Pending | Running)))
    }

    /// The pending or running instance with the highest launch number.
    pub fn newest(&self) -> Option<&PoolInstance> {
        self.starting_or_running()
            .max_by_key(|instance| (instance.launch, &instance.id))
    }

    /// Whether the owner may have worked on an instance of the pool: one that is neither pending
    /// nor ending.
    pub fn may_hold_work(&self) -> bool {
        self.instances_in(finding::may_hold_work).next().is_some()
    }

    /// The instance with an id, in any state.
    pub fn instance(&self, id: &str) -> Option<&PoolInstance> {
        let mut instances = self.status.at_provider.instances.iter();
        instances.find(|instance| instance.id == id)
    }

    /// The pool's condition of this type, if its status is `False`.
    pub fn failing(&self, type_: &str) -> Option<&Condition> {
        condition::find(&self.status.conditions, type_)
            .filter(|condition| condition.status == ConditionStatus::False)
    }

    /// The failure of the last launch, if retries are useless: a person must change configuration,
    /// permissions or a quota. The reasons of `Launched` are error classes.
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

    /// The address of an instance. Instances in subnets of the catalogue may have a private address
    /// only.
    fn address<'a>(&self, instance: &'a PoolInstance) -> Option<&'a str> {
        let has_subnets = self.parameters.subnet_ids.is_some();
        let private = finding::address(instance.private_ip.as_deref()).filter(|_| has_subnets);
        finding::address(instance.public_ip.as_deref()).or(private)
    }
}
