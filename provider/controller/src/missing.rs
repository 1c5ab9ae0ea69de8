//! A closer look for what EC2's lists leave out.

use api::condition;
use api::pool::{PoolInstance, SpotPool};
use jiff::{SignedDuration, Timestamp};
use provider_aws::{Ec2, Ec2Error};
use provider_core::{
    Desired, ErrorClass, Instance, InstanceState, Launch, Observed, ObservedHome, Volume,
};

use crate::convert;

/// How old an instance is before EC2 certainly shows it, by id too. Until then one
/// answer may show it and the next one not ("Eventual consistency in the Amazon EC2
/// API").
const YOUNG: SignedDuration = SignedDuration::from_mins(5);
/// How long a new security group may stay out of EC2's lists.
const GROUP_UNSEEN_LIMIT: SignedDuration = SignedDuration::from_mins(1);

/// Until when a deleted pool may have a group that EC2 does not list: one that
/// was created right before the deletion, by a provider that may have died
/// before it could tell. A pool with a listed group has no other.
pub(crate) fn group_in_doubt_until(pool: &SpotPool, observed: &Observed) -> Option<Timestamp> {
    let deleted_at = pool.metadata.deletion_timestamp.as_ref()?.0;
    let shown = pool.status.as_ref().map(|s| &s.at_provider);
    let was_shown = shown.is_some_and(|shown| shown.security_group_id.is_some());
    let owned =
        was_shown || (pool.spec.for_provider.security_group_ids.is_none() && !refused(pool));
    (owned && observed.groups.is_empty())
        .then(|| deleted_at.saturating_add(GROUP_UNSEEN_LIMIT).ok())
        .flatten()
}

/// Whether the spec, as it is, was refused before anything was created for it. The
/// deletion itself makes a generation.
fn refused(pool: &SpotPool) -> bool {
    let conditions = pool.status.as_ref().map(|s| s.conditions.as_slice());
    let last = pool.metadata.generation.unwrap_or_default() - 1;
    condition::find(conditions.unwrap_or_default(), condition::LAUNCHED).is_some_and(|launched| {
        launched.reason == ErrorClass::Configuration.as_str()
            && launched.observed_generation.is_some_and(|of| of >= last)
    })
}

/// What should be in EC2 although no list shows it.
///
/// EC2 lists a terminated instance for an hour, so what is missing hardly ever
/// is gone: one list left it out, or the look is older than the status, which
/// another provider wrote. Nothing is replaced, forgotten or released for what
/// one list lacks.
pub(crate) struct Missing<'a> {
    pub(crate) ec2: &'a dyn Ec2,
    pub(crate) pool_uid: &'a str,
    /// The instances of the stored status.
    pub(crate) shown: &'a [PoolInstance],
    pub(crate) deleted: bool,
    pub(crate) now: Timestamp,
}

impl Missing<'_> {
    /// Asks EC2 for each of them and adds what exists to `observed`, and what is too
    /// young for EC2's word that it does not.
    pub(crate) async fn find(&self, observed: &mut Observed) -> Result<(), Ec2Error> {
        let (overdue, ids) = self.suspects(observed);
        let mut found = Vec::new();
        if !ids.is_empty() {
            found.extend(self.ec2.instances_by_id(&ids).await?);
        }
        for launch in overdue {
            let of_launch = self.ec2.instances_of_launch(self.pool_uid, launch.launch);
            found.extend(of_launch.await?);
        }
        found.extend(self.young());
        let ours = found.into_iter().filter(|i| i.pool_uid == self.pool_uid);
        for instance in ours {
            if observed.instances.iter().all(|i| i.id != instance.id) {
                observed.instances.push(instance);
            }
        }
        observed.settle();
        Ok(())
    }

    /// What the status shows of instances that were launched minutes ago.
    fn young(&self) -> impl Iterator<Item = Instance> {
        let shown = self.shown.iter();
        let shown = shown.filter_map(|i| convert::instance_from_api(self.pool_uid, i));
        shown.filter(|i| {
            let is_young = |at: Timestamp| self.now.duration_since(at) < YOUNG;
            i.state != InstanceState::Terminated && i.launched_at.is_some_and(is_young)
        })
    }

    /// The launches that are about to be forgotten, and the ids of the instances
    /// that the status shows.
    fn suspects(&self, observed: &Observed) -> (Vec<Launch>, Vec<String>) {
        let is_listed = |id: &String| observed.instances.iter().any(|i: &Instance| i.id == *id);
        let shown = self.shown.iter().map(|i| &i.id);
        let ids = shown.filter(|id| !is_listed(id)).cloned().collect();
        let launches = observed.launches.iter();
        let overdue = launches.filter(|l| l.is_overdue(self.deleted, self.now));
        (overdue.cloned().collect(), ids)
    }
}

/// A home that lists do not show, or not as it is.
pub(crate) struct Home<'a> {
    pub(crate) ec2: &'a dyn Ec2,
    pub(crate) pool_uid: &'a str,
    pub(crate) desired: &'a Desired,
    /// The instance that has it by the stored status.
    pub(crate) holder: Option<&'a str>,
    pub(crate) now: Timestamp,
}

impl Home<'_> {
    /// Takes in what a look showed of the home. EC2 is asked where nobody had asked, for
    /// what the status knows and the look does not, which may be the older of the two,
    /// and where volumes are about to be deleted or left. Snapshots are in no look: they
    /// are rare.
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

    /// Takes a look's volumes in; answers whether EC2 has to be asked besides.
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

    /// A volume that EC2 answered with minutes ago and does not list.
    fn add_young(&self, observed: &mut Observed) {
        let home = &mut observed.home;
        let Some(record) = &home.record else { return };
        let Some(id) = &record.volume_id else { return };
        let is_young = record
            .asked_at
            .is_some_and(|at| self.now.duration_since(at) < YOUNG);
        if is_young && home.volumes.iter().all(|volume| volume.id != *id) {
            home.volumes.push(record.begun(id.as_str(), self.pool_uid));
        }
    }
}
