//! The steps of a reconcile after connecting: validate, plan, act, status.
//!
//! Kubernetes is behind the status's writer here, EC2 behind the region.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::pool::{PoolInstance, SpotPool, SpotPoolStatus};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use provider_aws::Ec2Error;
use provider_core::{Action, Desired, ErrorClass, Observed, Offering, Plan, Refusal, Wait, plan};
use provider_runtime::conditions::{Verdict, reason};
use provider_runtime::events::Happened;
use provider_runtime::policies::Permitted;

use crate::access::Origin;
use crate::act::{ActError, Acted, Actor};
use crate::missing::{self, Missing};
use crate::reconcile::{self, StepError};
use crate::region::{Region, Snapshot};
use crate::status_writer::{PoolStore, StatusWriter};
use crate::validate::{self, Invalid, Valid};
use crate::{convert, status};

/// Plans carried out in one reconcile. One launch refused for capacity costs one.
const PASSES: usize = 12;
/// Between two looks at a pool that nothing happens to.
pub(crate) const CALM: Duration = Duration::from_mins(1);
/// Before the next try after AWS failed, and while EC2 catches up.
const AFTER_ERROR: Duration = Duration::from_secs(5);
/// How long after an action its effects are watched closely.
const WATCH_EFFECTS: SignedDuration = SignedDuration::from_secs(30);

/// One reconcile of a pool that is connected.
pub(crate) struct Pass<'a> {
    /// The control plane's identity.
    pub(crate) cluster: &'a str,
    pub(crate) pool: &'a SpotPool,
    pub(crate) region: &'a Region,
    /// Where the access to the region comes from.
    pub(crate) origin: &'a Origin,
    pub(crate) permitted: Permitted,
    pub(crate) deleted: bool,
    /// No launch before this.
    pub(crate) launches_held_until: Option<Timestamp>,
    pub(crate) now: Timestamp,
}

/// What a pass came to. Its status is in the writer and not written yet.
pub(crate) struct Passed {
    /// For people.
    pub(crate) happened: Vec<Happened>,
    /// No launch before this.
    pub(crate) launches_held_until: Option<Timestamp>,
    /// Whether EC2 was not as it should be, and was changed.
    pub(crate) acted: bool,
    pub(crate) next: Next,
}

/// What follows a pass.
pub(crate) enum Next {
    /// Nothing is left of a deleted pool: it may go.
    Release,
    /// Another look, at the latest after this.
    Again(Duration),
}

/// What was done in a pass.
#[derive(Default)]
struct Work {
    /// The plan that was carried out last.
    last: Option<Plan>,
    /// What ended it.
    failure: Option<Ec2Error>,
}

impl Work {
    /// Whether a plan was carried out and is the plan still: EC2 has to catch up
    /// before it can be of any use again.
    fn is_done_with(&self, plan: &Plan) -> bool {
        self.last.as_ref() == Some(plan)
    }
}

/// What a pool wants, as far as its spec can be made sense of.
enum Want {
    /// Nothing: it is deleted.
    Nothing(Desired),
    /// What its spec says.
    Valid(Valid),
    /// Nobody can tell: everything stays as it is.
    Invalid(Invalid),
}

impl Want {
    fn valid(&self) -> Option<&Valid> {
        match self {
            Self::Valid(valid) => Some(valid),
            _ => None,
        }
    }
}

impl Pass<'_> {
    pub(crate) async fn run<S: PoolStore>(
        &self,
        writer: &mut StatusWriter<S>,
        look: Result<Arc<Snapshot>, Ec2Error>,
    ) -> Result<Passed, kube::Error> {
        let snapshot = match look {
            Ok(snapshot) => snapshot,
            Err(error) => return Ok(self.fail(writer, &StepError::Observe(error))),
        };
        let mut observed = convert::observed(
            &self.pool.uid().unwrap_or_default(),
            &snapshot,
            &writer.before().at_provider,
            self.region.notices(),
            self.region.cold().clone(),
            self.launches_held_until,
        );
        observed.group_in_doubt_until = missing::group_in_doubt_until(self.pool, &observed);
        let shown = &writer.before().at_provider.instances;
        if let Err(error) = self.missing(shown).find(&mut observed).await {
            return Ok(self.fail(writer, &StepError::Observe(error)));
        }
        let mut happened = self.note_lost(writer.before(), &mut observed);
        happened.extend(status::announced(&writer.before().at_provider, &observed));
        let want = match self.validate().await {
            Ok(want) => want,
            Err(error) => return Ok(self.fail(writer, &error)),
        };
        let desired = match &want {
            Want::Invalid(invalid) => {
                return Ok(self.stay(writer, invalid, &snapshot, &observed, happened));
            }
            Want::Nothing(desired) => desired,
            Want::Valid(valid) => &valid.desired,
        };

        let mut acted = Acted::default();
        let work = self
            .act(desired, want.valid(), writer, &mut observed, &mut acted)
            .await?;
        happened.append(&mut acted.happened);

        let last = self.permit(plan(desired, &observed, self.now));
        let next = if self.deleted && work.failure.is_none() && last.is_released() {
            Next::Release
        } else {
            let launched = status::launched(
                &last,
                &observed,
                &desired.offerings,
                acted.launch.as_ref(),
                self.origin,
                self.now,
            );
            let synced = work.failure.as_ref().map_or_else(Verdict::synced, |error| {
                Verdict::not_synced("update", &self.origin.explain(error))
            });
            let ready = status::ready(&last, &observed, self.deleted);
            self.show(writer, &snapshot, &observed, &desired.offerings, &last);
            writer.conclude([ready, synced].into_iter().chain(launched));
            Next::Again(self.look_again(&last, &work))
        };
        Ok(Passed {
            happened,
            launches_held_until: observed.hold_launches_until,
            acted: work.last.is_some() && work.failure.is_none(),
            next,
        })
    }

    fn missing<'b>(&'b self, shown: &'b [PoolInstance]) -> Missing<'b> {
        Missing {
            ec2: self.region.ec2.as_ref(),
            pool_uid: self.pool.metadata.uid.as_deref().unwrap_or_default(),
            shown,
            deleted: self.deleted,
            now: self.now,
        }
    }

    /// Instances that went without anybody here ending them: their offering
    /// rests when AWS took them back, so that the replacement comes from
    /// elsewhere.
    fn note_lost(&self, before: &SpotPoolStatus, observed: &mut Observed) -> Vec<Happened> {
        let mut happened = Vec::new();
        if self.deleted {
            return happened;
        }
        for (offering, seen, event) in status::lost(&before.at_provider, observed) {
            tracing::info!(
                pool = self.pool.name_any(),
                event.message,
                "lost an instance"
            );
            if seen.is_some_and(provider_core::Instance::was_reclaimed) {
                let refusal = Refusal {
                    class: ErrorClass::Capacity,
                    code: "Server.SpotInstanceTermination".into(),
                    message: "AWS took an instance of this offering back".into(),
                };
                self.region
                    .cold()
                    .refused(&offering, &refusal, &[], self.now);
            }
            happened.push(event);
        }
        observed.cold.clone_from(&self.region.cold());
        happened
    }

    async fn validate(&self) -> Result<Want, StepError> {
        if self.deleted {
            return Ok(Want::Nothing(validate::deleted(self.pool)));
        }
        let spec = &self.pool.spec.for_provider;
        let facts = validate::facts(self.region, spec, self.now)
            .await
            .map_err(StepError::Observe)?;
        Ok(match validate::validate(self.pool, facts, self.cluster) {
            Ok(valid) => Want::Valid(valid),
            Err(invalid) => Want::Invalid(invalid),
        })
    }

    /// Plans and acts until nothing is left to do now.
    async fn act<S: PoolStore>(
        &self,
        desired: &Desired,
        valid: Option<&Valid>,
        writer: &mut StatusWriter<S>,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<Work, kube::Error> {
        let mut work = Work::default();
        for _ in 0..PASSES {
            let next = self.permit(plan(desired, observed, self.now));
            if next.actions.is_empty() || work.is_done_with(&next) {
                break;
            }
            tracing::info!(
                pool = self.pool.name_any(),
                namespace = self.pool.namespace(),
                plan = ?next,
                "acting"
            );
            self.watch_effects();
            let mut actor = Actor {
                region: self.region,
                pool: self.pool,
                valid,
                tags: validate::pool_tags(self.pool, self.cluster),
                lease_tags: &BTreeMap::new(),
                write_ahead: writer,
                now: self.now,
            };
            match actor.act(&next, observed, acted).await {
                Ok(()) => {}
                Err(ActError::Persist(error)) => return Err(error),
                Err(ActError::Ec2(error)) => work.failure = Some(error),
            }
            work.last = Some(next);
            if self.deleted || work.failure.is_some() {
                break;
            }
        }
        Ok(work)
    }

    /// Takes out of a plan what the pool's management policies do not permit.
    fn permit(&self, mut plan: Plan) -> Plan {
        let Permitted {
            create,
            update,
            delete,
        } = self.permitted;
        plan.actions.retain(|action| match action {
            Action::CreateGroup { .. } | Action::Launch(_) => create,
            Action::SetGroupRules { .. } | Action::Bind { .. } => update,
            Action::Terminate { .. } | Action::DeleteTemplate { .. } if !self.deleted => update,
            Action::Terminate { .. }
            | Action::DeleteTemplate { .. }
            | Action::DeleteGroup { .. } => delete,
            Action::Forget { .. } => true,
        });
        plan
    }

    /// AWS did not tell what the spec depends on: nothing is known, nothing done.
    fn fail<S: PoolStore>(&self, writer: &mut StatusWriter<S>, error: &StepError) -> Passed {
        let message = error.explain(self.origin);
        writer.conclude([Verdict::not_synced(error.step(), &message)]);
        Passed {
            happened: Vec::new(),
            launches_held_until: self.launches_held_until,
            acted: false,
            next: Next::Again(reconcile::AFTER_ERROR),
        }
    }

    /// The spec makes no sense: whatever runs goes on running.
    fn stay<S: PoolStore>(
        &self,
        writer: &mut StatusWriter<S>,
        invalid: &Invalid,
        snapshot: &Snapshot,
        observed: &Observed,
        happened: Vec<Happened>,
    ) -> Passed {
        let target = writer.before().at_provider.size.desired;
        let stays = Plan {
            target: u32::try_from(target).unwrap_or(0),
            actions: Vec::new(),
            waits: Vec::new(),
            spot_short_since: observed.spot_short_since,
        };
        self.show(writer, snapshot, observed, &[], &stays);
        writer.conclude([
            status::not_launchable(invalid),
            Verdict::not_synced("update", invalid),
            Verdict::ready(
                false,
                reason::UNAVAILABLE,
                "the spec cannot work; see Launched",
            ),
        ]);
        Passed {
            happened,
            launches_held_until: self.launches_held_until,
            acted: false,
            next: Next::Again(CALM),
        }
    }

    fn show<S: PoolStore>(
        &self,
        writer: &mut StatusWriter<S>,
        snapshot: &Snapshot,
        observed: &Observed,
        offerings: &[Offering],
        plan: &Plan,
    ) {
        let impaired_since = convert::impaired_since(snapshot, &writer.before().at_provider);
        let planned = status::Planned {
            target: plan.target,
            waits: &plan.waits,
            spot_short_since: plan.spot_short_since,
            impaired_since: &impaired_since,
        };
        let shown = status::observation(observed, offerings, &planned, self.now);
        writer.observe(shown);
    }

    fn watch_effects(&self) {
        let until = self.now.saturating_add(WATCH_EFFECTS);
        self.region.hurry(until.unwrap_or(Timestamp::MAX));
    }

    fn look_again(&self, last: &Plan, work: &Work) -> Duration {
        if let Some(error) = &work.failure {
            return match error.class {
                ErrorClass::Throttled | ErrorClass::Transient => AFTER_ERROR,
                // A person has to do something first.
                _ => CALM,
            };
        }
        let soonest = last.waits.iter().map(|wait| match wait {
            Wait::Instances => {
                self.watch_effects();
                AFTER_ERROR
            }
            Wait::Capacity { until }
            | Wait::Fallback { until }
            | Wait::Age { until }
            | Wait::Retry { until } => {
                let wait = until.duration_since(self.now);
                Duration::try_from(wait).unwrap_or_default() + Duration::from_millis(100)
            }
            Wait::Stopped { .. }
            | Wait::Interrupted { .. }
            | Wait::Room { .. }
            | Wait::Spread
            | Wait::Leases { .. } => CALM,
        });
        let more_to_do = (!last.actions.is_empty()).then(|| {
            if work.is_done_with(last) {
                AFTER_ERROR
            } else {
                Duration::from_millis(100)
            }
        });
        soonest.chain(more_to_do).min().unwrap_or(CALM).min(CALM)
    }
}
