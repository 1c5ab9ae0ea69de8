//! The end of a pass: its status, its conditions, and the time of the next one.

use std::time::Duration;

use api::condition::{ConditionStatus, SYNCED};
use api::pool::SpotPoolStatus;
use provider_core::{Desired, Observed, Offering, Plan, offerings, plan};
use provider_runtime::conditions::{Verdict, reason};

use super::want::{Unknown, is_told, told_failure};
use super::{Next, Pass, Passed, Want, Work};
use crate::account::Elsewhere;
use crate::act::Acted;
use crate::holds::Holds;
use crate::region::Snapshot;
use crate::status_writer::{PoolStore, StatusWriter};
use crate::step_error::{AFTER_ERROR, StepError};
use crate::validate::Invalid;
use crate::{convert, status};

impl Pass<'_> {
    /// Ends the pass of a pool whose plan was carried out.
    pub(super) fn conclude<S: PoolStore>(
        &self,
        writer: &mut StatusWriter<S>,
        want: &Want,
        snapshot: &Snapshot,
        observed: Observed,
        work: &Work,
        acted: &Acted,
    ) -> Passed {
        let desired = want.desired();
        let last = self.permit(want, plan(desired, &observed, self.now));
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
            let synced = match (&work.failure, told_failure(snapshot, self.now)) {
                (Some(error), _) => Verdict::not_synced("update", &self.origin.explain(error)),
                (None, Some(error)) => Verdict::not_synced("observe", &self.origin.explain(error)),
                (None, None) => Verdict::synced_with(want.advice(self.now)),
            };
            let ready = status::ready(&last, &observed, desired);
            let holds = self.show(writer, snapshot, &observed, &desired.offerings, &last);
            writer.conclude([ready, synced].into_iter().chain(launched));
            Next::Again(self.look_again(&last, work).min(holds))
        };
        Passed {
            holds: Holds {
                launches_until: observed.hold_launches_until,
                launch_failures: observed.launch_failures,
                home: observed.home.held,
                unjudged_since: None,
            },
            acted: work.has_acted(),
            next,
        }
    }

    /// Ends the pass: AWS did not answer a question on which the plan depends, so nothing is done.
    pub(super) fn fail<S: PoolStore>(
        &self,
        writer: &mut StatusWriter<S>,
        error: &StepError,
    ) -> Passed {
        let message = error.explain(self.origin);
        self.rest(writer, Verdict::not_synced(error.step(), &message))
    }

    /// Ends the pass of a pool whose resources the provider cannot see. The status still shows them.
    pub(super) fn keep_away<S: PoolStore>(
        &self,
        writer: &mut StatusWriter<S>,
        elsewhere: Elsewhere,
    ) -> Passed {
        let Elsewhere { reason, message } = elsewhere;
        let synced = Verdict::new(SYNCED, ConditionStatus::False, reason, message);
        self.rest(writer, synced)
    }

    /// Ends a pass in which nothing was done, because of what `synced` says.
    fn rest<S: PoolStore>(&self, writer: &mut StatusWriter<S>, synced: Verdict) -> Passed {
        writer.conclude([synced]);
        Passed {
            holds: self.holds.clone(),
            acted: false,
            next: Next::Again(AFTER_ERROR),
        }
    }

    /// Ends the pass of a pool with an invalid spec: instances keep running as long as their leases
    /// last, unless the pool wants no instance.
    pub(super) fn stay<S: PoolStore>(
        &self,
        writer: &mut StatusWriter<S>,
        (invalid, desired): (&Invalid, &Desired),
        snapshot: &Snapshot,
        observed: &Observed,
        work: &Work,
    ) -> Passed {
        let stays = self.stays(writer.before(), desired, observed);
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
            holds: Holds {
                unjudged_since: None,
                ..self.holds.clone()
            },
            acted: work.has_acted(),
            next: Next::Again(self.look_again(&stays, work).min(holds)),
        }
    }

    /// Ends the pass of a pool that is not judged, because EC2 did not tell all that this needs.
    /// What passes within a minute changes no condition.
    pub(super) fn wait<S: PoolStore>(
        &self,
        writer: &mut StatusWriter<S>,
        (unknown, desired): (&Unknown, &Desired),
        snapshot: &Snapshot,
        observed: &Observed,
        work: &Work,
    ) -> Passed {
        let since = self.holds.unjudged_since.unwrap_or(self.now);
        let stays = self.stays(writer.before(), desired, observed);
        let holds = self.show(writer, snapshot, observed, &[], &stays);
        let error = work.failure.as_ref().or(unknown.error());
        let told = error.filter(|error| is_told(error, since, self.now));
        let synced = told.map(|error| Verdict::not_synced("observe", &self.origin.explain(error)));
        writer.conclude(status::fewer(&stays, observed).into_iter().chain(synced));
        let again = self.look_again(&stays, work).min(AFTER_ERROR);
        Passed {
            holds: Holds {
                unjudged_since: Some(since),
                ..self.holds.clone()
            },
            acted: work.has_acted(),
            next: Next::Again(again.min(holds)),
        }
    }

    /// The plan of a pool whose number of instances is not planned.
    fn stays(&self, before: &SpotPoolStatus, desired: &Desired, observed: &Observed) -> Plan {
        let target = before.at_provider.size.desired;
        Plan {
            target: if desired.deleted || desired.wants_none(self.now) {
                0
            } else {
                u32::try_from(target).unwrap_or(0)
            },
            actions: Vec::new(),
            waits: Vec::new(),
            spot_short_since: observed.spot_short_since,
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
        let mut shown = status::observation(observed, offerings, &planned, self.now);
        let before = &writer.before().at_provider;
        if observed.home.is_unseen {
            shown.home.clone_from(&before.home);
        }
        // A list may lack the group. So only another group, or the provider's own deletion, takes the
        // place of the group that the status names.
        let groups = snapshot.groups.get(&self.identity.value);
        let is_listed = |id: &String| groups.into_iter().flatten().any(|group| group.id == *id);
        if shown.security_group_id.is_none() {
            let group = before.security_group_id.clone();
            shown.security_group_id = group.filter(|id| !(self.deleted && is_listed(id)));
        }
        writer.observe(shown);
        self.until_doubt(&observed.instances, &consoles)
    }
}
