//! Managed resources of upbound's provider-aws-ec2 as they are observed.

use std::collections::BTreeMap;
use std::ops::Deref;

use activity_report::{HOST_KEY, REPORT};
use api::condition::READY;
use function_runtime::object::ObservedObject;
use provider_core::InstanceState;
use serde::Deserialize;
use serde_json::Value;

use crate::on_demand::api::{self as ec2, Initial, Observable};
use crate::unreadable::{self, Unreadable};

/// A managed resource as it is observed; its name and conditions are the object's.
#[derive(Clone, Debug)]
pub struct Observed<'a, P: Observable> {
    object: ObservedObject<'a>,
    /// What it is to be.
    pub for_provider: P,
    /// What it was to be when it was made.
    pub init_provider: Initial,
    /// What its provider saw.
    pub at_provider: P::Observation,
}

/// The home volume.
pub type Volume<'a> = Observed<'a, ec2::EbsVolume>;
/// The home volume's attachment to an instance.
pub type Attachment<'a> = Observed<'a, ec2::VolumeAttachment>;
/// The security group of a workspace's instances.
pub type Group<'a> = Observed<'a, ec2::SecurityGroup>;
/// Whether an instance is on or off.
pub type Power<'a> = Observed<'a, ec2::InstanceState>;

impl<'a, P: Observable> Observed<'a, P> {
    /// Reads a managed resource.
    ///
    /// # Errors
    ///
    /// A field has another type than in the versions of the provider that are known.
    pub fn read(resource: &'a Value) -> Result<Self, Unreadable> {
        Ok(Self {
            object: ObservedObject::new(resource),
            for_provider: part::<P, _>(resource, ["spec", "forProvider"])?,
            init_provider: part::<P, _>(resource, ["spec", "initProvider"])?,
            at_provider: part::<P, _>(resource, ["status", "atProvider"])?,
        })
    }

    /// Reads the managed resources of a composite whose names begin with a prefix.
    ///
    /// # Errors
    ///
    /// One of them is unreadable.
    pub fn read_all(
        observed: &'a BTreeMap<String, Value>,
        prefix: &str,
    ) -> Result<BTreeMap<&'a str, Self>, Unreadable> {
        observed
            .iter()
            .filter(|(name, _)| name.starts_with(prefix))
            .map(|(name, resource)| Ok((name.as_str(), Self::read(resource)?)))
            .collect()
    }
}

fn part<P: Observable, T: for<'de> Deserialize<'de> + Default>(
    resource: &Value,
    path: [&str; 2],
) -> Result<T, Unreadable> {
    let read: Option<T> = unreadable::read(resource, &path, P::KIND, "provider-aws-ec2")?;
    Ok(read.unwrap_or_default())
}

impl<'a, P: Observable> Deref for Observed<'a, P> {
    type Target = ObservedObject<'a>;

    fn deref(&self) -> &Self::Target {
        &self.object
    }
}

/// An on-demand instance.
///
/// Late initialization writes its network interface into the spec of its `Instance`, so that
/// provider-aws fails to make another one for ever; without late initialization,
/// provider-aws would forget the instance at its next start and make a second one.
#[derive(Clone, Debug)]
pub struct OnDemandInstance<'a>(Observed<'a, ec2::Instance>);

impl<'a> OnDemandInstance<'a> {
    /// Reads the on-demand instances of a composite.
    ///
    /// # Errors
    ///
    /// One of them is unreadable.
    pub fn read_all(
        observed: &'a BTreeMap<String, Value>,
        prefix: &str,
    ) -> Result<BTreeMap<&'a str, Self>, Unreadable> {
        let read = Observed::read_all(observed, prefix)?;
        Ok(read
            .into_iter()
            .map(|(name, one)| (name, Self(one)))
            .collect())
    }

    /// EC2's id of the instance that the object stands for now.
    pub fn current_id(&self) -> Option<&str> {
        self.last_known_id().filter(|_| self.is_current())
    }

    /// EC2's id of the instance that the object stands for or, while it is not Ready, stood
    /// for before.
    pub fn last_known_id(&self) -> Option<&str> {
        self.at_provider.id.as_deref()
    }

    /// Whether the object had an instance that is gone from EC2.
    pub fn is_lost(&self) -> bool {
        self.last_known_id().is_some() && !self.is_current()
    }

    /// EC2's state of the current instance, as far as it is known.
    pub fn state(&self) -> Option<InstanceState> {
        InstanceState::parse(self.state_word()?)
    }

    /// EC2's word for that state.
    pub fn state_word(&self) -> Option<&str> {
        self.current_id()?;
        self.at_provider.instance_state.as_deref()
    }

    /// Whether EC2 says that the current instance runs.
    pub fn runs(&self) -> bool {
        self.state() == Some(InstanceState::Running)
    }

    /// The zone that the instance is in, as last seen.
    pub fn zone(&self) -> Option<&str> {
        self.at_provider.availability_zone.as_deref()
    }

    /// The subnet that it was made in, where one was named.
    pub fn subnet(&self) -> Option<&str> {
        self.for_provider.subnet_id.as_deref()
    }

    /// The type as last seen or, before that, as asked for.
    pub fn instance_type(&self) -> &str {
        let seen = self.at_provider.instance_type.as_deref();
        seen.unwrap_or(&self.for_provider.type_)
    }

    /// What its agent reports.
    pub fn report(&self) -> Option<&str> {
        self.tag(REPORT)
    }

    /// Its SSH host key, as its agent reports it.
    pub fn host_key(&self) -> Option<&str> {
        self.tag(HOST_KEY)
    }

    /// Whether somebody may have worked on it: it is neither new nor at its end.
    pub fn may_hold_work(&self) -> bool {
        use InstanceState::{Pending, ShuttingDown, Terminated};
        let holds_none = matches!(self.state(), Some(Pending | ShuttingDown | Terminated));
        self.current_id().is_some() && !holds_none
    }

    /// `status.atProvider` is that of the instance before, while the object is not Ready.
    fn is_current(&self) -> bool {
        self.failing(READY).is_none()
    }

    fn tag(&self, key: &str) -> Option<&str> {
        let value = self.at_provider.tags_all.get(key)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }
}

impl<'a> Deref for OnDemandInstance<'a> {
    type Target = Observed<'a, ec2::Instance>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
