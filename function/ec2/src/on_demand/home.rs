//! The home volume: it outlives instances, and is attached to one at a time.

use std::collections::BTreeMap;

use api::condition::{READY, SYNCED};
use api::home::HomeOnDelete;
use api::policy::WorkspacePolicy;
use api::workspace::HomeStatus;
use function_runtime::composite::CompositeId;
use function_runtime::keep;
use function_runtime::object::{EXTERNAL_NAME, ObservedObject};
use function_runtime::request::Request;
use function_runtime::resource_names::hashed;
use function_workspace::cause::Cause;
use serde_json::{Value, json};

use crate::on_demand::failure::Failure;
use crate::on_demand::{fields, instance, resource};
use crate::resource_names;
use crate::wanted::Wanted;

/// Our label on attachments. Crossplane forgets a resource as soon as it is no
/// longer desired, and takes its own labels off it; while EC2 detaches, this one
/// still finds it.
pub const WORKSPACE_LABEL: &str = "platform.acme.io/workspace";
/// The attachments' kind.
pub const ATTACHMENT: &str = "VolumeAttachment";

/// The requirement for the attachments of a workspace's home volume.
pub const ATTACHMENTS: &str = "attachments";

const DEVICE: &str = "/dev/sdf";

/// The home volume as it is seen.
#[derive(Clone, Debug)]
pub struct Home<'a> {
    volume: Option<ObservedObject<'a>>,
    recorded: Option<&'a HomeStatus>,
    /// By key: the attachments that Crossplane observes.
    composed: BTreeMap<&'a str, ObservedObject<'a>>,
    /// These, and what Crossplane fetched: also what is on its way out.
    attachments: Vec<ObservedObject<'a>>,
    /// Whether everything that is on its way out is known.
    attachments_known: bool,
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
    /// Looks. `leaving` are the labelled attachments; `None` while Crossplane has
    /// not fetched them.
    pub fn new(
        observed: &'a BTreeMap<String, Value>,
        leaving: Option<&'a [Value]>,
        recorded: Option<&'a HomeStatus>,
    ) -> Self {
        let composed: BTreeMap<&str, ObservedObject<'_>> = observed
            .iter()
            .filter(|(key, _)| key.starts_with(resource_names::ATTACHMENT_PREFIX))
            .map(|(key, attachment)| (key.as_str(), ObservedObject::new(attachment)))
            .collect();
        Self {
            volume: observed.get(resource_names::HOME).map(ObservedObject::new),
            recorded,
            attachments: composed
                .values()
                .copied()
                .chain(leaving.into_iter().flatten().map(ObservedObject::new))
                .collect(),
            composed,
            attachments_known: leaving.is_some(),
        }
    }

    /// Whether there is a volume, or was one.
    pub fn exists(&self) -> bool {
        self.volume.is_some() || self.recorded.is_some()
    }

    /// The zone that the volume is in, and so every instance has to be.
    pub fn zone(&self) -> Option<&'a str> {
        self.volume
            .and_then(|volume| volume.for_provider("availabilityZone"))
            .or_else(|| self.recorded.map(|home| home.zone.as_str()))
    }

    /// The volume's tags, with those that its provider adds.
    pub fn tags(&self) -> Option<&'a Value> {
        self.volume
            .and_then(|volume| volume.for_provider_value("tags"))
    }

    /// EC2's id of the volume.
    pub fn volume_id(&self) -> Option<&'a str> {
        match self.volume {
            Some(volume) => volume.external_name(),
            None => self.recorded.map(|home| home.volume_id.as_str()),
        }
    }

    /// Whether a volume is, or may still be, attached to the instance. While
    /// Crossplane has not fetched the attachments, it may be if there is one at all.
    pub fn may_be_attached_to(&self, id: &str, has_home: bool) -> bool {
        (has_home && !self.attachments_known)
            || self
                .attachments
                .iter()
                .any(|attachment| attachment.for_provider("instanceId") == Some(id))
    }

    /// Whether the volume is being attached to the instance, or is.
    pub fn is_attached_to(&self, holder: ObservedObject<'_>) -> bool {
        holder
            .at_provider("id")
            .is_some_and(|id| self.attachment_to(id).is_some())
    }

    /// Whether nothing but `id` may still have the volume.
    fn is_free_for(&self, id: &str) -> bool {
        self.attachments_known
            && self
                .attachments
                .iter()
                .all(|attachment| attachment.for_provider("instanceId") == Some(id))
    }

    fn attachment_to(&self, id: &str) -> Option<ObservedObject<'a>> {
        self.attachments
            .iter()
            .find(|a| a.for_provider("instanceId") == Some(id) && !a.deleting())
            .copied()
    }

    /// Whether an attachment to the instance is composed already.
    pub fn is_composed_for(&self, id: &str) -> bool {
        let composed = self.composed.get(attachment_key(id).as_str());
        composed.is_some_and(|a| a.for_provider("instanceId") == Some(id) && !a.deleting())
    }

    /// What is to be told, when the volume belongs to `holder`.
    pub fn finding(&self, holder: Option<ObservedObject<'_>>) -> Finding {
        let id = holder.and_then(instance::id);
        let attachment = id.and_then(|id| self.attachment_to(id));
        let attached = attachment.is_some_and(|a| a.holds(READY))
            && self.volume.is_some_and(|volume| !is_lost(volume));
        Finding {
            ready: attached
                && attachment.is_some_and(ObservedObject::is_ready)
                && self.volume.is_some_and(ObservedObject::is_ready),
            attached,
            cause: self.cause(id),
            detaching: id.is_some_and(|id| !self.is_free_for(id)),
            status: self.status(id.filter(|_| attached), holder),
        }
    }

    fn status(
        &self,
        attached_to: Option<&str>,
        holder: Option<ObservedObject<'_>>,
    ) -> Option<HomeStatus> {
        let subnet = match self.recorded {
            Some(home) => home.subnet_id.clone(),
            None => holder
                .and_then(|i| i.for_provider("subnetId"))
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
        let volume = match (self.volume, self.volume_id()) {
            (Some(volume), Some(id)) if is_lost(volume) => {
                let message = format!(
                    "the home volume {id} is gone from EC2, and nothing takes its place: restore \
                     it from a snapshot for another claim"
                );
                return Cause::new("Lost", message);
            }
            (Some(volume), _) if volume.failing(SYNCED).is_some() => {
                return failing(volume, "the home volume");
            }
            (Some(_), Some(id)) => id,
            (Some(_), None) => {
                return Cause::new("Creating", "waiting for EC2 to make the home volume");
            }
            (None, Some(id)) => {
                return Cause::new("Creating", format!("waiting for {id} to be found again"));
            }
            (None, None) => {
                let message = "waiting for an instance, whose zone the home volume has to be in";
                return Cause::new("Waiting", message);
            }
        };
        let Some(instance) = instance else {
            return Cause::new(
                "Detached",
                format!("{volume} is kept until there is an instance to attach it to"),
            );
        };
        if let Some(attachment) = self.attachment_to(instance) {
            if attachment.failing(SYNCED).is_some() {
                return failing(attachment, &format!("{volume} at {instance}"));
            }
        } else if let Some(other) = self
            .attachments
            .iter()
            .find_map(|a| a.for_provider("instanceId"))
        {
            let message = format!("waiting for {volume} to be detached from {other}");
            return Cause::new("Detaching", message);
        }
        Cause::new(
            "Attaching",
            format!("waiting for {volume} to be attached to {instance}"),
        )
    }
}

/// Whether EC2 does not have the volume any more. upjet may not make it again
/// (see [`actions`]), compares what is wanted with nothing instead, and refuses.
fn is_lost(volume: ObservedObject<'_>) -> bool {
    volume.failing(SYNCED).is_some_and(|condition| {
        condition.message.contains("requires replacing it")
            && condition.message.contains("from \"\" to ")
    })
}

fn failing(resource: ObservedObject<'_>, what: &str) -> Cause {
    let message = resource.failing(SYNCED).map_or("", |c| c.message);
    Failure::read(message).cause(what, None)
}

/// The desired volume, in the zone where it is or, before it exists, where the
/// instance is; none while that is unknown.
pub fn volume(
    wanted: &Wanted,
    policy: &WorkspacePolicy,
    home: &Home<'_>,
    instance_zone: Option<&str>,
) -> Option<Value> {
    let zone = home.zone().or(instance_zone)?;
    let made = home
        .volume
        .and_then(|volume| volume.for_provider_number("size"));
    let wish = wanted.home_size_gib.map(i64::from);
    // A volume only grows.
    let size = made.max(wish)?;
    let mut tags = wanted.tags(policy);
    tags.insert(api::tags::NAME.into(), format!("{} home", wanted.origin));
    let for_provider = fields([
        ("region", Some(json!(wanted.region))),
        ("availabilityZone", Some(json!(zone))),
        ("size", Some(json!(size))),
        ("type", Some(json!("gp3"))),
        ("encrypted", Some(json!(true))),
        (
            "finalSnapshot",
            (policy.home.on_delete == HomeOnDelete::Snapshot).then_some(json!(true)),
        ),
        ("tags", Some(json!(tags))),
    ]);
    let mut volume = resource(
        "EBSVolume",
        &wanted.origin.namespace,
        &policy.on_demand_provider_config_ref,
        &for_provider,
    );
    volume["spec"]["managementPolicies"] = json!(actions(policy, home.recorded.is_some()));
    name_as_recorded(&mut volume, home.volume, home.recorded);
    Some(volume)
}

/// What the provider may do with the volume. One that is kept is never made a
/// second time: an empty home in the place of a lost one would hide the loss.
/// (Crossplane allows certain sets of actions only; there is none with Delete
/// and without Create.)
fn actions(policy: &WorkspacePolicy, is_recorded: bool) -> &'static [&'static str] {
    match (policy.home.on_delete, is_recorded) {
        (HomeOnDelete::Delete | HomeOnDelete::Snapshot, _) => &["*"],
        (HomeOnDelete::Retain, false) => &["Observe", "Create", "Update", "LateInitialize"],
        (HomeOnDelete::Retain, true) => &["Observe", "Update", "LateInitialize"],
    }
}

/// A volume that is held: as it is, with the id by which it is found again.
pub fn held(observed: &Value, recorded: Option<&HomeStatus>) -> Value {
    let mut volume = keep::kept(observed);
    name_as_recorded(&mut volume, Some(ObservedObject::new(observed)), recorded);
    volume
}

/// Names the recorded volume, so that a resource that was lost finds it again.
/// Once applied the annotation has to stay, also when the record is lost: leaving
/// it out would take it away, and another volume would be made. An id that the
/// provider has changed since is left to the provider.
fn name_as_recorded(
    volume: &mut Value,
    observed: Option<ObservedObject<'_>>,
    recorded: Option<&HomeStatus>,
) {
    let recorded = recorded.map(|home| home.volume_id.as_str());
    let named = match observed {
        None => recorded,
        Some(observed) => observed
            .external_name()
            .filter(|id| recorded.is_none_or(|recorded| recorded == *id)),
    };
    if let Some(id) = named {
        volume["metadata"]["annotations"][EXTERNAL_NAME] = json!(id);
    }
}

/// The key of the attachment to an instance.
pub fn attachment_key(instance: &str) -> String {
    hashed(resource_names::ATTACHMENT_PREFIX, [instance])
}

/// The desired attachment to the instance that holds the volume: none before
/// both exist, or while another instance may still have it.
pub fn attachment(
    wanted: &Wanted,
    policy: &WorkspacePolicy,
    home: &Home<'_>,
    holder: ObservedObject<'_>,
) -> Option<(String, Value)> {
    let id = instance::id(holder)?;
    let volume = home.volume_id().filter(|_| home.volume.is_some())?;
    let is_in_reach = holder.at_provider("availabilityZone") == home.zone();
    let is_there = home.is_composed_for(id);
    let runs = instance::state(holder) == Some("running");
    let may_begin = runs && is_in_reach && home.is_free_for(id);
    if !is_there && !may_begin {
        return None;
    }
    let for_provider = fields([
        ("region", Some(json!(wanted.region))),
        ("deviceName", Some(json!(DEVICE))),
        ("instanceId", Some(json!(id))),
        ("volumeId", Some(json!(volume))),
        // A file system that is in use is unmounted by shutting down.
        ("stopInstanceBeforeDetaching", Some(json!(true))),
    ]);
    let mut attachment = resource(
        ATTACHMENT,
        &wanted.origin.namespace,
        &policy.on_demand_provider_config_ref,
        &for_provider,
    );
    let label = label(&wanted.composite);
    attachment["metadata"]["labels"] = json!({ (WORKSPACE_LABEL): label });
    Some((attachment_key(id), attachment))
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
