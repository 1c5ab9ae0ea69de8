//! Carries out a pool's plan. Except for the sweeper, this is the only module that changes anything
//! in EC2.

mod groups;
mod home;
mod launches;
mod leases;

use std::collections::BTreeSet;

use api::pool::SpotPool;
use async_trait::async_trait;
use jiff::Timestamp;
use provider_aws::{Ec2Error, Tags};
use provider_core::{Action, Instance, Launch, Observed, Offering, Plan, Refusal};
use provider_runtime::events::Happened;

use crate::expectations;
use crate::leases::{Leasing, Registry};
use crate::region::Region;
use crate::validate::{Valid, template_name};

/// Persists launches before EC2 is called.
#[async_trait]
pub trait WriteAhead: Send {
    /// Writes `observed.launches` and `observed.launch_generation` to the pool's status, where they
    /// survive a crash. The write fails if another client wrote since they were read, even if
    /// nothing differs.
    async fn persist(&mut self, observed: &Observed) -> Result<(), kube::Error>;
}

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The API server refused: the promises of the plan are not persisted, or it is unknown whether
    /// a lease still exists.
    #[error(transparent)]
    Kube(#[from] kube::Error),
    /// EC2 refused something other than a launch.
    #[error(transparent)]
    Ec2(#[from] Ec2Error),
}

/// The result of the last launch of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchOutcome {
    /// EC2 answered with every instance that was asked for.
    Launched,
    /// EC2 refused, or its answer is unknown.
    Refused {
        /// The offering that was asked for.
        offering: Offering,
        /// EC2's refusal.
        refusal: Refusal,
    },
}

/// The input for carrying a plan out.
pub struct Actor<'a, W> {
    /// EC2, and its unavailable offerings.
    pub region: &'a Region,
    /// The pool.
    pub pool: &'a SpotPool,
    /// The valid spec. A deleted pool has none and launches nothing.
    pub valid: Option<&'a Valid>,
    /// The tags of every resource that is created.
    pub tags: Tags,
    /// The pool's leases.
    pub leasing: &'a Leasing,
    /// Tells whether the leases still exist.
    pub registry: &'a dyn Registry,
    /// Persists launches.
    pub write_ahead: &'a mut W,
    /// The time of this pass.
    pub now: Timestamp,
}

/// The results of a plan.
#[derive(Debug, Default)]
pub struct Acted {
    /// The events for users.
    pub happened: Vec<Happened>,
    /// The result of the last launch, if there was one.
    pub launch: Option<LaunchOutcome>,
}

/// The promises that were not in the status before.
#[derive(Default)]
struct Promised {
    /// The numbers of the launches.
    launches: BTreeSet<u64>,
    /// The UIDs of the leases.
    leases: BTreeSet<String>,
}

impl<W> Actor<'_, W> {
    /// Those of the instances that a fresh describe shows to be the pool's. The fresh states
    /// replace those in `observed`.
    async fn look_closely(
        &self,
        ids: &[String],
        observed: &mut Observed,
    ) -> Result<Vec<Instance>, Ec2Error> {
        let mut fresh = self.region.ec2.instances_by_id(ids).await?;
        for instance in &mut observed.instances {
            if let Some(now) = fresh.iter().find(|i| i.id == instance.id) {
                instance.clone_from(now);
            }
        }
        fresh.retain(|i| self.is_ours(i));
        Ok(fresh)
    }

    fn is_ours(&self, instance: &Instance) -> bool {
        self.pool.metadata.uid.as_ref() == Some(&instance.pool_uid)
    }
}

impl<W: WriteAhead> Actor<'_, W> {
    /// Carries out every action of the plan, in order, and notes each result in `observed`. It
    /// stops at the first error that concerns more than one launch.
    pub async fn act(
        &mut self,
        plan: &Plan,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<(), ActError> {
        let plan = &self.fit(plan, observed).await?;
        forget(plan, observed);
        // Instances end before new ones are promised, because they make room. No instance ends
        // because of an old spec or status: the write fails unless both are the newest.
        let ends = |action: &Action| matches!(action, Action::Terminate { .. });
        let is_deleted = self.pool.metadata.deletion_timestamp.is_some();
        if !is_deleted && plan.actions.iter().any(ends) {
            self.write_ahead.persist(observed).await?;
        }
        self.terminate(plan, observed, acted).await?;
        let new = self.persist_promises(plan, observed).await?;
        for action in &plan.actions {
            match action {
                Action::CreateGroup { vpc_id, rules } => {
                    self.create_group(vpc_id, rules, observed, acted).await?;
                }
                Action::SetGroupRules {
                    group_id,
                    authorize,
                    revoke,
                    revoke_ids,
                } => {
                    self.region.ec2.revoke(group_id, revoke, revoke_ids).await?;
                    self.region.ec2.authorize(group_id, authorize).await?;
                    self.note_rules(group_id, observed);
                }
                Action::Launch(launch) => {
                    let is_new = new.launches.contains(&launch.launch);
                    self.launch(launch, is_new, observed, acted).await;
                }
                Action::Bind { lease, instance_id } => {
                    let is_new = new.leases.contains(lease);
                    self.bind(lease, instance_id, is_new, observed, acted)
                        .await?;
                }
                Action::Authorize { instance_id, tags } => {
                    self.authorize(instance_id, tags, observed).await?;
                }
                Action::DeleteTemplate { generation } => {
                    self.delete_template(generation, observed).await?;
                }
                Action::Forget { .. }
                | Action::Terminate { .. }
                | Action::DeleteGroup { .. }
                | Action::Home(_) => {}
            }
        }
        self.act_on_home(plan, observed, acted).await?;
        self.delete_groups(plan, observed, acted).await
    }

    /// The write-ahead: one write persists every launch, binding and launch template of the plan
    /// before the first call. A repeated launch is written again, because only the write tells
    /// whether the status that holds it is the newest.
    async fn persist_promises(
        &mut self,
        plan: &Plan,
        observed: &mut Observed,
    ) -> Result<Promised, ActError> {
        let mut new = Promised::default();
        let mut promises = false;
        for action in &plan.actions {
            match action {
                Action::Launch(launch) => {
                    promises = true;
                    observed.templates.insert(launch.generation.clone());
                    if promise(launch, observed) {
                        new.launches.insert(launch.launch);
                    }
                }
                Action::Bind { lease, instance_id } => {
                    promises = true;
                    let bindings = &mut observed.bindings;
                    let had = bindings.insert(lease.clone(), instance_id.clone());
                    if had.as_ref() != Some(instance_id) {
                        new.leases.insert(lease.clone());
                    }
                }
                _ => {}
            }
        }
        if promises {
            self.write_ahead.persist(observed).await?;
        }
        Ok(new)
    }

    async fn delete_template(
        &self,
        generation: &str,
        observed: &mut Observed,
    ) -> Result<(), Ec2Error> {
        let uid = self.pool.metadata.uid.as_deref().unwrap_or_default();
        let name = template_name(uid, generation);
        self.region.ec2.delete_template(&name).await?;
        self.region.templates().remove(&name);
        observed.templates.remove(generation);
        Ok(())
    }

    /// Terminates the planned instances that a fresh describe shows to be live and the pool's.
    async fn terminate(
        &self,
        plan: &Plan,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<(), Ec2Error> {
        let planned: Vec<(&String, _)> = plan
            .actions
            .iter()
            .filter_map(|a| match a {
                Action::Terminate { id, why } => Some((id, why)),
                _ => None,
            })
            .collect();
        if planned.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = planned.iter().map(|(id, _)| (*id).clone()).collect();
        let fresh = self.look_closely(&ids, observed).await?;
        let live = fresh.iter().filter(|i| i.state.is_live());
        let ours: Vec<String> = live.map(|i| i.id.clone()).collect();
        if ours.is_empty() {
            return Ok(());
        }
        self.region.ec2.terminate(&ours).await?;
        self.region.expectations().note(&ours, self.now);
        let instances = observed.instances.iter_mut();
        instances
            .filter(|i| ours.contains(&i.id))
            .for_each(expectations::ends);
        for (id, why) in planned.iter().filter(|(id, _)| ours.contains(id)) {
            acted.happened.push(Happened::normal(
                "Terminated",
                format!("terminated {id}: {why}"),
            ));
        }
        Ok(())
    }
}

/// Removes forgotten launches. It comes before the write-ahead: one write removes a launch and
/// promises its replacement, so that no status ever promises both.
fn forget(plan: &Plan, observed: &mut Observed) {
    let forgotten = |number| {
        let of_number = Action::Forget { launch: number };
        plan.actions.contains(&of_number)
    };
    observed.launches.retain(|l| !forgotten(l.launch));
}

/// Notes a launch as persisted, and returns whether it is new.
fn promise(launch: &Launch, observed: &mut Observed) -> bool {
    observed.launch_generation = observed.launch_generation.max(launch.launch);
    let mut persisted = observed.launches.iter_mut();
    if let Some(own) = persisted.find(|l| l.launch == launch.launch) {
        own.clone_from(launch);
        false
    } else {
        observed.launches.push(launch.clone());
        true
    }
}
