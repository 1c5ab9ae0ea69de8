//! The home volume of an on-demand workspace. It outlives instances and is attached to one instance
//! at a time.

use std::collections::BTreeMap;

use api::condition::{READY, SYNCED};
use api::home::HomeOnDelete;
use api::managed::ManagementAction;
use api::policy::WorkspacePolicy;
use api::workspace::HomeStatus;
use function_runtime::composite::CompositeId;
use function_runtime::desired::Composed;
use function_runtime::json::Json;
use function_runtime::keep;
use function_runtime::object::{EXTERNAL_NAME, ObservedObject};
use function_runtime::outcome::Refusal;
use function_runtime::request::Request;
use function_runtime::resource_names::hashed;
use function_workspace::cause::{Cause, Reason};
use serde_json::{Value, json};

use crate::finding;
use crate::on_demand::OnDemandInstance;
use crate::on_demand::api::{EbsVolume, Managed, VolumeAttachment};
use crate::on_demand::failure::Failure;
use crate::on_demand::observed::{Attachment, Observed, Volume};
use crate::prices::HomeVolume;
use crate::resolved::Resolved;
use crate::resource_names;
use crate::unreadable::Problems;

/// This function's own label on attachments. Crossplane removes its labels from a resource as soon
/// as the resource is no longer desired. With this label the function still finds the attachment
/// while EC2 detaches the volume.
pub const WORKSPACE_LABEL: &str = "platform.acme.io/workspace";

/// The name of the requirement for the attachments of a workspace's home volume.
pub const ATTACHMENTS: &str = "attachments";

const DEVICE: &str = "/dev/sdf";

/// The observed home volume and its attachments.
#[derive(Clone, Debug)]
pub struct Home<'a> {
    volume: Option<Volume<'a>>,
    /// Whether the volume stays when its object is deleted.
    stays: bool,
    recorded: Option<&'a HomeStatus>,
    /// The attachments that are observed composed resources, by composition resource name.
    composed: BTreeMap<&'a str, Attachment<'a>>,
    /// The attachments that Crossplane fetched by label, including those that are being deleted;
    /// `None` until Crossplane has fetched them.
    fetched: Option<Vec<Attachment<'a>>>,
}

/// The state of the home volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Whether the volume is attached to the instance and the provider reports no problem.
    pub ready: bool,
    /// Whether the volume is attached to the instance, even if the provider reports a problem.
    pub attached: bool,
    /// Why the volume is not ready. Not used if it is ready.
    pub cause: Cause,
    /// Whether the volume is still attached to another instance. That attachment is no longer
    /// composed, so Crossplane does not call the function when it is gone.
    pub detaching: bool,
    /// The record for status.
    pub status: Option<HomeStatus>,
}

impl<'a> Home<'a> {
    /// Reads the home volume and its attachments. `fetched` are the attachments with the label;
    /// `None` until Crossplane has fetched them.
    pub fn read(
        observed: &'a BTreeMap<String, Json<'a>>,
        fetched: Option<&'a [Json<'a>]>,
        recorded: Option<&'a HomeStatus>,
        problems: &mut Problems,
    ) -> Self {
        let volume = observed.get(resource_names::HOME).map(Volume::read);
        let fetched = fetched.map(|fetched| fetched.iter().map(Attachment::read).collect());
        Self {
            volume: volume.and_then(|volume| problems.readable(volume)),
            stays: observed.get(resource_names::HOME).is_some_and(stays),
            recorded,
            composed: Observed::read_all(observed, resource_names::ATTACHMENT_PREFIX, problems),
            fetched: fetched.and_then(|fetched| problems.readable(fetched)),
        }
    }

    /// The attachments that are observed composed resources, by composition resource name.
    pub fn composed_attachments(&self) -> impl Iterator<Item = (&'a str, &Attachment<'a>)> {
        self.composed
            .iter()
            .map(|(name, attachment)| (*name, attachment))
    }

    fn attachments(&self) -> impl Iterator<Item = &Attachment<'a>> {
        self.composed.values().chain(self.fetched.iter().flatten())
    }

    /// Whether a volume is observed or recorded.
    pub fn exists(&self) -> bool {
        self.volume.is_some() || self.recorded.is_some()
    }

    /// The zone of the volume. Every instance must be in this zone.
    pub fn zone(&self) -> Option<&str> {
        let volume = self.volume.as_ref();
        volume
            .and_then(|volume| volume.for_provider.availability_zone.as_deref())
            .or_else(|| self.recorded.map(|home| home.zone.as_str()))
    }

    /// The tags of the volume, including those that provider-aws adds.
    pub fn tags(&self) -> Option<&BTreeMap<String, String>> {
        self.volume.as_ref()?.for_provider.tags.as_ref()
    }

    /// The volume id in EC2.
    pub fn volume_id(&self) -> Option<&'a str> {
        match &self.volume {
            Some(volume) => volume.external_name(),
            None => self.recorded.map(|home| home.volume_id.as_str()),
        }
    }

    /// The volume; none if it does not exist in EC2.
    pub fn existing_volume(&self) -> Option<HomeVolume<'_>> {
        let volume = self.volume.as_ref().filter(|volume| !is_lost(volume))?;
        Some(HomeVolume {
            id: finding::volume_id(volume.external_name())?,
            size_gib: u64::try_from(volume.for_provider.size?).ok()?,
            stays: self.stays,
        })
    }

    /// Whether a volume may be attached to the instance. Until Crossplane has fetched the
    /// attachments, the answer is yes for every workspace with a home.
    pub fn may_be_attached_to(&self, id: &str, has_home: bool) -> bool {
        (has_home && self.fetched.is_none())
            || self.attachments().any(|attachment| is_to(attachment, id))
    }

    /// Whether an attachment to the instance exists that is not being deleted.
    pub fn is_attached_to(&self, holder: &OnDemandInstance<'_>) -> bool {
        let id = holder.last_known_id();
        id.is_some_and(|id| self.attachment_to(id).is_some())
    }

    /// Whether no other instance may still have the volume.
    fn is_free_for(&self, id: &str) -> bool {
        self.fetched.is_some() && self.attachments().all(|attachment| is_to(attachment, id))
    }

    fn attachment_to(&self, id: &str) -> Option<&Attachment<'a>> {
        self.attachments()
            .find(|attachment| is_to(attachment, id) && !attachment.deleting())
    }

    /// Whether an attachment to the instance is already composed.
    pub fn is_composed_for(&self, id: &str) -> bool {
        let composed = self.composed.get(attachment_name(id).as_str());
        composed.is_some_and(|attachment| is_to(attachment, id) && !attachment.deleting())
    }

    /// The state of the home volume. `holder` is the instance that may have it.
    pub fn finding(&self, holder: Option<&OnDemandInstance<'_>>) -> Finding {
        let id = holder.and_then(OnDemandInstance::current_id);
        let attachment = id.and_then(|id| self.attachment_to(id));
        let volume = self.volume.as_ref();
        let attached = attachment.is_some_and(|a| a.holds(READY))
            && volume.is_some_and(|volume| !is_lost(volume));
        Finding {
            ready: attached
                && attachment.is_some_and(|attachment| attachment.is_ready())
                && volume.is_some_and(|volume| volume.is_ready()),
            attached,
            cause: self.cause(id),
            detaching: id.is_some_and(|id| !self.is_free_for(id)),
            status: self.status(id.filter(|_| attached), holder),
        }
    }

    fn status(
        &self,
        attached_to: Option<&str>,
        holder: Option<&OnDemandInstance<'_>>,
    ) -> Option<HomeStatus> {
        let subnet = match self.recorded {
            Some(home) => home.subnet_id.clone(),
            None => holder
                .and_then(|instance| instance.subnet())
                .map(str::to_owned),
        };
        Some(HomeStatus {
            volume_id: self.volume_id()?.to_owned(),
            zone: self.zone()?.to_owned(),
            subnet_id: subnet,
            attached_to: attached_to.map(str::to_owned),
            pool: None,
        })
    }

    fn cause(&self, instance: Option<&str>) -> Cause {
        let volume = match (&self.volume, self.volume_id()) {
            (Some(volume), Some(id)) if is_lost(volume) => {
                let message = format!(
                    "the home volume {id} no longer exists in EC2 and is not replaced. If it was \
                     never attached, the account's key for volumes may not permit it (see \
                     docs/install.md). Otherwise move the workspace to a home from a snapshot, as \
                     docs/upgrade.md describes"
                );
                return Cause::new(Reason::Lost, message);
            }
            (Some(volume), _) if volume.failing(SYNCED).is_some() => {
                return failing(**volume, "the home volume");
            }
            (Some(_), Some(id)) => id,
            (Some(_), None) => {
                return Cause::new(Reason::Creating, "waiting for EC2 to make the home volume");
            }
            (None, Some(id)) => {
                return Cause::new(
                    Reason::Creating,
                    format!("waiting for {id} to be found again"),
                );
            }
            (None, None) => {
                let message = "waiting for an instance, whose zone the home volume has to be in";
                return Cause::new(Reason::Waiting, message);
            }
        };
        let Some(instance) = instance else {
            return Cause::new(
                Reason::Detached,
                format!("{volume} is kept until there is an instance to attach it to"),
            );
        };
        if let Some(attachment) = self.attachment_to(instance) {
            if attachment.failing(SYNCED).is_some() {
                return failing(**attachment, &format!("{volume} at {instance}"));
            }
        } else if let Some(other) = self
            .attachments()
            .find_map(|attachment| attachment.for_provider.instance_id.as_deref())
        {
            let message = format!("waiting for {volume} to be detached from {other}");
            return Cause::new(Reason::Detaching, message);
        }
        Cause::new(
            Reason::Attaching,
            format!("waiting for {volume} to be attached to {instance}"),
        )
    }
}

fn is_to(attachment: &Attachment<'_>, id: &str) -> bool {
    attachment.for_provider.instance_id.as_deref() == Some(id)
}

/// Whether the volume no longer exists in EC2. upjet must not create it again (see [`actions`]),
/// and reports that.
fn is_lost(volume: &Volume<'_>) -> bool {
    volume
        .failing(SYNCED)
        .is_some_and(|condition| Failure::read(condition.message).is_of_missing_resource())
}

fn failing(resource: ObservedObject<'_>, what: &str) -> Cause {
    let message = resource.failing(SYNCED).map_or("", |c| c.message);
    Failure::read(message).cause(what, None)
}

/// The desired volume, in its current zone or, before it exists, in the zone of the instance; none
/// while no zone is known.
///
/// # Errors
///
/// The volume cannot be written as JSON.
pub fn volume(
    resolved: &Resolved,
    policy: &WorkspacePolicy,
    home: &Home<'_>,
    instance_zone: Option<&str>,
) -> Result<Option<Value>, Refusal> {
    let made = home.volume.as_ref();
    let made_size = made.and_then(|volume| volume.for_provider.size);
    // A volume only grows.
    let size = made_size.max(resolved.home_size_gib.map(i64::from));
    let (Some(zone), Some(size)) = (home.zone().or(instance_zone), size) else {
        return Ok(None);
    };
    let mut tags = resolved.tags(policy);
    tags.insert(api::tags::NAME.into(), format!("{} home", resolved.origin));
    let parameters = EbsVolume {
        region: resolved.region.clone(),
        availability_zone: Some(zone.to_owned()),
        size: Some(size),
        type_: "gp3".to_owned(),
        encrypted: true,
        final_snapshot: (policy.home.on_delete == HomeOnDelete::Snapshot).then_some(true),
        tags: Some(tags),
    };
    let config = &policy.on_demand_provider_config_ref;
    let mut volume = Managed::new(&resolved.origin.namespace, config, parameters);
    volume.spec.management_policies = Some(actions(policy, home.recorded.is_some()));
    let id = recorded_name(made.map(|made| **made), home.recorded);
    volume.metadata.annotations = id.map(|id| [(EXTERNAL_NAME.to_owned(), id.to_owned())].into());
    Composed::manifest(&volume).map(Some)
}

/// The actions that the provider may take. A retained volume is never created a second time: an
/// empty volume in place of a lost one would hide the loss. (Crossplane allows certain sets of
/// actions only. None of them has Delete without Create.)
fn actions(policy: &WorkspacePolicy, is_recorded: bool) -> &'static [ManagementAction] {
    use ManagementAction::{All, Create, LateInitialize, Observe, Update};
    match (policy.home.on_delete, is_recorded) {
        (HomeOnDelete::Delete | HomeOnDelete::Snapshot, _) => &[All],
        (HomeOnDelete::Retain, false) => &[Observe, Create, Update, LateInitialize],
        (HomeOnDelete::Retain, true) => &[Observe, Update, LateInitialize],
    }
}

/// Whether the volume stays when its object is deleted: the provider may not delete it. Without
/// management policies a provider may do everything.
fn stays(observed: &Json<'_>) -> bool {
    let policies = observed.pointer("/spec/managementPolicies");
    let policies = policies.and_then(Json::as_list);
    policies.is_some_and(|policies| {
        policies
            .iter()
            .all(|action| !matches!(action.as_str(), Some("*" | "Delete")))
    })
}

/// A held volume: it is desired as it is observed, with its volume id as external name.
pub fn held(observed: &Json<'_>, recorded: Option<&HomeStatus>) -> Value {
    let mut volume = keep::kept(observed);
    if let Some(id) = recorded_name(Some(ObservedObject::new(observed)), recorded) {
        volume["metadata"]["annotations"][EXTERNAL_NAME] = json!(id);
    }
    volume
}

/// The volume id for the external name, so that a recreated object finds the recorded volume again.
/// Once the annotation is applied it must stay, even if the record is lost: without it, the
/// provider would create another volume. If the provider has changed the id since, the provider's
/// id stays.
fn recorded_name<'a>(
    observed: Option<ObservedObject<'a>>,
    recorded: Option<&'a HomeStatus>,
) -> Option<&'a str> {
    let recorded = recorded.map(|home| home.volume_id.as_str());
    match observed {
        None => recorded,
        Some(observed) => observed
            .external_name()
            .filter(|id| recorded.is_none_or(|recorded| recorded == *id)),
    }
}

/// The composition resource name of the attachment to an instance.
pub fn attachment_name(instance: &str) -> String {
    hashed(resource_names::ATTACHMENT_PREFIX, [instance])
}

/// The desired attachment to the instance that may have the volume; none before both exist, and
/// none while another instance may still have the volume.
///
/// # Errors
///
/// The attachment cannot be written as JSON.
pub fn attachment(
    resolved: &Resolved,
    policy: &WorkspacePolicy,
    home: &Home<'_>,
    holder: &OnDemandInstance<'_>,
) -> Result<Option<(String, Value)>, Refusal> {
    let volume = home.volume_id().filter(|_| home.volume.is_some());
    let (Some(id), Some(volume)) = (holder.current_id(), volume) else {
        return Ok(None);
    };
    let is_in_reach = holder.zone() == home.zone();
    let may_begin = holder.runs() && is_in_reach && home.is_free_for(id);
    if !home.is_composed_for(id) && !may_begin {
        return Ok(None);
    }
    let parameters = VolumeAttachment {
        region: resolved.region.clone(),
        device_name: DEVICE.to_owned(),
        instance_id: Some(id.to_owned()),
        volume_id: volume.to_owned(),
        // The shutdown of the instance unmounts a file system that is in use.
        stop_instance_before_detaching: true,
    };
    let config = &policy.on_demand_provider_config_ref;
    let mut attachment = Managed::new(&resolved.origin.namespace, config, parameters);
    let label = label(&resolved.composite);
    attachment.metadata.labels = Some([(WORKSPACE_LABEL.to_owned(), label)].into());
    let attachment = Composed::manifest(&attachment)?;
    Ok(Some((attachment_name(id), attachment)))
}

/// The workspace's attachments by label, including those that are no longer composed; `None` until
/// Crossplane has fetched them.
pub fn attachments<'a>(request: &'a Request<'a>) -> Option<&'a [Json<'a>]> {
    request.required.get(ATTACHMENTS).map(Vec::as_slice)
}

/// The value of the label. The name of a composite may be longer than the value of a label.
pub fn label(composite: &CompositeId) -> String {
    if composite.name.len() <= 63 {
        composite.name.clone()
    } else {
        hashed("workspace-", [composite.name.as_str()])
    }
}
