//! The steps of a reconcile after connecting: validate, plan, act, status.
//!
//! Kubernetes is behind the status writer and the registry of leases, and EC2 behind the region.

mod conclusion;
mod consoles;
mod home;
mod judge;
mod outlook;
mod want;

pub(crate) use outlook::left;
use want::{Unknown, Want};

use std::sync::Arc;
use std::time::Duration;

use api::pool::{SpotPool, SpotPoolStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use provider_aws::Ec2Error;
use provider_core::{ErrorClass, Observed, Plan, Refusal, plan};
use provider_runtime::events::Happened;
use provider_runtime::policies::Permitted;

use crate::access::Origin;
use crate::account::{Elsewhere, Place};
use crate::act::{Acted, Actor, LaunchOutcome, hold};
use crate::holds::Holds;
use crate::leases::{Leasing, Registry};
use crate::locking::lock;
use crate::missing::{self, Missing};
use crate::region::{Account, Region, Snapshot};
use crate::seals::{Identity, Marks};
use crate::status_writer::{PoolStore, StatusWriter};
use crate::step_error::StepError;
use crate::validate;
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
    /// The pool's identity, by which its resources in EC2 are found.
    pub(crate) identity: &'a Identity,
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

    /// Whether EC2 was not as desired, and was changed.
    fn has_acted(&self) -> bool {
        self.last.is_some() && self.failure.is_none()
    }
}

impl Pass<'_> {
    /// Observes what the pool has, validates what it wants, plans and acts, and sets the status.
    ///
    /// Each step of the observation may fail alone. Then the pool is not judged: nothing is
    /// launched, forgotten or released. What has to end still ends, because that needs nothing but
    /// a fresh describe of the instance.
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
        let mut unknown = Unknown::default();
        if let Err(elsewhere) = self.place(writer, &snapshot, &mut unknown) {
            return Ok(self.keep_away(writer, elsewhere));
        }
        let mut observed = self.recall(writer.before(), &snapshot);
        let mut acted = Acted::default();
        let mut news = self
            .find_missing(writer.before(), &mut observed, &mut unknown, &mut acted)
            .await;
        let want = self.judge(&mut unknown).await;
        let want = self.find_home(want, &snapshot, &mut observed, &mut unknown);
        let want = want.await.unless(unknown);

        let work = self.act(&want, writer, &mut observed, &mut acted).await;
        told.done.append(&mut acted.happened);
        told.found.append(&mut news);
        let work = work?;
        Ok(match &want {
            Want::Invalid(invalid, desired) => {
                self.stay(writer, (invalid, desired), &snapshot, &observed, &work)
            }
            Want::Unjudged(unknown, desired) => {
                self.wait(writer, (unknown, desired), &snapshot, &observed, &work)
            }
            Want::Nothing(_) | Want::Valid(_) => {
                self.conclude(writer, &want, &snapshot, observed, &work, &acted)
            }
        })
    }

    /// Checks that the look shows the account of the pool's resources, and writes the account into
    /// the status. An account that AWS did not tell is noted as unknown.
    fn place<S: PoolStore>(
        &self,
        writer: &mut StatusWriter<S>,
        snapshot: &Snapshot,
        unknown: &mut Unknown,
    ) -> Result<(), Elsewhere> {
        let account = match &snapshot.account {
            Account::Known(account) => account,
            Account::Unknown(error) => {
                unknown.note(error.clone());
                return Ok(());
            }
        };
        let place = Place {
            account,
            identity: self.cluster,
        };
        place.check(&writer.before().at_provider, self.origin)?;
        writer.place(place, self.identity);
        Ok(())
    }

    /// The tags by which the pool's resources are found.
    fn marks(&self) -> Marks<'_> {
        Marks {
            cluster: self.cluster,
            pool: &self.identity.value,
        }
    }

    /// What the pool has, by the look and the status.
    fn recall(&self, before: &SpotPoolStatus, snapshot: &Snapshot) -> Observed {
        let mut observed = convert::observed(
            &self.identity.value,
            snapshot,
            &before.at_provider,
            self.region.notices().all(),
            lock(&self.region.unavailable()).clone(),
            &self.holds,
        );
        let shown = &mut observed.instances;
        self.region.expectations().correct(snapshot.number, shown);
        observed.home.held.clone_from(&self.holds.home);
        observed.group_in_doubt_until = missing::group_in_doubt_until(self.pool, &observed);
        // An older list cannot show the group that is in doubt.
        let is_older = |until: &Timestamp| snapshot.groups_at.is_none_or(|at| at < *until);
        observed.are_groups_unseen |= observed.group_in_doubt_until.as_ref().is_some_and(is_older);
        observed
    }

    /// Looks for what lists do not show, and returns the events about what was lost.
    async fn find_missing(
        &self,
        before: &SpotPoolStatus,
        observed: &mut Observed,
        unknown: &mut Unknown,
        acted: &mut Acted,
    ) -> Vec<Happened> {
        let missing = Missing {
            region: self.region,
            pool_uid: &self.identity.value,
            shown: &before.at_provider.instances,
            deleted: self.deleted,
            now: self.now,
        };
        let found = match unknown.error() {
            // A list of another account lacks everything.
            Some(error) => Err(error.clone()),
            None => missing.find(observed).await,
        };
        let mut news = match found {
            Ok(()) => {
                if let Err(error) = self.leasing.forget_gone(self.registry, observed).await {
                    let pool = self.pool.name_any();
                    tracing::warn!(pool, %error, "cannot tell whether leases are gone");
                }
                acted.launch = self.note_births(before, observed);
                self.note_lost(before, observed)
            }
            Err(error) => {
                missing.keep(observed);
                unknown.note(error);
                Vec::new()
            }
        };
        news.extend(status::untagged(&before.at_provider, observed));
        news.extend(status::announced(&before.at_provider, observed));
        news.extend(status::scheduled(&before.at_provider, observed));
        news
    }

    /// Instances that EC2 ended while it launched them are a refusal of the launch: without a rest
    /// the pool would launch the next ones at once, and without end.
    fn note_births(
        &self,
        before: &SpotPoolStatus,
        observed: &mut Observed,
    ) -> Option<LaunchOutcome> {
        let Some((offering, refusal)) = status::died_at_birth(&before.at_provider, observed) else {
            if observed.runs_latest_launch() {
                observed.launch_failures = 0;
            }
            return None;
        };
        if refusal.class == ErrorClass::Capacity {
            let unavailable = self.region.unavailable();
            lock(&unavailable).refused(&offering, &refusal, &[], self.now);
        }
        let class = match refusal.class {
            // The limit may be one that no offering avoids.
            ErrorClass::Quota => ErrorClass::Configuration,
            class => class,
        };
        hold(class, observed, &self.identity.value, self.now);
        Some(LaunchOutcome::Refused { offering, refusal })
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
                let unavailable = self.region.unavailable();
                lock(&unavailable).refused(&offering, &refusal, &[], self.now);
            }
            happened.push(event);
        }
        observed
            .unavailable
            .clone_from(&lock(&self.region.unavailable()));
        happened
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
                identity: &self.identity.value,
                valid: want.valid(),
                tags: validate::pool_tags(self.pool, self.marks()),
                leasing: self.leasing,
                registry: self.registry,
                write_ahead: writer,
                now: self.now,
            };
            let unended = observed.unended.len();
            actor.act(&next, observed, acted).await?;
            work.failure = acted.failures.first().cloned();
            work.last = Some(next);
            // The next plan reckons with instances that did not end.
            let goes_on = work.failure.is_none() || observed.unended.len() > unended;
            if self.deleted || !goes_on {
                break;
            }
        }
        Ok(work)
    }
}
