//! What is observed of a workspace on EC2, and what the last call recorded of it.

use std::collections::BTreeMap;

use api::condition::READY;
use api::workspace::{GpuDevWorkspaceStatus, HomeStatus};
use function_runtime::keep;
use function_runtime::object::ObservedObject;
use function_runtime::request::Request;
use serde_json::Value;

use crate::on_demand::home::{self, Home};
use crate::on_demand::usages;
use crate::resource_names;
use crate::spot::ObservedPool;

/// What is observed, and what the last call recorded of it.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    pub(super) observed: &'a BTreeMap<String, Value>,
    pub(super) pools: BTreeMap<&'a str, ObservedPool>,
    pub(super) instances: BTreeMap<&'a str, ObservedObject<'a>>,
    pub(super) home: Home<'a>,
    pub(super) recorded: Option<&'a str>,
    pub(super) recorded_home: Option<&'a HomeStatus>,
}

impl<'a> Seen<'a> {
    /// Looks at a request. `previous` is the XR's status as observed.
    pub fn new(request: &'a Request, previous: &'a GpuDevWorkspaceStatus) -> Self {
        let observed = &request.observed;
        let is_pool =
            |key: &str| key == resource_names::POOL || key.starts_with(resource_names::POOL_PREFIX);
        let entries = || observed.iter().map(|(key, value)| (key.as_str(), value));
        Self {
            observed,
            pools: entries()
                .filter(|(key, _)| is_pool(key))
                .map(|(key, pool)| (key, ObservedPool::read(pool)))
                .collect(),
            instances: entries()
                .filter(|(key, _)| key.starts_with(resource_names::INSTANCE_PREFIX))
                .map(|(key, instance)| (key, ObservedObject::new(instance)))
                .collect(),
            home: Home::new(
                observed,
                home::attachments(request),
                previous.home.as_ref().filter(|home| home.pool.is_none()),
            ),
            recorded: previous.instance_id.as_deref(),
            recorded_home: previous.home.as_ref(),
        }
    }

    /// The image that an existing compute resource boots.
    pub fn booted_image(&self) -> Option<&str> {
        let of_pools = self
            .pools
            .values()
            .find_map(|pool| pool.image_id.as_deref());
        of_pools.or_else(|| self.instances.values().find_map(|i| i.for_provider("ami")))
    }

    /// Whether an instance has to wait for its home volume to be detached.
    pub(super) fn is_draining(&self, key: &str, has_home: bool) -> bool {
        let Some(instance) = self.instances.get(key) else {
            return false;
        };
        let id = instance.at_provider("id");
        usages::is_used(key, self.observed)
            || id.is_some_and(|id| self.home.may_be_attached_to(id, has_home))
    }

    /// Adds the observed resources that are named and not desired yet, as they
    /// are.
    pub(super) fn keep(&self, objects: &mut BTreeMap<String, Value>, named: impl Fn(&str) -> bool) {
        for (key, observed) in self.observed {
            if named(key) && !objects.contains_key(key) {
                objects.insert(key.clone(), self.kept(key, observed));
            }
        }
    }

    pub(super) fn kept(&self, key: &str, observed: &Value) -> Value {
        if key == resource_names::HOME {
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
                .any(|i| i.at_provider("id") == Some(id))
    }

    /// Whether the provider of an observed resource says that all is well.
    pub(super) fn is_in_order(&self, key: &str) -> bool {
        let Some(observed) = self.observed.get(key) else {
            return false;
        };
        let observed = ObservedObject::new(observed);
        if key.starts_with(resource_names::USAGE_PREFIX) {
            // A Usage is Ready and never Synced.
            observed.holds(READY)
        } else {
            observed.is_ready()
        }
    }
}
