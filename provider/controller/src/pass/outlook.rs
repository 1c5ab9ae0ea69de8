//! The part of a plan that may be carried out, and the time of the next reconcile.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use provider_core::{Action, Disruption, ErrorClass, HomeAction, HomeWait, Plan, Wait};
use provider_runtime::policies::Permitted;

use super::{CALM, Pass, Want, Work};

/// The time before the next reconcile after AWS failed, and while EC2 catches up.
const AFTER_ERROR: Duration = Duration::from_secs(5);
/// The time before the next reconcile while EC2 makes a snapshot, which takes minutes.
const COPYING: Duration = Duration::from_secs(15);
/// How long after an action the provider polls its effects at the fast interval.
const WATCH_EFFECTS: SignedDuration = SignedDuration::from_secs(30);

impl Pass<'_> {
    /// Removes the actions from a plan that the pool's management policies do not permit. If the
    /// spec is invalid or the pool is not judged, it also removes all actions except those for
    /// leases and keys. A pool that wants no instance still ends its instances: that depends on
    /// nothing else.
    pub(super) fn permit(&self, want: &Want, mut plan: Plan) -> Plan {
        let Permitted {
            create,
            update,
            delete,
        } = self.permitted;
        plan.actions.retain(|action| match action {
            Action::CreateGroup { .. } | Action::Launch(_) => create,
            Action::SetGroupRules { .. } | Action::Bind { .. } | Action::Authorize { .. } => update,
            Action::Home(HomeAction::Create(_) | HomeAction::Copy(_)) if !self.deleted => create,
            Action::Terminate { .. } | Action::DeleteTemplate { .. } | Action::Home(_)
                if !self.deleted =>
            {
                update
            }
            Action::Terminate { .. }
            | Action::DeleteTemplate { .. }
            | Action::DeleteGroup { .. }
            | Action::Home(_) => delete,
            Action::Forget { .. } => true,
        });
        if let Some(desired) = want.bounded() {
            let is_over = desired.deleted || desired.wants_none(self.now);
            let ends = |a: &Action| is_over && matches!(a, Action::Terminate { .. });
            plan.actions.retain(|a| is_about_access(a) || ends(a));
        }
        plan
    }

    /// Asks for frequent looks, because EC2 will soon show the effects of an action.
    pub(super) fn watch_effects(&self) {
        let until = self.now.saturating_add(WATCH_EFFECTS);
        self.region.poll_fast_until(until.unwrap_or(Timestamp::MAX));
    }

    /// A time of up to five seconds, by which this pool asks later than others.
    fn apart(&self) -> Duration {
        let uid = &self.identity.value;
        let five = SignedDuration::from_secs(5);
        let time = provider_core::back_off(five, 1, uid) - five.saturating_mul(4) / 5;
        Duration::try_from(time)
            .unwrap_or_default()
            .saturating_mul(5)
            / 2
    }

    /// The time until the pool is reconciled again, at the latest.
    pub(super) fn look_again(&self, last: &Plan, work: &Work) -> Duration {
        if let Some(error) = &work.failure {
            return match error.class {
                ErrorClass::Throttled | ErrorClass::Transient => AFTER_ERROR,
                // A person has to act first.
                _ => CALM,
            };
        }
        let soonest = last.waits.iter().map(|wait| match wait {
            Wait::Instances | Wait::Missing { .. } => {
                self.watch_effects();
                AFTER_ERROR
            }
            // Every pool of the region waits for the same second.
            Wait::Capacity { until } => left(*until, self.now) + self.apart(),
            Wait::Fallback { until } | Wait::Age { until } | Wait::Retry { until } => {
                left(*until, self.now)
            }
            Wait::Home(wait) => self.look_again_at_home(wait),
            Wait::Stopped { .. }
            | Wait::Untagged { .. }
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
        let a_lease_ends = self.leasing.next_end.map(|end| left(end, self.now));
        let end = self.pool.spec.for_provider.ends_at.as_ref();
        let it_ends = end.filter(|Time(at)| *at > self.now);
        let it_ends = it_ends.map(|Time(at)| left(*at, self.now));
        let soonest = soonest.chain(more_to_do).chain(a_lease_ends).chain(it_ends);
        soonest.min().unwrap_or(CALM).min(CALM)
    }
}

impl Pass<'_> {
    fn look_again_at_home(&self, wait: &HomeWait) -> Duration {
        match wait {
            HomeWait::Creating { .. } | HomeWait::Attaching { .. } | HomeWait::Detaching { .. } => {
                self.watch_effects();
                AFTER_ERROR
            }
            HomeWait::Copying { .. } => COPYING,
            HomeWait::Refused { hold, .. } => left(hold.until, self.now),
            HomeWait::Foreign { .. }
            | HomeWait::Lost { .. }
            | HomeWait::Broken { .. }
            | HomeWait::Elsewhere { .. }
            | HomeWait::Capacity { .. } => CALM,
        }
    }
}

/// The time from `now` until just after `moment`.
pub(crate) fn left(moment: Timestamp, now: Timestamp) -> Duration {
    let left = moment.duration_since(now);
    Duration::try_from(left).unwrap_or_default() + Duration::from_millis(100)
}

fn is_about_access(action: &Action) -> bool {
    match action {
        Action::Bind { .. } | Action::Authorize { .. } => true,
        Action::Terminate { why, .. } => {
            matches!(why, Disruption::LeaseOver | Disruption::Begun(_))
        }
        _ => false,
    }
}
