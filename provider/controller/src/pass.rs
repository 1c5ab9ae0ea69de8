//! The steps of a reconcile after connecting: validate, plan, act, status.
//!
//! Kubernetes is behind the status writer and the registry of leases, and EC2 behind the region.

mod consoles;
mod home;
mod outlook;

pub(crate) use outlook::left;

use std::sync::Arc;
use std::time::Duration;

use api::pool::{PoolInstance, SpotPool, SpotPoolStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use provider_aws::Ec2Error;
use provider_core::{Desired, ErrorClass, Observed, Offering, Plan, Refusal, offerings, plan};
use provider_runtime::conditions::{Verdict, reason};
use provider_runtime::events::Happened;
use provider_runtime::policies::Permitted;

use crate::access::Origin;
use crate::act::{ActError, Acted, Actor};
use crate::holds::Holds;
use crate::leases::{Leasing, Registry};
use crate::missing::{self, Missing};
use crate::region::{Region, Snapshot};
use crate::status_writer::{PoolStore, StatusWriter};
use crate::step_error::{AFTER_ERROR, StepError};
use crate::validate::{self, Invalid, Valid};
use crate::{convert, status};

/// The most plans that one reconcile carries out. Each launch that is refused for capacity needs
/// one.
const PASSES: usize = 12;
/// How often a pool is polled for which no event arrives.
pub(crate) const CALM: Duration = Duration::from_mins(1);

/// One reconcile of a pool that is connected to AWS.
pub(crate) struct Pass<'a> {
    /// The control plane's identity.
    pub(crate) cluster: &'a str,
    pub(crate) pool: &'a SpotPool,
    pub(crate) region: &'a Region,
    /// The objects that the access to the region comes from.
    pub(crate) origin: &'a Origin,
    pub(crate) permitted: Permitted,
    pub(crate) deleted: bool,
    /// The leases that have instances of the pool, or wait for one.
    pub(crate) leasing: &'a Leasing,
    /// Tells whether leases still exist.
    pub(crate) registry: &'a dyn Registry,
    /// The requests that EC2 refused in earlier reconciles, and that are not repeated yet.
    pub(crate) holds: Holds,
    pub(crate) now: Timestamp,
}

/// The result of a pass. Its status is in the writer and not written yet.
pub(crate) struct Passed {
    /// The requests that EC2 refused, and that are not repeated yet.
    pub(crate) holds: Holds,
    /// Whether EC2 was not as desired, and was changed.
    pub(crate) acted: bool,
    pub(crate) next: Next,
}

/// The events of a pass for users, whatever its result is.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Observed changes. They are observed again if the status could not be written.
    pub(crate) found: Vec<Happened>,
    /// Changes that the provider made in EC2. They happen once.
    pub(crate) done: Vec<Happened>,
}

/// The step after a pass.
pub(crate) enum Next {
    /// The deleted pool has nothing left: release it.
    Release,
    /// Reconcile again, at the latest after this time.
    Again(Duration),
}

/// The work of a pass.
#[derive(Default)]
struct Work {
    /// The plan that was carried out last.
    last: Option<Plan>,
    /// The error that ended the work.
    failure: Option<Ec2Error>,
}

impl Work {
    /// Whether `plan` was carried out already: EC2 has to catch up before it helps to carry it out
    /// again.
    fn is_done_with(&self, plan: &Plan) -> bool {
        self.last.as_ref() == Some(plan)
    }
}

/// The desired state of a pool, as far as its spec is valid.
enum Want {
    /// The pool is deleted and wants nothing.
    Nothing(Desired),
    /// The pool wants what its valid spec says.
    Valid(Valid),
    /// The spec is invalid: everything stays as it is, except for leases and keys.
    Invalid(Invalid, Desired),
}

impl Want {
    fn desired(&self) -> &Desired {
        match self {
            Self::Nothing(desired) | Self::Invalid(_, desired) => desired,
            Self::Valid(valid) => &valid.desired,
        }
    }

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
        told: &mut Told,
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
            self.region.unavailable().clone(),
            self.holds.launches_until,
        );
        let shown = &mut observed.instances;
        self.region.expectations().correct(snapshot.number, shown);
        observed.home.held.clone_from(&self.holds.home);
        observed.group_in_doubt_until = missing::group_in_doubt_until(self.pool, &observed);
        let shown = &writer.before().at_provider.instances;
        if let Err(error) = self.missing(shown).find(&mut observed).await {
            return Ok(self.fail(writer, &StepError::Observe(error)));
        }
        let mut news = self.note_lost(writer.before(), &mut observed);
        news.extend(status::announced(&writer.before().at_provider, &observed));
        let (want, found) = match self.validate().await {
            Ok(want) => {
                let found = self.find_home(&want, &snapshot, &mut observed).await;
                (self.in_zone(want, &observed), found)
            }
            Err(error) => return Ok(self.fail(writer, &error)),
        };
        if let Err(error) = found {
            return Ok(self.fail(writer, &StepError::Observe(error)));
        }
        let mut acted = Acted::default();
        let work = self.act(&want, writer, &mut observed, &mut acted).await;
        told.done.append(&mut acted.happened);
        told.found.append(&mut news);
        let work = work?;

        let desired = want.desired();
        let last = self.permit(&want, plan(desired, &observed, self.now));
        if let Want::Invalid(invalid, desired) = &want {
            let want = (invalid, desired);
            return Ok(self.stay(writer, want, &snapshot, &observed, &work));
        }
        let next = if self.deleted && work.failure.is_none() && last.is_released() {
            Next::Release
        } else {
            let launched = status::launched(
                &last,
                &observed,
                &offerings(desired, &observed, self.now),
                acted.launch.as_ref(),
                self.origin,
                self.now,
            );
            let synced = work.failure.as_ref().map_or_else(Verdict::synced, |error| {
                Verdict::not_synced("update", &self.origin.explain(error))
            });
            let ready = status::ready(&last, &observed, desired);
            let holds = self.show(writer, &snapshot, &observed, &desired.offerings, &last);
            writer.conclude([ready, synced].into_iter().chain(launched));
            Next::Again(self.look_again(&last, &work).min(holds))
        };
        Ok(Passed {
            holds: Holds {
                launches_until: observed.hold_launches_until,
                home: observed.home.held,
            },
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

    /// Events for instances that ended, but not by this provider. If AWS reclaimed one, its
    /// offering becomes unavailable, so that the replacement comes from another offering.
    fn note_lost(&self, before: &SpotPoolStatus, observed: &mut Observed) -> Vec<Happened> {
        let mut happened = Vec::new();
        if self.deleted {
            return happened;
        }
        let lost = status::lost(&before.at_provider, observed, &self.region.expectations());
        for (offering, seen, event) in lost {
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
                    .unavailable()
                    .refused(&offering, &refusal, &[], self.now);
            }
            happened.push(event);
        }
        observed.unavailable.clone_from(&self.region.unavailable());
        happened
    }

    async fn validate(&self) -> Result<Want, StepError> {
        let mut nothing = validate::deleted(self.pool);
        nothing.leases.clone_from(&self.leasing.leases);
        nothing.force = self.leasing.force;
        if self.deleted {
            return Ok(Want::Nothing(nothing));
        }
        let spec = &self.pool.spec.for_provider;
        let facts = validate::facts(self.region, spec, self.now)
            .await
            .map_err(StepError::Observe)?;
        Ok(match validate::validate(self.pool, facts, self.cluster) {
            Ok(mut valid) => {
                valid.desired.leases = nothing.leases;
                Want::Valid(valid)
            }
            Err(invalid) => Want::Invalid(
                invalid,
                Desired {
                    deleted: false,
                    ..nothing
                },
            ),
        })
    }

    /// Plans and acts until nothing is left to do now.
    async fn act<S: PoolStore>(
        &self,
        want: &Want,
        writer: &mut StatusWriter<S>,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<Work, kube::Error> {
        let mut work = Work::default();
        for _ in 0..PASSES {
            let next = self.permit(want, plan(want.desired(), observed, self.now));
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
                valid: want.valid(),
                tags: validate::pool_tags(self.pool, self.cluster),
                leasing: self.leasing,
                registry: self.registry,
                write_ahead: writer,
                now: self.now,
            };
            match actor.act(&next, observed, acted).await {
                Ok(()) => {}
                Err(ActError::Kube(error)) => return Err(error),
                Err(ActError::Ec2(error)) => work.failure = Some(error),
            }
            work.last = Some(next);
            if self.deleted || work.failure.is_some() {
                break;
            }
        }
        Ok(work)
    }

    /// Ends the pass: AWS did not answer a question on which the plan depends, so nothing is done.
    fn fail<S: PoolStore>(&self, writer: &mut StatusWriter<S>, error: &StepError) -> Passed {
        let message = error.explain(self.origin);
        writer.conclude([Verdict::not_synced(error.step(), &message)]);
        Passed {
            holds: self.holds.clone(),
            acted: false,
            next: Next::Again(AFTER_ERROR),
        }
    }

    /// Ends the pass of a pool with an invalid spec: instances keep running as long as their leases
    /// last, unless the pool wants no instance.
    fn stay<S: PoolStore>(
        &self,
        writer: &mut StatusWriter<S>,
        (invalid, desired): (&Invalid, &Desired),
        snapshot: &Snapshot,
        observed: &Observed,
        work: &Work,
    ) -> Passed {
        let target = writer.before().at_provider.size.desired;
        let stays = Plan {
            target: if desired.wants_none(self.now) {
                0
            } else {
                u32::try_from(target).unwrap_or(0)
            },
            actions: Vec::new(),
            waits: Vec::new(),
            spot_short_since: observed.spot_short_since,
        };
        let holds = self.show(writer, snapshot, observed, &[], &stays);
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
            holds: self.holds.clone(),
            acted: work.last.is_some() && work.failure.is_none(),
            next: Next::Again(self.look_again(&stays, work).min(holds)),
        }
    }

    /// Shows the observed state. Returns how long the status holds if nothing happens.
    fn show<S: PoolStore>(
        &self,
        writer: &mut StatusWriter<S>,
        snapshot: &Snapshot,
        observed: &Observed,
        offerings: &[Offering],
        plan: &Plan,
    ) -> Duration {
        let impaired_since = convert::impaired_since(snapshot, &writer.before().at_provider);
        let shown = &writer.before().at_provider.instances;
        let consoles = self.consoles(&observed.instances, shown);
        let planned = status::Planned {
            target: plan.target,
            waits: &plan.waits,
            spot_short_since: plan.spot_short_since,
            impaired_since: &impaired_since,
            consoles: &consoles,
            spot_prices: &snapshot.spot_prices,
        };
        let shown = status::observation(observed, offerings, &planned, self.now);
        writer.observe(shown);
        self.until_doubt(&observed.instances, &consoles)
    }
}
