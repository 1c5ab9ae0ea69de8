//! The home volume: it outlives instances, and is attached to one at a time.

use std::collections::BTreeMap;

use api::condition::{READY, SYNCED};
use api::home::HomeOnDelete;
use api::managed::ManagementAction;
use api::policy::WorkspacePolicy;
use api::workspace::HomeStatus;
use function_runtime::composite::CompositeId;
use function_runtime::desired::Composed;
use function_runtime::keep;
use function_runtime::object::{EXTERNAL_NAME, ObservedObject};
use function_runtime::outcome::Refusal;
use function_runtime::request::Request;
use function_runtime::resource_names::hashed;
use function_workspace::cause::{Cause, Reason};
use serde_json::{Value, json};

use crate::on_demand::OnDemandInstance;
use crate::on_demand::api::{EbsVolume, Managed, VolumeAttachment};
use crate::on_demand::failure::Failure;
use crate::on_demand::observed::{Attachment, Observed, Volume};
use crate::resolved::Resolved;
use crate::resource_names;
use crate::unreadable::Unreadable;

/// Our label on attachments. Crossplane forgets a resource as soon as it is no
/// longer desired, and takes its own labels off it; while EC2 detaches, this one
/// still finds it.
pub const WORKSPACE_LABEL: &str = "platform.acme.io/workspace";

/// The requirement for the attachments of a workspace's home volume.
pub const ATTACHMENTS: &str = "attachments";

const DEVICE: &str = "/dev/sdf";

/// The home volume as it is seen.
#[derive(Clone, Debug)]
pub struct Home<'a> {
    volume: Option<Volume<'a>>,
    recorded: Option<&'a HomeStatus>,
    /// By name: the attachments that Crossplane observes.
    composed: BTreeMap<&'a str, Attachment<'a>>,
    /// Those that Crossplane fetched, also what is on its way out; `None` before it did.
    fetched: Option<Vec<Attachment<'a>>>,
}

/// What is to be told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Whether it is attached to the instance, and its provider says that all is
    /// well.
    pub ready: bool,
    /// Whether it is attached to the instance, whatever trouble the provider has
    /// with looking.
    pub attached: bool,
    /// Why not; without meaning when it is.
    pub cause: Cause,
    /// Whether another instance still has it. Crossplane does not compose that
    /// attachment any more, so nothing calls when it is gone.
    pub detaching: bool,
    /// What is recorded of it.
    pub status: Option<HomeStatus>,
}

impl<'a> Home<'a> {
    /// Reads the home volume and its attachments. `fetched` are the labelled attachments;
    /// `None` while Crossplane has not fetched them.
    ///
    /// # Errors
    ///
    /// One of them is unreadable.
    pub fn read(
        observed: &'a BTreeMap<String, Value>,
        fetched: Option<&'a [Value]>,
        recorded: Option<&'a HomeStatus>,
    ) -> Result<Self, Unreadable> {
        let volume = observed.get(resource_names::HOME).map(Volume::read);
        let fetched = fetched.map(|fetched| fetched.iter().map(Attachment::read).collect());
        Ok(Self {
            volume: volume.transpose()?,
            recorded,
            composed: Observed::read_all(observed, resource_names::ATTACHMENT_PREFIX)?,
            fetched: fetched.transpose()?,
        })
    }

    /// The attachments that Crossplane observes, by name.
    pub fn composed_attachments(&self) -> impl Iterator<Item = (&'a str, &Attachment<'a>)> {
        self.composed
            .iter()
            .map(|(name, attachment)| (*name, attachment))
    }

    fn attachments(&self) -> impl Iterator<Item = &Attachment<'a>> {
        self.composed.values().chain(self.fetched.iter().flatten())
    }

    /// Whether there is a volume, or was one.
    pub fn exists(&self) -> bool {
        self.volume.is_some() || self.recorded.is_some()
    }

    /// The zone that the volume is in, and so every instance has to be.
    pub fn zone(&self) -> Option<&str> {
        let volume = self.volume.as_ref();
        volume
            .and_then(|volume| volume.for_provider.availability_zone.as_deref())
            .or_else(|| self.recorded.map(|home| home.zone.as_str()))
    }

    /// The volume's tags, with those that its provider adds.
    pub fn tags(&self) -> Option<&BTreeMap<String, String>> {
        self.volume.as_ref()?.for_provider.tags.as_ref()
    }

    /// EC2's id of the volume.
    pub fn volume_id(&self) -> Option<&'a str> {
        match &self.volume {
            Some(volume) => volume.external_name(),
            None => self.recorded.map(|home| home.volume_id.as_str()),
        }
    }

    /// Whether a volume is, or may still be, attached to the instance. While
    /// Crossplane has not fetched the attachments, it may be if there is one at all.
    pub fn may_be_attached_to(&self, id: &str, has_home: bool) -> bool {
        (has_home && self.fetched.is_none())
            || self.attachments().any(|attachment| is_to(attachment, id))
    }

    /// Whether the volume is being attached to the instance, or is.
    pub fn is_attached_to(&self, holder: &OnDemandInstance<'_>) -> bool {
        let id = holder.last_known_id();
        id.is_some_and(|id| self.attachment_to(id).is_some())
    }

    /// Whether nothing but `id` may still have the volume.
    fn is_free_for(&self, id: &str) -> bool {
        self.fetched.is_some() && self.attachments().all(|attachment| is_to(attachment, id))
    }

    fn attachment_to(&self, id: &str) -> Option<&Attachment<'a>> {
        self.attachments()
            .find(|attachment| is_to(attachment, id) && !attachment.deleting())
    }

    /// Whether an attachment to the instance is composed already.
    pub fn is_composed_for(&self, id: &str) -> bool {
        let composed = self.composed.get(attachment_name(id).as_str());
        composed.is_some_and(|attachment| is_to(attachment, id) && !attachment.deleting())
    }

    /// What is to be told, when the volume belongs to `holder`.
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
                    "the home volume {id} is gone from EC2, and nothing takes its place: restore \
                     it from a snapshot for another claim"
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

/// Whether EC2 does not have the volume any more. upjet may not make it again (see
/// [`actions`]), and refuses to.
fn is_lost(volume: &Volume<'_>) -> bool {
    volume
        .failing(SYNCED)
        .is_some_and(|condition| Failure::read(condition.message).is_of_missing_resource())
}

fn failing(resource: ObservedObject<'_>, what: &str) -> Cause {
    let message = resource.failing(SYNCED).map_or("", |c| c.message);
    Failure::read(message).cause(what, None)
}

/// The desired volume, in the zone where it is or, before it exists, where the
/// instance is; none while that is unknown.
///
/// # Errors
///
/// It cannot be written.
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

/// What the provider may do with the volume. One that is kept is never made a
/// second time: an empty home in the place of a lost one would hide the loss.
/// (Crossplane allows certain sets of actions only; there is none with Delete
/// and without Create.)
fn actions(policy: &WorkspacePolicy, is_recorded: bool) -> &'static [ManagementAction] {
    use ManagementAction::{All, Create, LateInitialize, Observe, Update};
    match (policy.home.on_delete, is_recorded) {
        (HomeOnDelete::Delete | HomeOnDelete::Snapshot, _) => &[All],
        (HomeOnDelete::Retain, false) => &[Observe, Create, Update, LateInitialize],
        (HomeOnDelete::Retain, true) => &[Observe, Update, LateInitialize],
    }
}

/// A volume that is held: as it is, with the id by which it is found again.
pub fn held(observed: &Value, recorded: Option<&HomeStatus>) -> Value {
    let mut volume = keep::kept(observed);
    if let Some(id) = recorded_name(Some(ObservedObject::new(observed)), recorded) {
        volume["metadata"]["annotations"][EXTERNAL_NAME] = json!(id);
    }
    volume
}

/// The id of the recorded volume, so that a resource that was lost finds it again.
/// Once applied the annotation has to stay, also when the record is lost: leaving
/// it out would take it away, and another volume would be made. An id that the
/// provider has changed since is left to the provider.
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

/// The name of the attachment to an instance.
pub fn attachment_name(instance: &str) -> String {
    hashed(resource_names::ATTACHMENT_PREFIX, [instance])
}

/// The desired attachment to the instance that holds the volume: none before
/// both exist, or while another instance may still have it.
///
/// # Errors
///
/// It cannot be written.
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
        // A file system that is in use is unmounted by shutting down.
        stop_instance_before_detaching: true,
    };
    let config = &policy.on_demand_provider_config_ref;
    let mut attachment = Managed::new(&resolved.origin.namespace, config, parameters);
    let label = label(&resolved.composite);
    attachment.metadata.labels = Some([(WORKSPACE_LABEL.to_owned(), label)].into());
    let attachment = Composed::manifest(&attachment)?;
    Ok(Some((attachment_name(id), attachment)))
}

/// The workspace's attachments, with those that Crossplane composes no more; `None` while
/// they have not been fetched.
pub fn attachments(request: &Request) -> Option<&[Value]> {
    request.required.get(ATTACHMENTS).map(Vec::as_slice)
}

/// The label's value: an XR's name may be longer than a label's value.
pub fn label(composite: &CompositeId) -> String {
    if composite.name.len() <= 63 {
        composite.name.clone()
    } else {
        hashed("workspace-", [composite.name.as_str()])
    }
}
