//! Carries a plan out: the only place that changes anything in EC2.

mod groups;

use std::collections::BTreeSet;

use api::pool::SpotPool;
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use provider_aws::{Ec2Error, Tags};
use provider_core::{
    Action, ErrorClass, InstanceState, Launch, Observed, Offering, Plan, SecurityGroups,
};
use provider_runtime::events::Happened;

use crate::region::Region;
use crate::validate::Valid;

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
    /// The launches could not be persisted; nothing was launched.
    #[error("cannot persist a launch: {0}")]
    Persist(#[from] kube::Error),
    /// EC2 refused something other than a launch.
    #[error(transparent)]
    Ec2(#[from] Ec2Error),
}

/// How the last launch of a plan went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchOutcome {
    /// EC2 answered with an instance.
    Launched,
    /// EC2 refused, or nobody knows.
    Refused {
        /// What was asked for.
        offering: Offering,
        /// What came back.
        error: Ec2Error,
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

impl<W: WriteAhead> Actor<'_, W> {
    /// Carries out every action of the plan, in order, and notes each result in
    /// `observed`. Stops at the first error that concerns more than one launch.
    pub async fn act(
        &mut self,
        plan: &Plan,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<(), ActError> {
        forget(plan, observed);
        let new = self.persist_launches(plan, observed).await?;
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
                    let is_new = new.contains(&launch.launch);
                    self.launch(launch, is_new, observed, acted).await;
                }
                Action::Forget { .. } | Action::Terminate { .. } | Action::DeleteGroup { .. } => {}
            }
        }
        self.terminate(plan, observed, acted).await?;
        self.delete_groups(plan, observed, acted).await
    }

    /// The write-ahead: every launch of the plan is persisted, in one write,
    /// before the first call. So is one that is repeated: only the write tells
    /// whether the status that still holds it is the newest. Answers the numbers
    /// that were never asked for.
    async fn persist_launches(
        &mut self,
        plan: &Plan,
        observed: &mut Observed,
    ) -> Result<BTreeSet<u64>, ActError> {
        let mut new = BTreeSet::new();
        let mut launches = false;
        for action in &plan.actions {
            let Action::Launch(launch) = action else {
                continue;
            };
            launches = true;
            let number = launch.launch;
            observed.launch_generation = observed.launch_generation.max(number);
            let mut persisted = observed.launches.iter_mut();
            if let Some(own) = persisted.find(|l| l.launch == number) {
                own.clone_from(launch);
            } else {
                new.insert(number);
                observed.launches.push(launch.clone());
            }
        }
        if launches {
            self.write_ahead.persist(observed).await?;
        }
        Ok(new)
    }

    /// Asks EC2 for one launch, unless an earlier one of the plan was refused for
    /// a reason that concerns this one too.
    async fn launch(
        &self,
        launch: &Launch,
        is_new: bool,
        observed: &mut Observed,
        acted: &mut Acted,
    ) {
        let Some(valid) = self.valid else { return };
        let is_held = observed.hold_launches_until.is_some_and(|u| u > self.now);
        let is_cold = observed.cold.at(&launch.offering, self.now).is_some();
        if is_new && (is_held || is_cold) {
            observed.launches.retain(|l| l.launch != launch.launch);
        }
        if is_held || (is_new && is_cold) {
            return;
        }
        let group_ids = match &valid.desired.groups {
            SecurityGroups::Given(ids) => ids.clone(),
            SecurityGroups::Owned { vpc_id, .. } => {
                let group = observed.group_in(vpc_id);
                group.map(|g| g.id.clone()).into_iter().collect()
            }
        };
        let request = valid.request(launch, group_ids);
        let answer = match self.region.ec2.launch(&request).await {
            // The launch happened, with the spec of that time.
            Err(error) if error.is_token_mismatch() => self
                .region
                .ec2
                .instance_by_token(&request.token)
                .await
                .and_then(|found| found.ok_or(error)),
            answer => answer,
        };
        match answer {
            Ok(instance) => {
                self.region.cold().granted(&launch.offering);
                observed.cold.clone_from(&self.region.cold());
                let dead = !instance.state.fills_slot();
                // EC2 answers a token that was used before with that instance,
                // even when it is long dead: the number is burnt.
                observed
                    .launches
                    .retain(|l| !(dead && l.launch == launch.launch));
                for own in &mut observed.launches {
                    if own.launch == launch.launch {
                        own.instance_id = Some(instance.id.clone());
                    }
                }
                if !dead {
                    acted.happened.push(Happened::normal(
                        "Launched",
                        format!("launched {}: {}", instance.id, launch.offering),
                    ));
                    acted.launch = Some(LaunchOutcome::Launched);
                }
            }
            Err(error) => self.refused(launch, is_new, error, observed, acted),
        }
    }

    fn refused(
        &self,
        launch: &Launch,
        is_new: bool,
        error: Ec2Error,
        observed: &mut Observed,
        acted: &mut Acted,
    ) {
        let known = self.valid.map_or(&[][..], |v| &v.desired.offerings);
        let mut cold = self.region.cold();
        cold.refused(&launch.offering, &error.refusal(), known, self.now);
        observed.cold.clone_from(&cold);
        drop(cold);
        // A call whose answer was lost may have launched before this one was
        // refused. EC2 looks at the token before it looks for capacity, but not
        // before it checks permissions and parameters.
        let knows_token = matches!(error.class, ErrorClass::Capacity | ErrorClass::Quota);
        if error.class.is_definite() && (is_new || knows_token) {
            observed.launches.retain(|l| l.launch != launch.launch);
        }
        if let Some(rest) = rest_after(error.class) {
            let until = self.now.saturating_add(rest).unwrap_or(Timestamp::MAX);
            observed.hold_launches_until = Some(until);
        }
        acted.launch = Some(LaunchOutcome::Refused {
            offering: launch.offering.clone(),
            error,
        });
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
        let uid = self.pool.metadata.uid.as_deref().unwrap_or_default();
        let fresh = self.region.ec2.instances_by_id(&ids).await?;
        let ours: Vec<String> = fresh
            .iter()
            .filter(|i| i.pool_uid == uid && i.state.fills_slot())
            .map(|i| i.id.clone())
            .collect();
        for instance in &mut observed.instances {
            if let Some(now) = fresh.iter().find(|i| i.id == instance.id) {
                instance.clone_from(now);
            }
        }
        if ours.is_empty() {
            return Ok(());
        }
        self.region.ec2.terminate(&ours).await?;
        for instance in &mut observed.instances {
            if ours.contains(&instance.id) {
                instance.state = InstanceState::ShuttingDown;
            }
        }
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

/// How long a pool holds its launches after an error that another offering does
/// not cure.
fn rest_after(class: ErrorClass) -> Option<SignedDuration> {
    match class {
        ErrorClass::Capacity | ErrorClass::Quota => None,
        ErrorClass::Throttled => Some(SignedDuration::from_secs(10)),
        ErrorClass::Transient => Some(SignedDuration::from_secs(5)),
        ErrorClass::Denied | ErrorClass::Configuration => Some(SignedDuration::from_mins(5)),
    }
}
