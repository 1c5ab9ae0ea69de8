//! Observes the home before the planner runs.

use provider_aws::Ec2Error;
use provider_core::Observed;

use super::want::{Unknown, unlaunchable};
use super::{Pass, Want};
use crate::region::Snapshot;
use crate::{home_zone, missing};

impl Pass<'_> {
    /// Observes the home. A spec that allows no launch in the home's zone is invalid.
    pub(super) async fn find_home(
        &self,
        want: Want,
        snapshot: &Snapshot,
        observed: &mut Observed,
        unknown: &mut Unknown,
    ) -> Want {
        match self.look_for_home(&want, snapshot, observed).await {
            Ok(()) => self.in_zone(want, observed),
            Err(error) => {
                observed.home.is_unseen = true;
                unknown.note(error);
                want
            }
        }
    }

    /// Observes the home from the look. If the look is not enough, it makes a fresh describe.
    async fn look_for_home(
        &self,
        want: &Want,
        snapshot: &Snapshot,
        observed: &mut Observed,
    ) -> Result<(), Ec2Error> {
        let record = &observed.home.record;
        if want.desired().home.is_none() && record.is_none() {
            return Ok(());
        }
        let uid = &self.identity.value;
        self.region.has_home(uid);
        let shown = self.pool.status.as_ref();
        let shown = shown.and_then(|status| status.at_provider.home.as_ref());
        let search = missing::Home {
            ec2: self.region.ec2.as_ref(),
            pool_uid: uid,
            desired: want.desired(),
            holder: shown.and_then(|home| home.attached_to.as_deref()),
            now: self.now,
        };
        let seen = match snapshot.homes.of(uid) {
            None => None,
            Some(Ok(seen)) => Some(seen.to_vec()),
            Some(Err(error)) => return Err(error.clone()),
        };
        search.find(seen, observed).await
    }

    fn in_zone(&self, want: Want, observed: &Observed) -> Want {
        let Want::Valid(valid) = want else {
            return want;
        };
        let spec = &self.pool.spec.for_provider;
        match home_zone::check(spec, &valid, &observed.home) {
            Ok(()) => Want::Valid(valid),
            Err(invalid) => Want::Invalid(invalid, unlaunchable(valid.desired)),
        }
    }
}
