//! Asks EC2 again about instances, launches and homes that its lists leave out.

use std::collections::BTreeSet;

use api::condition::{self, Condition};
use api::pool::{PoolInstance, SpotPool};
use jiff::{SignedDuration, Timestamp};
use provider_aws::{Ec2, Ec2Error};
use provider_core::{
    Desired, ErrorClass, Instance, InstanceState, Launch, Observed, ObservedHome, Volume,
};

use crate::convert;
use crate::region::{GROUP_UNSEEN, Region};

/// The age from which EC2 certainly shows an instance, also in a describe by id. Before that, one
/// answer may show it and the next one may not ("Eventual consistency in the Amazon EC2 API").
const YOUNG: SignedDuration = SignedDuration::from_mins(5);
/// The same age for a volume. It is shorter, because the provider asks for a volume again with the same
/// token, and EC2 answers with the volume if it is there.
const YOUNG_VOLUME: SignedDuration = SignedDuration::from_mins(1);
/// How long EC2 has to show no trace of an older instance before it counts as gone. EC2 lists what is
/// terminated for an hour, so it is hardly ever gone, and two answers can come from the same fault.
const MISSING_LIMIT: SignedDuration = SignedDuration::from_mins(2);

/// Until when a deleted pool may have a group that EC2 does not list. A provider may have created
/// it right before the deletion, and have crashed before it wrote the status. A pool with a listed
/// group has no other group, and none is created for a spec that was refused.
pub(crate) fn group_in_doubt_until(pool: &SpotPool, observed: &Observed) -> Option<Timestamp> {
    let deleted_at = pool.metadata.deletion_timestamp.as_ref()?.0;
    let shown = pool.status.as_ref().map(|s| &s.at_provider);
    let was_shown = shown.is_some_and(|shown| shown.security_group_id.is_some());
    let is_owned = was_shown || pool.spec.for_provider.security_group_ids.is_none();
    let since = match refusal(pool).filter(|_| !was_shown) {
        // The first spec was refused, so no group was ever created.
        Some(refusal) if refusal.observed_generation == Some(1) => return None,
        Some(refusal) => refusal.last_transition_time.0.min(deleted_at),
        None => deleted_at,
    };
    (is_owned && observed.groups.is_empty())
        .then(|| since.saturating_add(GROUP_UNSEEN).ok())
        .flatten()
}

/// The refusal of the current spec; none if the spec was not refused. The deletion itself increments
/// the generation.
fn refusal(pool: &SpotPool) -> Option<&Condition> {
    let conditions = pool.status.as_ref().map(|s| s.conditions.as_slice());
    let last = pool.metadata.generation.unwrap_or_default() - 1;
    condition::find(conditions.unwrap_or_default(), condition::LAUNCHED).filter(|launched| {
        launched.reason == ErrorClass::Configuration.as_str()
            && launched.observed_generation.is_some_and(|of| of >= last)
    })
}

/// Instances and launches that should be in EC2 although no list shows them.
///
/// EC2 lists a terminated instance for an hour, so a missing one is hardly ever gone. Either one
/// list left it out, or the look is older than the status, which another provider wrote. Nothing is
/// replaced, forgotten or released because one list lacks it.
pub(crate) struct Missing<'a> {
    pub(crate) region: &'a Region,
    pub(crate) pool_uid: &'a str,
    /// The instances in the stored status.
    pub(crate) shown: &'a [PoolInstance],
    pub(crate) deleted: bool,
    pub(crate) now: Timestamp,
}

impl Missing<'_> {
    /// Asks EC2 for each missing instance and launch, and adds those that exist to `observed`. It
    /// also adds instances that lost their tags, and those of which EC2 may wrongly show no trace. It
    /// removes the bindings and ends of instances that EC2 does not list with the pool's tags any more.
    pub(crate) async fn find(&self, observed: &mut Observed) -> Result<(), Ec2Error> {
        let (overdue, ids) = self.suspects(observed);
        let noted = self.noted(observed);
        let asked: Vec<String> = ids.into_iter().chain(noted.iter().cloned()).collect();
        let mut found = Vec::new();
        if !asked.is_empty() {
            found.extend(self.region.describe(&asked).await?.all()?);
        }
        let is_ours = |instance: &Instance| instance.pool_uid == self.pool_uid;
        let is_found = |id: &String| found.iter().any(|i| i.id == *id && is_ours(i));
        observed.forget(&noted.into_iter().filter(|id| !is_found(id)).collect());
        for launch in overdue {
            let ec2 = &self.region.ec2;
            let of_launch = ec2.instances_of_launch(self.pool_uid, launch.launch);
            found.extend(of_launch.await?);
        }
        self.keep_unseen(&found, observed).await?;
        let ours = found.into_iter().filter(|i| i.pool_uid == self.pool_uid);
        for instance in ours {
            if observed.instances.iter().all(|i| i.id != instance.id) {
                observed.instances.push(instance);
            }
        }
        observed.settle();
        Ok(())
    }

    /// Adds every missing instance as the status shows it, because EC2 did not answer.
    pub(crate) fn keep(&self, observed: &mut Observed) {
        for shown in self.shown {
            let is_listed = observed.instances.iter().any(|i| i.id == shown.id);
            let kept = convert::instance_from_api(self.pool_uid, shown);
            observed
                .instances
                .extend(kept.filter(|i| !is_listed && i.state != InstanceState::Terminated));
            if let Some(since) = shown.missing_since.as_ref().filter(|_| !is_listed) {
                observed.missing_since.insert(shown.id.clone(), since.0);
            }
        }
        observed.settle();
    }

    /// The instances with a lease or a begun termination that neither the status nor a list shows.
    /// EC2 lists a terminated instance for an hour, and the provider may have been down for longer.
    /// The status shows an instance from its binding on, until EC2 does not list it any more. So a
    /// young instance is not among them.
    fn noted(&self, observed: &Observed) -> BTreeSet<String> {
        let is_shown = |id: &String| self.shown.iter().any(|i| i.id == *id);
        let is_listed = |id: &String| observed.instances.iter().any(|i| i.id == *id);
        let noted = observed.bindings.values().chain(observed.ending.keys());
        noted
            .filter(|id| !is_shown(id) && !is_listed(id))
            .cloned()
            .collect()
    }

    /// Adds the instances of the status that EC2 does not show with the control plane's tag, and that
    /// may still run. `found` are those that EC2 does show.
    async fn keep_unseen(
        &self,
        found: &[Instance],
        observed: &mut Observed,
    ) -> Result<(), Ec2Error> {
        let is_seen = |id: &String| {
            let mut all = observed.instances.iter().chain(found);
            all.any(|i| i.id == *id)
        };
        let unseen = self.shown.iter().filter(|shown| !is_seen(&shown.id));
        let unseen: Vec<_> = unseen
            .filter_map(|shown| {
                let kept = convert::instance_from_api(self.pool_uid, shown)?;
                (kept.state != InstanceState::Terminated).then_some((shown, kept))
            })
            .collect();
        if unseen.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = unseen.iter().map(|(_, kept)| kept.id.clone()).collect();
        let states = self.region.ec2.states(&ids).await?;
        for (shown, mut kept) in unseen {
            match states.get(&kept.id) {
                Some(state) if state.is_live() => {
                    kept.state = *state;
                    observed.untagged.insert(kept.id.clone());
                }
                Some(_) => continue,
                None if self.is_young(&kept) => {}
                None if !kept.state.is_live() => continue,
                None => {
                    let since = shown.missing_since.as_ref().map_or(self.now, |at| at.0);
                    if self.now.duration_since(since) >= MISSING_LIMIT {
                        continue;
                    }
                    observed.missing_since.insert(kept.id.clone(), since);
                }
            }
            observed.instances.push(kept);
        }
        Ok(())
    }

    fn is_young(&self, instance: &Instance) -> bool {
        let is_young = |at: Timestamp| self.now.duration_since(at) < YOUNG;
        instance.launched_at.is_some_and(is_young)
    }

    /// The launches that are about to be forgotten, and the ids of the instances that the status
    /// shows and no list does.
    fn suspects(&self, observed: &Observed) -> (Vec<Launch>, Vec<String>) {
        let is_listed = |id: &String| observed.instances.iter().any(|i: &Instance| i.id == *id);
        let shown = self.shown.iter().map(|i| &i.id);
        let ids = shown.filter(|id| !is_listed(id)).cloned().collect();
        let launches = observed.launches.iter();
        let overdue = launches.filter(|l| l.is_overdue(self.deleted, self.now));
        (overdue.cloned().collect(), ids)
    }
}

/// A home that lists do not show, or show in an old state.
pub(crate) struct Home<'a> {
    pub(crate) ec2: &'a dyn Ec2,
    pub(crate) pool_uid: &'a str,
    pub(crate) desired: &'a Desired,
    /// The instance that has the home, from the stored status.
    pub(crate) holder: Option<&'a str>,
    pub(crate) now: Timestamp,
}

impl Home<'_> {
    /// Merges the volumes of a look into the home. EC2 is asked in addition in three cases: the
    /// look does not include volumes; the status knows something that the look does not show,
    /// because either may be the older one; or volumes are about to be deleted or retained. No look
    /// includes snapshots, because they are rare.
    pub(crate) async fn find(
        &self,
        seen: Option<Vec<Volume>>,
        observed: &mut Observed,
    ) -> Result<(), Ec2Error> {
        let was_lost = observed.home.record.is_none();
        if self.take_in(seen, &mut observed.home) {
            let fresh = self.ec2.volumes_of(self.pool_uid).await?;
            observed.home.learn(fresh);
        }
        self.add_young(observed);
        if observed.home.was_taken_back() {
            observed.home.ask_again();
        }
        let is_unwanted = self.desired.home.is_none() && !self.desired.deleted;
        if is_unwanted && observed.home.is_lost() {
            observed.home.give_up();
        }
        observed.settle();
        let is_new_here = was_lost && observed.home.record.is_some();
        if is_new_here || observed.needs_snapshots(self.desired) {
            let snapshots = self.ec2.snapshots_of(self.pool_uid).await?;
            observed.home.snapshots = snapshots;
            observed.settle();
        }
        Ok(())
    }

    /// Merges a look's volumes, and returns whether EC2 has to be asked in addition.
    fn take_in(&self, seen: Option<Vec<Volume>>, home: &mut ObservedHome) -> bool {
        let is_unseen = seen.is_none();
        home.learn(seen.unwrap_or_default());
        let known = home.record.iter();
        let is_copied = home.is_changing();
        let mut known = known.flat_map(|record| record.volume_id.iter().chain(&record.copy_of));
        let is_free = home.volume().is_some_and(Volume::is_free);
        is_unseen
            || is_copied
            || self.desired.deleted
            || (is_free && self.holder.is_some())
            || known.any(|id| home.find(id).is_none())
    }

    /// Adds the volume if EC2 created it minutes ago and does not list it yet.
    fn add_young(&self, observed: &mut Observed) {
        let home = &mut observed.home;
        let Some(record) = &home.record else { return };
        let Some(id) = &record.volume_id else { return };
        let is_young = record
            .asked_at
            .is_some_and(|at| self.now.duration_since(at) < YOUNG_VOLUME);
        if is_young && home.volumes.iter().all(|volume| volume.id != *id) {
            home.volumes.push(record.begun(id.as_str(), self.pool_uid));
        }
    }
}
