//! Carries out a pool's plan. Except for the sweeper, this is the only module that changes anything
//! in EC2.

mod groups;
mod home;
mod launches;
mod leases;
mod persisted;

use std::collections::BTreeSet;

use api::pool::SpotPool;
use jiff::Timestamp;
use provider_aws::{Ec2Error, Tags};
use provider_core::{
    Action, Disruption, Instance, Launch, Observed, Offering, Phase, Plan, Refusal,
};
use provider_runtime::events::Happened;

pub(crate) use launches::hold;
use persisted::Persisted;
pub use persisted::WriteAhead;

use crate::expectations;
use crate::leases::{Leasing, Registry};
use crate::region::Region;
use crate::validate::{Valid, template_name};
use crate::zones::Described;

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
    /// The pool's identity, by which its resources in EC2 are found.
    pub identity: &'a str,
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
    /// What EC2 refused other than launches and changes of the home, in the order of importance.
    pub failures: Vec<Ec2Error>,
}

impl Acted {
    fn note(&mut self, done: Result<(), Ec2Error>) {
        self.failures.extend(done.err());
    }
}

/// What the status promises before the first call of a plan.
#[derive(Default)]
struct Promised {
    launches: Vec<PromisedLaunch>,
    /// The UIDs of the leases that had no instance, or another one.
    leases: BTreeSet<String>,
}

/// A launch that the status promises.
struct PromisedLaunch {
    launch: Launch,
    /// Whether the status did not promise it before.
    is_new: bool,
}

/// Instances to terminate, with the reasons.
type Ends = Vec<(String, Disruption)>;

impl<W> Actor<'_, W> {
    /// Those of the instances that a fresh describe shows to be the pool's. The fresh states
    /// replace those in `observed`.
    async fn look_closely(
        &self,
        ids: &[String],
        observed: &mut Observed,
    ) -> Result<Described, Ec2Error> {
        let mut fresh = self.region.describe(ids).await?;
        for instance in &mut observed.instances {
            if let Some(now) = fresh.found.iter().find(|i| i.id == instance.id) {
                instance.clone_from(now);
            }
        }
        fresh.found.retain(|i| self.is_ours(i));
        Ok(fresh)
    }

    fn is_ours(&self, instance: &Instance) -> bool {
        self.identity == instance.pool_uid
    }
}

impl<W: WriteAhead> Actor<'_, W> {
    /// Carries out the plan by its phases ([`Phase`]), and notes each result in `observed`. An error of EC2 is noted
    /// in `acted`, and only what depends on the failed action is left out. The end of a paid
    /// instance and the delivery of one never wait for a clean-up. An error of the API server ends
    /// the work, because nothing can be persisted.
    pub async fn act(
        &mut self,
        plan: &Plan,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<(), kube::Error> {
        let mut plan = self.fit(plan, observed, acted).await;
        forget(&plan, observed);
        if !self.end(&plan, observed, acted).await? {
            drop_launches(&mut plan);
        }
        let plan = &plan;
        let promised = self.promise(plan, observed).await?;
        self.hand_out(plan, promised.as_ref(), observed, acted)
            .await?;
        let is_ready = self.prepare_group(plan, observed, acted).await;
        if let Some(promised) = &promised {
            self.launch_all(promised, is_ready, observed, acted).await;
        }
        self.act_on_home(plan, observed, acted).await?;
        self.tidy(plan, observed, acted).await;
        Ok(())
    }

    /// Terminates instances. They end before new ones are promised, because they make room. No
    /// instance ends because of an old spec or status: the write fails unless both are the newest.
    /// Returns whether all of them ended.
    async fn end(
        &mut self,
        plan: &Plan,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<bool, kube::Error> {
        let ends = plan.of(Phase::End).filter_map(|action| match action {
            Action::Terminate { id, why } => Some((id.clone(), why.clone())),
            _ => None,
        });
        let ends: Ends = ends.collect();
        if ends.is_empty() {
            return Ok(true);
        }
        let noted = ends.iter().map(|(id, why)| (id.clone(), why.to_string()));
        observed.ending.extend(noted);
        let ends = Persisted::write(self.write_ahead, observed, ends).await?;
        self.terminate(&ends, observed, acted).await;
        let unended = &observed.unended;
        Ok(ends.get().iter().all(|(id, _)| !unended.contains(id)))
    }

    /// The write-ahead: one write persists every launch, binding and launch template of the plan
    /// before the first call. A repeated launch is written again, because only the write tells
    /// whether the status that holds it is the newest.
    async fn promise(
        &mut self,
        plan: &Plan,
        observed: &mut Observed,
    ) -> Result<Option<Persisted<Promised>>, kube::Error> {
        let mut promised = Promised::default();
        let mut is_empty = true;
        for action in &plan.actions {
            match action {
                Action::Launch(launch) => {
                    is_empty = false;
                    observed.templates.insert(launch.generation.clone());
                    promised.launches.push(PromisedLaunch {
                        launch: launch.clone(),
                        is_new: promise(launch, observed),
                    });
                }
                Action::Bind { lease, instance_id } => {
                    is_empty = false;
                    let bindings = &mut observed.bindings;
                    let had = bindings.insert(lease.clone(), instance_id.clone());
                    if had.as_ref() != Some(instance_id) {
                        promised.leases.insert(lease.clone());
                    }
                }
                _ => {}
            }
        }
        if is_empty {
            return Ok(None);
        }
        let written = Persisted::write(self.write_ahead, observed, promised).await?;
        Ok(Some(written))
    }

    /// Makes the launches of the plan. Without the group they are not made, and the new ones are no
    /// promises any more.
    async fn launch_all(
        &self,
        promised: &Persisted<Promised>,
        is_group_ready: bool,
        observed: &mut Observed,
        acted: &mut Acted,
    ) {
        for launch in promised.each(|promised| &promised.launches) {
            if is_group_ready {
                self.launch(&launch, observed, acted).await;
            } else if launch.get().is_new {
                let number = launch.get().launch.launch;
                observed.launches.retain(|l| l.launch != number);
            }
        }
    }

    /// Deletes what nothing uses any more.
    async fn tidy(&self, plan: &Plan, observed: &mut Observed, acted: &mut Acted) {
        for action in plan.of(Phase::Tidy) {
            let done = match action {
                Action::DeleteTemplate { generation } => {
                    self.delete_template(generation, observed).await
                }
                Action::DeleteGroup { group_id } => {
                    self.delete_group(group_id, observed, acted).await
                }
                _ => continue,
            };
            acted.note(done);
        }
    }

    async fn delete_template(
        &self,
        generation: &str,
        observed: &mut Observed,
    ) -> Result<(), Ec2Error> {
        let name = template_name(self.identity, generation);
        self.region.ec2.delete_template(&name).await?;
        self.region.templates().remove(&name);
        observed.templates.remove(generation);
        Ok(())
    }

    /// Terminates the planned instances that a fresh describe shows to be live and the pool's.
    async fn terminate(&self, ends: &Persisted<Ends>, observed: &mut Observed, acted: &mut Acted) {
        let planned = ends.get();
        let ids: Vec<String> = planned.iter().map(|(id, _)| id.clone()).collect();
        let fresh = match self.look_closely(&ids, observed).await {
            Ok(fresh) => fresh,
            Err(error) => {
                observed.unended.extend(ids);
                return acted.failures.push(error);
            }
        };
        if let Some((ids, error)) = fresh.unanswered {
            observed.unended.extend(ids);
            acted.failures.push(error);
        }
        let live = fresh.found.into_iter().filter(|i| i.state.is_live());
        let live: Vec<Instance> = live.collect();
        if live.is_empty() {
            return;
        }
        let refused = self.region.ec2.terminate(&live).await;
        let mut ended: Vec<String> = live.into_iter().map(|i| i.id).collect();
        ended.retain(|id| !refused.contains_key(id));
        for (id, error) in &refused {
            observed.unended.insert(id.clone());
            // EC2 did nothing, so the instance may be wanted again before it can end.
            if error.class.is_definite() {
                observed.ending.remove(id);
            }
        }
        acted.failures.extend(refused.into_iter().map(not_ended));
        self.region.expectations().note(&ended, self.now);
        let instances = observed.instances.iter_mut();
        instances
            .filter(|i| ended.contains(&i.id))
            .for_each(expectations::ends);
        for (id, why) in planned.iter().filter(|(id, _)| ended.contains(id)) {
            acted.happened.push(Happened::normal(
                "Terminated",
                format!("terminated {id}: {why}"),
            ));
        }
        observed.ending.retain(|id, _| !ended.contains(id));
    }
}

/// The error of an instance that EC2 did not terminate, with the instance and the next step.
fn not_ended((id, mut error): (String, Ec2Error)) -> Ec2Error {
    error.message = if error.code == "OperationNotPermitted" {
        format!("{id} may not be terminated: take away its termination protection, or terminate it")
    } else {
        format!("{id}: {}", error.message)
    };
    error
}

/// Removes the launches: they may need the room of instances that did not end. The next plan of the
/// pass reckons with these instances, and repeats an unanswered launch if there is room for both.
fn drop_launches(plan: &mut Plan) {
    plan.actions
        .retain(|action| !matches!(action, Action::Launch(_)));
}

/// Removes forgotten launches. It comes before the write-ahead: one write removes a launch and
/// promises its replacement, so that no status ever promises both.
fn forget(plan: &Plan, observed: &mut Observed) {
    let forgotten = |number| {
        let of_number = Action::Forget { launch: number };
        plan.of(Phase::Forget).any(|action| *action == of_number)
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
