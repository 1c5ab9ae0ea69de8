//! Workspaces on EC2 that do not run: their remaining resources, and how they start again.

use std::collections::BTreeMap;

use api::home::HomeOnDelete;
use api::policy::WorkspacePolicy;
use function_runtime::desired::Composed;
use function_runtime::outcome::Refusal;
use function_workspace::cause::{Cause, Reason};
use function_workspace::lifecycle::activity::Reported;
use function_workspace::placed::Leftovers;
use provider_core::InstanceState as Ec2State;
use serde_json::Value;

use crate::compose::seen::Seen;
use crate::finding::{Finding, Outlook};
use crate::on_demand::failure::Failure;
use crate::on_demand::instance_state::{self, InstanceState};
use crate::on_demand::observed::Group;
use crate::on_demand::{self, OnDemandInstance, home};
use crate::resource_names;
use crate::spot;

/// The resources of a workspace that does not run.
#[derive(Clone, Debug)]
pub struct AtRest {
    /// The resources, by composition resource name.
    pub resources: BTreeMap<String, Composed>,
    /// The ids of machines that still run.
    pub left: Vec<String>,
    /// Why the provider cannot stop one of them; none if it reports no failure.
    pub hindrance: Option<Cause>,
    /// The id of the stopped instance that starts again; none without one.
    pub instance_id: Option<String>,
    /// The state of the home volume; none if the workspace has no home.
    pub home: Option<home::Finding>,
    /// Whether the home is kept.
    pub keeps_home: bool,
}

impl Seen<'_> {
    /// The last report of the machine's agent. The machine of the last call comes first. An
    /// agent's report counts also while the policy cannot be read.
    pub fn reported(&self, policy: Option<&WorkspacePolicy>) -> Reported<'_> {
        if policy.is_some_and(|policy| policy.lifecycle.agent.is_none()) {
            return Reported::NoAgent("input.lifecycle.agent");
        }
        let of_pools = self.pools.values().flat_map(|pool| {
            let running = pool.running();
            running.map(|i| (i.id.as_str(), i.activity.as_deref()))
        });
        let instances = self.instances.values();
        let of_instances = instances.filter_map(|i| Some((i.current_id()?, i.report())));
        let mut machines: Vec<_> = of_pools.chain(of_instances).collect();
        machines.sort_by_key(|(id, _)| Some(*id) != self.recorded);
        let report = machines.into_iter().next().and_then(|(_, report)| report);
        report.map_or(Reported::Nothing, Reported::Text)
    }

    /// All observed resources of a workspace that does not run: pools have no instances, and
    /// on-demand instances are stopped.
    ///
    /// # Errors
    ///
    /// A resource cannot be written as JSON.
    pub fn at_rest(
        &self,
        leftovers: Leftovers,
        policy: &WorkspacePolicy,
        namespace: &str,
    ) -> Result<AtRest, Refusal> {
        let deletes = leftovers == Leftovers::Go;
        let keeps_home = !deletes || policy.home.on_delete == HomeOnDelete::Retain;
        let mut objects = BTreeMap::new();
        let mut left = Vec::new();
        for (name, observed) in self.open() {
            let kept = if let Some(pool) = self.pools.get(name.as_str()) {
                left.extend(pool.alive().map(|i| i.id.clone()));
                let stays = !deletes || (keeps_home && pool.has_home());
                stays.then(|| spot::pool::without_instances(self.kept(name, observed)))
            } else if let Some(instance) = self.instances.get(name.as_str()) {
                left.extend(self.runs(instance).map(str::to_owned));
                if deletes && !self.is_draining(name, self.home.exists()) {
                    continue;
                }
                let stopped = InstanceState::Stopped;
                let config = &policy.on_demand_provider_config_ref;
                let off = instance_state::desired(instance, namespace, stopped, config)?;
                objects.extend(off);
                let mut object = self.kept(name, observed);
                instance_state::mark(&mut object, self.state_word_of(instance));
                Some(object)
            } else if name.starts_with(resource_names::INSTANCE_STATE_PREFIX)
                || name.starts_with(resource_names::USAGE_PREFIX)
            {
                None
            } else if name.starts_with(resource_names::ATTACHMENT_PREFIX) {
                (!deletes).then(|| self.kept(name, observed))
            } else if name == resource_names::HOME {
                let attached = self
                    .observed
                    .keys()
                    .any(|k| k.starts_with(resource_names::ATTACHMENT_PREFIX));
                (keeps_home || attached).then(|| self.kept(name, observed))
            } else {
                Some(self.kept(name, observed))
            };
            objects.extend(kept.map(|object| (name.clone(), object)));
        }
        objects.extend(self.usages(namespace)?);
        Ok(self.with(objects, left, leftovers, keeps_home))
    }

    /// All observed resources of a workspace that does not run, if the policy or a resource cannot
    /// be read. The machines end, and everything else stays as it is observed.
    ///
    /// # Errors
    ///
    /// A resource cannot be written as JSON.
    pub fn at_rest_as_observed(&self) -> Result<AtRest, Refusal> {
        let mut objects = BTreeMap::new();
        for (name, observed) in self.open() {
            let kept = self.kept(name, observed);
            let object = if resource_names::is_pool(name) {
                spot::pool::without_instances(kept)
            } else {
                kept
            };
            objects.entry(name.clone()).or_insert(object);
            if name.starts_with(resource_names::INSTANCE_PREFIX) {
                objects.extend(instance_state::stopping(observed)?);
            }
        }
        let mut left: Vec<String> = self.unknown().map(str::to_owned).collect();
        left.extend(
            self.pools
                .values()
                .flat_map(|pool| pool.alive().map(|i| i.id.clone())),
        );
        let instances = self.instances.values();
        left.extend(instances.filter_map(|instance| self.runs(instance).map(str::to_owned)));
        Ok(self.with(objects, left, Leftovers::Stay, true))
    }

    fn with(
        &self,
        objects: BTreeMap<String, Value>,
        left: Vec<String>,
        leftovers: Leftovers,
        keeps_home: bool,
    ) -> AtRest {
        let off = self.instances.values().find(|instance| !instance.is_lost());
        let kept = off.filter(|_| leftovers == Leftovers::Stay);
        let resources = objects.into_iter().map(|(name, object)| {
            let ready = self.is_in_order(&name);
            (name, Composed { object, ready })
        });
        let hindrance = self.instances.values().find_map(|instance| {
            let (id, failure) = (self.runs(instance)?, self.power_failure(instance)?);
            Some(failure.cause(&format!("instance {id} does not stop"), None))
        });
        AtRest {
            resources: resources.collect(),
            left,
            hindrance,
            instance_id: kept
                .and_then(OnDemandInstance::current_id)
                .map(str::to_owned),
            home: self.home_at_rest(off, keeps_home),
            keeps_home,
        }
    }

    /// The state that an instance has reached; none without an `InstanceState` for it.
    pub(super) fn instance_state_of(
        &self,
        instance: &OnDemandInstance<'_>,
    ) -> Option<InstanceState> {
        InstanceState::parse(self.state_word_of(instance)?)
    }

    /// The state that an instance has reached, in EC2's words.
    pub(super) fn state_word_of(&self, instance: &OnDemandInstance<'_>) -> Option<&str> {
        let power = self.power_of(instance)?;
        power.at_provider.state.as_deref()
    }

    /// Whether the function stopped the instance and it does not run again yet.
    pub(super) fn is_off(&self, instance: &OnDemandInstance<'_>) -> bool {
        let is_turned_on = self.instance_state_of(instance) == Some(InstanceState::Running);
        self.power_of(instance).is_some() && !(instance.runs() && is_turned_on)
    }

    /// The observed state of an instance. While the instance starts again, provider-aws may still
    /// show its old address, which EC2 may already have given to another customer.
    pub(super) fn finding_of(
        &self,
        instance: &OnDemandInstance<'_>,
        recorded: Option<&str>,
    ) -> Finding {
        match instance.current_id() {
            Some(id) if self.is_off(instance) => self.starting(instance, id),
            _ => {
                let awaited = self.awaited_group(instance);
                on_demand::finding::finding(instance, awaited, recorded)
            }
        }
    }

    /// The security group that provider-aws has to create before the instance; none if the instance
    /// does not wait for it.
    fn awaited_group(&self, instance: &OnDemandInstance<'_>) -> Option<&Group<'_>> {
        let group = self.group.as_ref()?;
        let is_awaited = instance.last_known_id().is_none() && group.external_name().is_none();
        is_awaited.then_some(group)
    }

    fn starting(&self, instance: &OnDemandInstance<'_>, id: &str) -> Finding {
        let failure = self.power_failure(instance);
        let cause = failure.as_ref().map_or_else(
            || Cause::new(Reason::Starting, format!("waiting for {id} to start again")),
            |failure| failure.cause(&format!("instance {id} does not start again"), None),
        );
        Finding {
            machine: None,
            in_order: false,
            outlook: match failure {
                Some(failure) if failure.needs_person() => Outlook::NeedsPerson,
                _ => Outlook::Starting,
            },
            cause,
        }
    }

    /// The call by which provider-aws failed to stop or to start an instance; none if it reports
    /// none.
    fn power_failure(&self, instance: &OnDemandInstance<'_>) -> Option<Failure> {
        on_demand::finding::failure(self.power_of(instance)?.object())
    }

    /// The id of an instance that has not stopped yet.
    fn runs<'i>(&self, instance: &'i OnDemandInstance<'_>) -> Option<&'i str> {
        let id = instance.current_id()?;
        let is_off = instance.state() == Some(Ec2State::Stopped)
            || self.instance_state_of(instance) == Some(InstanceState::Stopped);
        (!is_off && !instance.is_lost()).then_some(id)
    }

    fn home_at_rest(
        &self,
        off: Option<&OnDemandInstance<'_>>,
        stays: bool,
    ) -> Option<home::Finding> {
        let mut pools = self.pools.values();
        let of_pool = pools.find(|pool| pool.has_home()).map(spot::home::finding);
        let of_aws = || self.home.exists().then(|| self.home.finding(off));
        of_pool.or_else(of_aws).filter(|_| stays)
    }
}
