//! What is observed of a workspace on EC2, and what the last call recorded of it.

use std::collections::BTreeMap;

use api::condition::READY;
use api::workspace::{GpuDevWorkspaceStatus, HomeStatus};
use function_runtime::keep;
use function_runtime::object::ObservedObject;
use function_runtime::request::Request;
use serde_json::Value;

use crate::on_demand::home::{self, Home};
use crate::on_demand::observed::{Group, Power};
use crate::on_demand::{OnDemandInstance, instance_state, usages};
use crate::resource_names;
use crate::spot::ObservedPool;
use crate::unreadable::Unreadable;

/// What is observed, and what the last call recorded of it.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    pub(super) observed: &'a BTreeMap<String, Value>,
    pub(super) pools: BTreeMap<&'a str, ObservedPool>,
    pub(super) instances: BTreeMap<&'a str, OnDemandInstance<'a>>,
    pub(super) group: Option<Group<'a>>,
    powers: BTreeMap<&'a str, Power<'a>>,
    pub(super) home: Home<'a>,
    pub(super) recorded: Option<&'a str>,
    pub(super) recorded_home: Option<&'a HomeStatus>,
}

impl<'a> Seen<'a> {
    /// Reads a request. `previous` is the XR's status as observed.
    ///
    /// # Errors
    ///
    /// An observed resource is unreadable.
    pub fn read(
        request: &'a Request,
        previous: &'a GpuDevWorkspaceStatus,
    ) -> Result<Self, Unreadable> {
        let observed = &request.observed;
        let pools = observed
            .iter()
            .filter(|(name, _)| resource_names::is_pool(name))
            .map(|(name, pool)| Ok((name.as_str(), ObservedPool::read(pool)?)));
        let group = observed
            .get(resource_names::SECURITY_GROUP)
            .map(Group::read);
        Ok(Self {
            observed,
            pools: pools.collect::<Result<_, Unreadable>>()?,
            instances: OnDemandInstance::read_all(observed, resource_names::INSTANCE_PREFIX)?,
            group: group.transpose()?,
            powers: Power::read_all(observed, resource_names::INSTANCE_STATE_PREFIX)?,
            home: Home::read(
                observed,
                home::attachments(request),
                previous.home.as_ref().filter(|home| home.pool.is_none()),
            )?,
            recorded: previous.instance_id.as_deref(),
            recorded_home: previous.home.as_ref(),
        })
    }

    /// The image that an existing compute resource boots.
    pub fn booted_image(&self) -> Option<&str> {
        let mut of_pools = self
            .pools
            .values()
            .map(|pool| pool.parameters.image.id.as_str());
        let of_instances = self.instances.values().map(|i| i.for_provider.ami.as_str());
        of_pools
            .next()
            .or_else(|| of_instances.into_iter().find(|ami| !ami.is_empty()))
    }

    /// Whether an instance has to wait for its home volume to be detached.
    pub(super) fn is_draining(&self, name: &str, has_home: bool) -> bool {
        let Some(instance) = self.instances.get(name) else {
            return false;
        };
        usages::is_used(name, self.observed)
            || instance
                .last_known_id()
                .is_some_and(|id| self.home.may_be_attached_to(id, has_home))
    }

    /// The `InstanceState` of an instance, where there is one.
    pub(super) fn power_of(&self, instance: &OnDemandInstance<'_>) -> Option<&Power<'a>> {
        let name = instance_state::resource_name(instance.current_id()?);
        self.powers.get(name.as_str())
    }

    /// Adds the observed resources that are named and not desired yet, as they
    /// are.
    pub(super) fn keep(&self, objects: &mut BTreeMap<String, Value>, named: impl Fn(&str) -> bool) {
        for (name, observed) in self.observed {
            if named(name) && !objects.contains_key(name) {
                objects.insert(name.clone(), self.kept(name, observed));
            }
        }
    }

    pub(super) fn kept(&self, name: &str, observed: &Value) -> Value {
        if name == resource_names::HOME {
            home::held(observed, self.recorded_home)
        } else {
            keep::kept(observed)
        }
    }

    /// Whether anything observed stands for the machine.
    pub(super) fn is_there(&self, id: &str) -> bool {
        let mut pools = self.pools.values();
        pools.any(|pool| pool.instance(id).is_some())
            || self
                .instances
                .values()
                .any(|instance| instance.last_known_id() == Some(id))
    }

    /// Whether the provider of an observed resource says that all is well.
    pub(super) fn is_in_order(&self, name: &str) -> bool {
        let Some(observed) = self.observed.get(name) else {
            return false;
        };
        let observed = ObservedObject::new(observed);
        if name.starts_with(resource_names::USAGE_PREFIX) {
            // A Usage is Ready and never Synced.
            observed.holds(READY)
        } else {
            observed.is_ready()
        }
    }
}
