//! What stays of a workspace on EC2 that does not run, and how it goes on.

use std::collections::BTreeMap;

use api::home::HomeOnDelete;
use api::policy::WorkspacePolicy;
use function_runtime::desired::Composed;
use function_runtime::object::ObservedObject;
use function_workspace::cause::Cause;
use function_workspace::lifecycle::activity::Reported;
use function_workspace::placed::Leftovers;
use serde_json::{Value, json};

use crate::compose::seen::Seen;
use crate::finding::{Finding, Outlook, STARTING};
use crate::on_demand::instance_state::{self, InstanceState};
use crate::on_demand::{home, instance, usages};
use crate::resource_names;
use crate::spot;

/// A workspace's resources at rest.
#[derive(Clone, Debug)]
pub struct Rest {
    /// By key.
    pub resources: BTreeMap<String, Composed>,
    /// The machines that still run.
    pub left: Vec<String>,
    /// The stopped instance that starts again, where there is one.
    pub instance_id: Option<String>,
    /// The home volume, where there is one.
    pub home: Option<home::Finding>,
    /// Whether it stays.
    pub keeps_home: bool,
}

impl<'a> Seen<'a> {
    /// Whether there is a machine that costs money.
    pub fn has_machine(&self) -> bool {
        !self.machines().is_empty()
    }

    /// What the agent of the machine said, that of the last call first.
    pub fn reported(&self, policy: &WorkspacePolicy) -> Reported<'_> {
        if policy.lifecycle.agent.is_none() {
            return Reported::NoAgent("input.lifecycle.agent");
        }
        let of_pools = self.pools.values().flat_map(|pool| {
            let running = pool.running();
            running.map(|i| (i.id.as_str(), i.activity.as_deref()))
        });
        let of_instances = self.instances.values().filter_map(|i| {
            let report = i.at_provider_entry("tagsAll", activity_report::REPORT);
            Some((instance::id(*i)?, report))
        });
        let mut machines: Vec<_> = of_pools.chain(of_instances).collect();
        machines.sort_by_key(|(id, _)| Some(*id) != self.recorded);
        let report = machines.into_iter().next().and_then(|(_, report)| report);
        report.map_or(Reported::Nothing, Reported::Text)
    }

    /// Everything that is observed, at rest: pools have no instance, instances are off.
    pub fn at_rest(&self, leftovers: Leftovers, policy: &WorkspacePolicy, namespace: &str) -> Rest {
        let deletes = leftovers == Leftovers::Go;
        let keeps_home = !deletes || policy.home.on_delete == HomeOnDelete::Retain;
        let mut objects = BTreeMap::new();
        let mut left = Vec::new();
        for (key, observed) in self.observed {
            let kept = if let Some(pool) = self.pools.get(key.as_str()) {
                left.extend(pool.alive().map(|i| i.id.clone()));
                let stays = !deletes || (keeps_home && pool.has_home);
                stays.then(|| without_instances(self.kept(key, observed)))
            } else if let Some(instance) = self.instances.get(key.as_str()) {
                left.extend(self.runs(*instance).map(str::to_owned));
                let stays = !deletes || self.is_draining(key, self.home.exists());
                stays.then(|| {
                    objects.extend(instance_state::desired(
                        *instance,
                        namespace,
                        InstanceState::Stopped,
                        policy,
                    ));
                    let mut object = self.kept(key, observed);
                    instance_state::mark(&mut object, self.instance_state_of(*instance));
                    object
                })
            } else if key.starts_with(resource_names::INSTANCE_STATE_PREFIX)
                || key.starts_with(resource_names::USAGE_PREFIX)
            {
                None
            } else if key.starts_with(resource_names::ATTACHMENT_PREFIX) {
                (!deletes).then(|| self.kept(key, observed))
            } else if key == resource_names::HOME {
                let attached = self
                    .observed
                    .keys()
                    .any(|k| k.starts_with(resource_names::ATTACHMENT_PREFIX));
                (keeps_home || attached).then(|| self.kept(key, observed))
            } else {
                Some(self.kept(key, observed))
            };
            objects.extend(kept.map(|object| (key.clone(), object)));
        }
        objects.extend(usages::usages(namespace, self.observed));
        let off = self.instances.values().find(|i| !instance::is_lost(**i));
        let resources = objects.into_iter().map(|(key, object)| {
            let ready = self.is_in_order(&key);
            (key, Composed { object, ready })
        });
        Rest {
            resources: resources.collect(),
            left,
            instance_id: off
                .filter(|_| !deletes)
                .and_then(|i| instance::id(*i))
                .map(str::to_owned),
            home: self.home_at_rest(off.copied(), keeps_home),
            keeps_home,
        }
    }

    /// The state that an instance has reached, where this function has a hand in it.
    pub(super) fn instance_state_of(&self, instance: ObservedObject<'_>) -> Option<&'a str> {
        let observed = self
            .observed
            .get(&instance_state::key(instance::id(instance)?))?;
        ObservedObject::new(observed).at_provider("state")
    }

    /// Whether the instance was turned off here and does not run again yet.
    pub(super) fn is_off(&self, instance: ObservedObject<'_>) -> bool {
        let id = instance::id(instance);
        let has_power = id.is_some_and(|id| self.observed.contains_key(&instance_state::key(id)));
        let runs = instance::state(instance) == Some("running")
            && self.instance_state_of(instance) == Some(InstanceState::Running.as_str());
        has_power && !runs
    }

    /// What an instance shows. While it is turned on, its provider may still show what
    /// it was before: an address that somebody else may have.
    pub(super) fn finding_of(
        &self,
        instance: ObservedObject<'_>,
        recorded: Option<&str>,
    ) -> Finding {
        let seen = instance::finding(Some(instance), recorded);
        match instance::id(instance) {
            Some(id) if self.is_off(instance) => Finding {
                machine: None,
                in_order: false,
                outlook: Outlook::Waiting,
                cause: Cause::new(STARTING, format!("waiting for {id} to start again")),
            },
            _ => seen,
        }
    }

    /// The id of an instance that is not off yet.
    fn runs<'i>(&self, instance: ObservedObject<'i>) -> Option<&'i str> {
        let id = instance::id(instance)?;
        let is_off = instance::state(instance) == Some("stopped")
            || self.instance_state_of(instance) == Some(InstanceState::Stopped.as_str());
        (!is_off && !instance::is_lost(instance)).then_some(id)
    }

    fn home_at_rest(&self, off: Option<ObservedObject<'_>>, stays: bool) -> Option<home::Finding> {
        let mut pools = self.pools.values();
        let of_pool = pools.find(|pool| pool.has_home).map(spot::home::finding);
        let of_aws = || self.home.exists().then(|| self.home.finding(off));
        of_pool.or_else(of_aws).filter(|_| stays)
    }
}

fn without_instances(mut pool: Value) -> Value {
    let wanted = pool.pointer_mut("/spec/forProvider");
    if let Some(wanted) = wanted.and_then(Value::as_object_mut) {
        let none = json!({"minimum": 0, "maximum": 0, "idle": 0});
        wanted.insert("size".to_owned(), none);
    }
    pool
}
