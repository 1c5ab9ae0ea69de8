//! The actions on the home volume. Before each one the provider writes the status: the status holds
//! the request, and the write fails unless spec and status are the newest.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use provider_aws::{Ec2Error, SnapshotRequest, Tags, VolumeRequest};
use provider_core::{
    Action, Attachment, ErrorClass, HomeAction, HomeHold, HomeRecord, HomeStep, InstanceState,
    Observed, Phase, Plan, Volume, VolumeState, volume_token,
};
use provider_runtime::events::Happened;

use super::{Acted, Actor, WriteAhead};

/// How long EC2 takes to show a volume's new size.
const GROWS: SignedDuration = SignedDuration::from_mins(5);
/// How long the provider waits after EC2 said that a token was used with other parameters, and no
/// list shows its volume. If the volume is not listed afterwards either, a person deleted it.
const MISMATCHED: SignedDuration = SignedDuration::from_mins(6);

impl<W: WriteAhead> Actor<'_, W> {
    /// Carries out a plan's actions on the home. A refusal of EC2 affects only the home.
    pub(super) async fn act_on_home(
        &mut self,
        plan: &Plan,
        observed: &mut Observed,
        acted: &mut Acted,
    ) -> Result<(), kube::Error> {
        for action in plan.of(Phase::Home) {
            let Action::Home(action) = action else {
                continue;
            };
            let before = observed.home.record.clone();
            if let HomeAction::Create(record) | HomeAction::Copy(record) = action {
                observed.home.record = Some(record.clone());
            }
            self.write_ahead.persist(observed).await?;
            let done = self.act_once(action, before.as_ref(), observed).await;
            match done {
                Ok(Some(happened)) => acted.happened.push(happened),
                Ok(None) => {}
                Err(error) => self.note_refusal(action, before, &error, observed, acted),
            }
            observed.settle();
        }
        Ok(())
    }
}

impl<W> Actor<'_, W> {
    /// Carries out one action, and returns its event. It returns `None` if a fresh describe shows
    /// that the action is not needed any more. A volume that the describe does not show is not
    /// touched.
    async fn act_once(
        &self,
        action: &HomeAction,
        before: Option<&HomeRecord>,
        observed: &mut Observed,
    ) -> Result<Option<Happened>, Ec2Error> {
        if let HomeAction::DeleteSnapshot { snapshot_id } = action {
            return self.delete_snapshot(snapshot_id, observed).await;
        }
        let fresh = self.region.ec2.volumes_of(self.identity).await?;
        let ids = fresh.iter().filter(|volume| !volume.is_gone());
        let ids: BTreeSet<String> = ids.map(|volume| volume.id.clone()).collect();
        observed.home.learn(fresh);
        match action {
            HomeAction::Create(record) => self.create(record, before, observed).await,
            HomeAction::Copy(record) => self.copy(record, before, &ids, observed).await,
            HomeAction::DeleteVolume { volume_id } => {
                self.delete_volume(volume_id, &ids, observed).await
            }
            HomeAction::Attach { volume_id, .. }
            | HomeAction::Grow { volume_id, .. }
            | HomeAction::Keep { volume_id }
                if !ids.contains(volume_id) =>
            {
                Ok(None)
            }
            HomeAction::Attach {
                volume_id,
                instance_id,
            } => self.attach(volume_id, instance_id, observed).await,
            HomeAction::Grow {
                volume_id,
                size_gib,
            } => self.grow(volume_id, *size_gib, observed).await,
            HomeAction::Keep { volume_id } => self.keep(volume_id, observed).await,
            HomeAction::DeleteSnapshot { .. } => Ok(None),
        }
    }

    /// The UID of the pool's object, for tokens: see [`crate::validate::Valid::request`].
    fn uid(&self) -> &str {
        self.pool.metadata.uid.as_deref().unwrap_or_default()
    }

    async fn create(
        &self,
        record: &HomeRecord,
        before: Option<&HomeRecord>,
        observed: &mut Observed,
    ) -> Result<Option<Happened>, Ec2Error> {
        let home = &mut observed.home;
        if before.is_none() && home.volumes.iter().any(|volume| !volume.is_gone()) {
            // The status was lost: the existing volume is adopted.
            home.record = None;
            return Ok(None);
        }
        if home.volumes.iter().any(|v| v.number == record.number) {
            return Ok(None);
        }
        let source = record.copy_of.as_ref().and_then(|id| home.find(id));
        if let Some(source) = source.filter(|volume| !volume.is_free()) {
            // An instance has the volume again, so the snapshot may lack its last changes.
            home.record = Some(record.back_to(source));
            return Ok(None);
        }
        if let Some(id) = &record.snapshot_id {
            self.check_snapshot(id).await?;
        }
        let mut tags = self.home_tags(record.number);
        if let Some(source) = &record.copy_of {
            tags.insert(api::tags::HOME_COPY_OF.into(), source.clone());
        }
        let request = VolumeRequest {
            token: volume_token(self.uid(), record),
            zone: record.zone.clone(),
            size_gib: record.size_gib,
            snapshot_id: record.snapshot_id.clone(),
            kms_key_id: self.pool.spec.for_provider.kms_key_id.clone(),
            tags,
        };
        let made = match self.region.ec2.create_volume(&request).await {
            Err(error) if error.is_token_mismatch() => {
                let asked_at = before.and_then(|record| record.asked_at);
                let is_old = |at: Timestamp| self.now.duration_since(at) >= MISMATCHED;
                if !error.is_token_of_deleted() && !asked_at.is_some_and(is_old) {
                    return Err(error);
                }
                let source = record.copy_of.as_ref().and_then(|id| home.find(id));
                home.record = Some(match source {
                    // The files are there. Another instance may get them in that zone.
                    Some(source) => record.back_to(source),
                    None => HomeRecord {
                        number: record.number + 1,
                        ..record.clone()
                    },
                });
                return Err(taken_back(&error, &record.zone));
            }
            made => made?,
        };
        let text = format!(
            "made the home volume {}: {} GiB in {}",
            made.id, made.size_gib, made.zone
        );
        home.volumes.push(made);
        Ok(Some(Happened::normal("CreatedHome", text)))
    }

    /// Refuses a snapshot without the pool's tags. A person who may write the pool's status could
    /// name any snapshot of the account, and read it on their instance.
    async fn check_snapshot(&self, id: &str) -> Result<(), Ec2Error> {
        let own = self.region.ec2.snapshots_of(self.identity).await?;
        if own.iter().any(|snapshot| snapshot.id == id) {
            return Ok(());
        }
        Err(Ec2Error {
            operation: "CreateVolume",
            code: "SnapshotOfOthers".into(),
            message: format!(
                "status.atProvider.home.snapshotId names {id}, which does not have the tags of \
                 this pool's home: take it out of the status"
            ),
            class: ErrorClass::Configuration,
        })
    }

    async fn copy(
        &self,
        record: &HomeRecord,
        before: Option<&HomeRecord>,
        fresh: &BTreeSet<String>,
        observed: &mut Observed,
    ) -> Result<Option<Happened>, Ec2Error> {
        let home = &mut observed.home;
        let source = record.copy_of.as_ref().filter(|id| fresh.contains(*id));
        let source = source.and_then(|id| home.find(id));
        let Some(source) = source.filter(|volume| volume.is_free()) else {
            home.record = before.cloned();
            return Ok(None);
        };
        let of = format!("{} of {}", source.id, self.tags[api::tags::POOL]);
        let request = SnapshotRequest {
            volume_id: source.id.clone(),
            description: format!("home volume {of}"),
            tags: self.home_tags(record.number),
        };
        let begun = self.region.ec2.create_snapshot(&request).await?;
        let text = format!("began the snapshot {} of the home volume {of}", begun.id);
        home.record = Some(HomeRecord {
            snapshot_id: Some(begun.id.clone()),
            ..record.clone()
        });
        home.snapshots.push(begun);
        Ok(Some(Happened::normal("CopyingHome", text)))
    }

    async fn attach(
        &self,
        volume_id: &str,
        instance_id: &str,
        observed: &mut Observed,
    ) -> Result<Option<Happened>, Ec2Error> {
        let ids = [instance_id.to_owned()];
        let ours = self.look_closely(&ids, observed).await?.all()?;
        if ours.iter().all(|i| i.state != InstanceState::Running) {
            return Ok(None);
        }
        let Some(volume) = volume(observed, volume_id).filter(|v| v.is_free()) else {
            return Ok(None);
        };
        self.region
            .ec2
            .attach_volume(volume_id, instance_id)
            .await?;
        volume.state = VolumeState::InUse;
        volume.attachment = Some(Attachment {
            instance_id: instance_id.to_owned(),
            is_attached: false,
        });
        let text = format!("attaching the home volume {volume_id} to {instance_id}");
        Ok(Some(Happened::normal("AttachingHome", text)))
    }

    async fn grow(
        &self,
        volume_id: &str,
        size_gib: u32,
        observed: &mut Observed,
    ) -> Result<Option<Happened>, Ec2Error> {
        let found = volume(observed, volume_id);
        if found.is_none_or(|volume| volume.size_gib >= size_gib) {
            return Ok(None);
        }
        self.region.ec2.grow_volume(volume_id, size_gib).await?;
        observed.home.held.push(HomeHold {
            step: HomeStep::Grow,
            until: later(self.now, GROWS),
            refusal: None,
        });
        let text = format!("growing the home volume {volume_id} to {size_gib} GiB");
        Ok(Some(Happened::normal("GrowingHome", text)))
    }

    async fn delete_volume(
        &self,
        volume_id: &str,
        fresh: &BTreeSet<String>,
        observed: &mut Observed,
    ) -> Result<Option<Happened>, Ec2Error> {
        let can_go = |v: &Volume| v.is_free() || v.state == VolumeState::Error;
        let found = volume(observed, volume_id).map(|volume| volume.clone());
        let happened = match &found {
            // EC2's lists are eventually consistent: a volume is deleted only if the earlier list
            // and the fresh one both show it.
            Some(volume) if !can_go(volume) || !fresh.contains(volume_id) => return Ok(None),
            Some(_) => {
                match self.region.ec2.delete_volume(volume_id).await {
                    Err(error) if !error.is_not_found() => return Err(error),
                    _ => {}
                }
                let text = format!("deleted the home volume {volume_id}");
                Some(Happened::normal("DeletedHome", text))
            }
            None => None,
        };
        observed.home.volumes.retain(|v| v.id != volume_id);
        if let Some(record) = &mut observed.home.record {
            record.copy_of.take_if(|source| source == volume_id);
            if record.volume_id.as_deref() == Some(volume_id) {
                record.asked_at = None;
            }
        }
        Ok(happened)
    }

    async fn delete_snapshot(
        &self,
        snapshot_id: &str,
        observed: &mut Observed,
    ) -> Result<Option<Happened>, Ec2Error> {
        let fresh = self.region.ec2.snapshots_of(self.identity).await?;
        let mut happened = None;
        if fresh.iter().any(|snapshot| snapshot.id == snapshot_id) {
            match self.region.ec2.delete_snapshot(snapshot_id).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
            let text = format!("deleted the snapshot {snapshot_id} of the home volume");
            happened = Some(Happened::normal("DeletedSnapshot", text));
        }
        observed.home.snapshots.retain(|s| s.id != snapshot_id);
        if let Some(record) = &mut observed.home.record {
            record.snapshot_id.take_if(|id| id == snapshot_id);
        }
        Ok(happened)
    }

    async fn keep(
        &self,
        volume_id: &str,
        observed: &mut Observed,
    ) -> Result<Option<Happened>, Ec2Error> {
        let Some(volume) = volume(observed, volume_id) else {
            return Ok(None);
        };
        let deleted_at = self.pool.metadata.deletion_timestamp.as_ref();
        let since = deleted_at.map_or(self.now, |time| time.0);
        let tag = (api::tags::HOME_KEPT.to_owned(), format!("{since:.0}"));
        self.region.ec2.tag(volume_id, &[tag].into()).await?;
        volume.is_kept = true;
        let text = format!(
            "kept the home volume {volume_id}: {} GiB in {}",
            volume.size_gib, volume.zone
        );
        Ok(Some(Happened::normal("KeptHome", text)))
    }

    fn home_tags(&self, number: u64) -> Tags {
        let mut tags = self.tags.clone();
        tags.insert(api::tags::HOME.into(), number.to_string());
        tags
    }

    fn note_refusal(
        &self,
        action: &HomeAction,
        before: Option<HomeRecord>,
        error: &Ec2Error,
        observed: &mut Observed,
        acted: &mut Acted,
    ) {
        let refusal = error.refusal();
        let rest = if error.is_token_mismatch() {
            MISMATCHED
        } else {
            HomeHold::rest(&refusal)
        };
        if error.class.is_definite() {
            let text = format!("the home volume cannot {}: {error}", action.step().as_str());
            acted.happened.push(Happened::warning("HomeRefused", text));
            if is_first_ask(action, before.as_ref()) {
                observed.home.record = before;
            }
        }
        observed.home.held.push(HomeHold {
            step: action.step(),
            until: later(self.now, rest),
            refusal: Some(refusal),
        });
    }
}

/// Whether EC2 was never asked for this before. If EC2 then refuses for certain, nothing was
/// created.
fn is_first_ask(action: &HomeAction, before: Option<&HomeRecord>) -> bool {
    match action {
        HomeAction::Create(record) => before.is_none_or(|before| before.number != record.number),
        HomeAction::Copy(_) => true,
        _ => false,
    }
}

/// The error for a volume that is gone before anybody could use it.
fn taken_back(error: &Ec2Error, zone: &str) -> Ec2Error {
    Ec2Error {
        operation: error.operation,
        code: "VolumeTakenBack".into(),
        message: format!(
            "EC2 accepted a volume in {zone} and took it back: the account's key for volumes may not \
             permit it (see docs/install.md), or somebody deleted the volume"
        ),
        class: ErrorClass::Configuration,
    }
}

fn volume<'a>(observed: &'a mut Observed, id: &str) -> Option<&'a mut Volume> {
    let mut volumes = observed.home.volumes.iter_mut();
    volumes.find(|volume| volume.id == id && !volume.is_gone())
}

fn later(now: Timestamp, rest: SignedDuration) -> Timestamp {
    now.saturating_add(rest).unwrap_or(Timestamp::MAX)
}
