//! The observed resources of a workspace on EC2, and the records of the last call.

use std::collections::BTreeMap;

use api::condition::READY;
use api::policy::WorkspacePolicy;
use api::workspace::{GpuDevWorkspaceStatus, HomeStatus, WorkspaceParameters};
use function_runtime::json::Json;
use function_runtime::keep;
use function_runtime::object::ObservedObject;
use function_runtime::request::Request;
use function_workspace::bastion::Sources;
use serde_json::Value;

use crate::on_demand::home::{self, Home};
use crate::on_demand::instance_state::InstanceState;
use crate::on_demand::observed::{Group, Power};
use crate::on_demand::{OnDemandInstance, instance_state, network, usages};
use crate::spot::{self, ObservedPool};
use crate::unreadable::{Problems, Unreadable};
use crate::{keys, region, resource_names};

/// The observed resources, and the records of the last call.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    pub(super) observed: &'a BTreeMap<String, Json<'a>>,
    pub(super) pools: BTreeMap<&'a str, ObservedPool>,
    pub(super) instances: BTreeMap<&'a str, OnDemandInstance<'a>>,
    pub(super) group: Option<Group<'a>>,
    powers: BTreeMap<&'a str, Power<'a>>,
    pub(super) home: Home<'a>,
    pub(super) recorded: Option<&'a str>,
    pub(super) recorded_home: Option<&'a HomeStatus>,
    recorded_region: Option<&'a str>,
    problems: Problems,
    closed: Closed,
}

/// The ways into a machine that are closed although the machine is kept as it is observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Whether no key in tags may log in.
    pub keys: bool,
    /// The sources of the bastion, if all others are closed; none if all stay open.
    pub others_than: Option<Sources>,
}

impl<'a> Seen<'a> {
    /// Reads the observed resources of a request. `previous` is the status that the last call
    /// wrote.
    pub fn read(request: &'a Request<'a>, previous: &'a GpuDevWorkspaceStatus) -> Self {
        let observed = &request.observed;
        let mut problems = Problems::default();
        let problems = &mut problems;
        let pools = observed
            .iter()
            .filter(|(name, _)| resource_names::is_pool(name))
            .filter_map(|(name, pool)| {
                Some((name.as_str(), problems.readable(ObservedPool::read(pool))?))
            })
            .collect();
        let group = observed
            .get(resource_names::SECURITY_GROUP)
            .and_then(|group| problems.readable(Group::read(group)));
        let recorded_home = previous.home.as_ref().filter(|home| home.pool.is_none());
        Self {
            observed,
            pools,
            instances: OnDemandInstance::read_all(
                observed,
                resource_names::INSTANCE_PREFIX,
                problems,
            ),
            group,
            powers: Power::read_all(observed, resource_names::INSTANCE_STATE_PREFIX, problems),
            home: Home::read(
                observed,
                home::attachments(request),
                recorded_home,
                problems,
            ),
            recorded: previous.instance_id.as_deref().filter(|id| !id.is_empty()),
            recorded_home: previous.home.as_ref(),
            recorded_region: previous.region.as_deref(),
            problems: std::mem::take(problems),
            closed: Closed::default(),
        }
    }

    /// The same resources, with these ways into the kept machines closed.
    #[must_use]
    pub fn with_closed(self, closed: Closed) -> Self {
        Self { closed, ..self }
    }

    /// Why an observed resource cannot be read; none if all can be read.
    pub fn problem(&self) -> Option<&Unreadable> {
        self.problems.first()
    }

    /// The compute resources whose machines are not known, by composition resource name. Each may
    /// have a machine that costs money.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &'a str> {
        let names = self.observed.keys().map(String::as_str);
        names.filter(|name| {
            if resource_names::is_pool(name) {
                let pool = self.pools.get(name);
                pool.is_none_or(|pool| pool.unreadable.is_some())
            } else {
                name.starts_with(resource_names::INSTANCE_PREFIX)
                    && !self.instances.contains_key(name)
                    && !self.is_stopped(name)
            }
        })
    }

    /// Whether the `InstanceState` of an instance that cannot be read shows that it has stopped.
    fn is_stopped(&self, name: &str) -> bool {
        let id = self.observed.get(name).and_then(instance_state::id_of);
        let power = id.and_then(|id| self.powers.get(instance_state::resource_name(id).as_str()));
        let state = power.and_then(|power| power.at_provider.state.as_deref());
        state.and_then(InstanceState::parse) == Some(InstanceState::Stopped)
    }

    /// The region of the workspace: the recorded one, or else that of an observed machine, or else
    /// that of the claim or the policy.
    pub fn region<'b>(
        &'b self,
        parameters: Option<&'b WorkspaceParameters>,
        policy: Option<&'b WorkspacePolicy>,
    ) -> &'b str {
        let of_pools = self.pools.values().map(|pool| &pool.parameters.region);
        let of_instances = self.instances.values().map(|i| &i.for_provider.region);
        let mut observed = of_pools.chain(of_instances).map(String::as_str);
        let is_in = self.recorded_region;
        let is_in = is_in.or_else(|| observed.find(|region| !region.is_empty()));
        region::of(parameters, policy, is_in)
    }

    /// The AMI id that an observed compute resource boots; none without one.
    pub fn booted_image(&self) -> Option<&str> {
        let of_pools = self.pools.values().map(|pool| &pool.parameters.image.id);
        let of_instances = self.instances.values().map(|i| &i.for_provider.ami);
        let mut images = of_pools.chain(of_instances);
        images.find(|id| !id.is_empty()).map(String::as_str)
    }

    /// Whether an instance must be kept until its home volume is detached.
    pub(super) fn is_draining(&self, name: &str, has_home: bool) -> bool {
        let Some(instance) = self.instances.get(name) else {
            return false;
        };
        usages::is_used(name, self.observed)
            || instance
                .last_known_id()
                .is_some_and(|id| self.home.may_be_attached_to(id, has_home))
    }

    /// The observed `InstanceState` for an instance; none without one.
    pub(super) fn power_of(&self, instance: &OnDemandInstance<'_>) -> Option<&Power<'a>> {
        // Most workspaces have no InstanceState. The function asks for one many times in a call,
        // and its name is a hash.
        if self.powers.is_empty() {
            return None;
        }
        let name = instance_state::resource_name(instance.current_id()?);
        self.powers.get(name.as_str())
    }

    /// Adds the observed resources whose names match and that are not desired yet. They are desired
    /// as they are observed.
    pub(super) fn keep(&self, objects: &mut BTreeMap<String, Value>, named: impl Fn(&str) -> bool) {
        for (name, observed) in self.open() {
            if named(name) && !objects.contains_key(name) {
                objects.insert(name.clone(), self.kept(name, observed));
            }
        }
    }

    /// The observed resources, without the rules of a security group for sources that are closed.
    pub(super) fn open(&self) -> impl Iterator<Item = (&'a String, &'a Json<'a>)> {
        let observed = self.observed.iter();
        observed.filter(|(name, _)| !self.is_closed(name))
    }

    /// Whether a resource is the rule of a security group for a source that is closed.
    fn is_closed(&self, name: &str) -> bool {
        let is_open = |open: &Sources| {
            let mut sources = open.cidrs.iter().chain(&open.security_group_id);
            sources.any(|source| resource_names::ssh(source) == name)
        };
        let open = self.closed.others_than.as_ref();
        resource_names::is_ssh(name) && open.is_some_and(|open| !is_open(open))
    }

    /// An observed resource as it must be desired to stay as it is, but for closed ways in.
    pub(super) fn kept(&self, name: &str, observed: &Json<'_>) -> Value {
        if name == resource_names::HOME {
            home::held(observed, self.recorded_home)
        } else {
            let mut kept = keep::kept(observed);
            if resource_names::is_rule(name) {
                network::name_forgotten(&mut kept, observed);
            }
            if self.closed.keys {
                keys::remove(&mut kept);
            }
            if let Some(open) = &self.closed.others_than {
                spot::pool::open_only(&mut kept, open);
            }
            kept
        }
    }

    /// Whether an observed resource has the instance with this id.
    pub(super) fn is_there(&self, id: &str) -> bool {
        let mut pools = self.pools.values();
        pools.any(|pool| pool.instance(id).is_some())
            || self
                .instances
                .values()
                .any(|instance| instance.last_known_id() == Some(id))
    }

    /// Whether an observed resource is ready.
    pub(super) fn is_in_order(&self, name: &str) -> bool {
        let Some(observed) = self.observed.get(name) else {
            return false;
        };
        let observed = ObservedObject::new(observed);
        if name.starts_with(resource_names::USAGE_PREFIX) {
            // Crossplane sets Ready on a Usage, but never Synced.
            observed.holds(READY)
        } else {
            observed.is_ready()
        }
    }
}
