//! Carries a plan out: the only place that changes anything in EC2.

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
    /// Writes `observed.launches` and `observed.launch_generation` where they
    /// survive a crash. Fails where somebody else wrote since they were read,
    /// even when nothing is different.
    async fn persist(&mut self, observed: &Observed) -> Result<(), kube::Error>;
}

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The API server refused: what was promised is not persisted, or nobody knows
    /// whether a lease exists still.
    #[error(transparent)]
    Kube(#[from] kube::Error),
    /// EC2 refused something other than a launch.
    #[error(transparent)]
    Ec2(#[from] Ec2Error),
}

/// How the last launch of a plan went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchOutcome {
    /// EC2 answered with every instance that was asked for.
    Launched,
    /// EC2 refused, or nobody knows.
    Refused {
        /// What was asked for.
        offering: Offering,
        /// What came back.
        refusal: Refusal,
    },
}

/// Everything that acting needs.
pub struct Actor<'a, W> {
    /// EC2, and what it refused of late.
    pub region: &'a Region,
    /// The pool.
    pub pool: &'a SpotPool,
    /// The valid spec; a deleted pool has none and launches nothing.
    pub valid: Option<&'a Valid>,
    /// The tags of everything that is created.
    pub tags: Tags,
    /// The pool's leases.
    pub leasing: &'a Leasing,
    /// Whether they exist still.
    pub registry: &'a dyn Registry,
    /// Where launches are persisted.
    pub write_ahead: &'a mut W,
    /// The clock.
    pub now: Timestamp,
}

/// What came of a plan.
#[derive(Debug, Default)]
pub struct Acted {
    /// For people.
    pub happened: Vec<Happened>,
    /// How the last launch went, if there was one.
    pub launch: Option<LaunchOutcome>,
}

/// What was promised for the first time.
#[derive(Default)]
struct Promised {
    /// Numbers of launches.
    launches: BTreeSet<u64>,
    /// UIDs of leases.
    leases: BTreeSet<String>,
}

impl<W> Actor<'_, W> {
    /// Those of the instances that are the pool's by a fresh describe, which `observed`
    /// learns of.
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
    /// Carries out every action of the plan, in order, and notes each result in
    /// `observed`. Stops at the first error that concerns more than one launch.
    pub async fn act(
        &mut self,
        plan: &Plan,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<(), ActError> {
        let plan = &self.fit(plan, observed).await?;
        forget(plan, observed);
        // What goes makes room for what comes: nothing is promised before. Nothing
        // goes by an old spec or status: the write tells whether they are the newest.
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

    /// The write-ahead: every launch and binding of the plan is persisted, in one
    /// write, before the first call, and so are the launch templates. So is a launch
    /// that is repeated: only the write tells whether the status that still holds it
    /// is the newest.
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

    /// Terminates what a fresh describe shows to be this pool's and alive.
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

/// Comes before the write-ahead: one write strikes a launch off and promises its
/// replacement, so that no status ever promises both.
fn forget(plan: &Plan, observed: &mut Observed) {
    let forgotten = |number| {
        let of_number = Action::Forget { launch: number };
        plan.actions.contains(&of_number)
    };
    observed.launches.retain(|l| !forgotten(l.launch));
}

/// Notes a launch as persisted; answers whether it never was before.
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
