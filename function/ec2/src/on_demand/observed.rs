//! Observed managed resources of upbound's provider-aws-ec2.

use std::collections::BTreeMap;
use std::ops::Deref;

use activity_report::{HOST_KEY, REPORT, SETUP};
use api::condition::READY;
use function_runtime::json::Json;
use function_runtime::object::ObservedObject;
use provider_core::InstanceState;
use serde::de::DeserializeOwned;

use crate::finding;
use crate::on_demand::api::{self as ec2, Initial, Observable};
use crate::unreadable::{self, Problems, Unreadable};

/// The value of a tag before the instance's agent writes it. It is not empty: if one tag in the spec
/// is empty, terraform's provider writes all tags at each look, and overwrites those of the agent
/// (`setTagsAll` in `internal/provider/sdkv2/tags_interceptor.go`).
pub const UNWRITTEN: &str = "none";

/// An observed managed resource. It derefs to the object, which has the name and the conditions.
#[derive(Clone, Debug)]
pub struct Observed<'a, P: Observable> {
    object: ObservedObject<'a>,
    /// The desired fields, `spec.forProvider`.
    pub for_provider: P,
    /// The fields that count at creation only, `spec.initProvider`.
    pub init_provider: Initial,
    /// The observed fields, `status.atProvider`.
    pub at_provider: P::Observation,
}

/// The home volume.
pub type Volume<'a> = Observed<'a, ec2::EbsVolume>;
/// The home volume's attachment to an instance.
pub type Attachment<'a> = Observed<'a, ec2::VolumeAttachment>;
/// The security group of a workspace's instances.
pub type Group<'a> = Observed<'a, ec2::SecurityGroup>;
/// The `InstanceState` of an instance.
pub type Power<'a> = Observed<'a, ec2::InstanceState>;

impl<'a, P: Observable> Observed<'a, P> {
    /// Reads a managed resource.
    ///
    /// # Errors
    ///
    /// A field has another type than in the known versions of the provider.
    pub fn read(resource: &'a Json<'a>) -> Result<Self, Unreadable> {
        Ok(Self {
            object: ObservedObject::new(resource),
            for_provider: part::<P, _>(resource, ["spec", "forProvider"])?,
            init_provider: part::<P, _>(resource, ["spec", "initProvider"])?,
            at_provider: part::<P, _>(resource, ["status", "atProvider"])?,
        })
    }

    /// The object, which has the conditions.
    pub fn object(&self) -> ObservedObject<'a> {
        self.object
    }

    /// Reads the observed managed resources whose composition resource names begin with `prefix`.
    pub fn read_all(
        observed: &'a BTreeMap<String, Json<'a>>,
        prefix: &str,
        problems: &mut Problems,
    ) -> BTreeMap<&'a str, Self> {
        observed
            .iter()
            .filter(|(name, _)| name.starts_with(prefix))
            .filter_map(|(name, resource)| {
                Some((name.as_str(), problems.readable(Self::read(resource))?))
            })
            .collect()
    }
}

fn part<P: Observable, T: DeserializeOwned + Default>(
    resource: &Json<'_>,
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
/// If its EC2 instance is lost, the same `Instance` object never gets another one. Late
/// initialization writes the network interface into its spec, so each further creation by
/// provider-aws fails. Without late initialization, provider-aws would forget the instance when it
/// restarts, and would create a second one.
#[derive(Clone, Debug)]
pub struct OnDemandInstance<'a>(Observed<'a, ec2::Instance>);

impl<'a> OnDemandInstance<'a> {
    /// Reads the observed on-demand instances.
    pub fn read_all(
        observed: &'a BTreeMap<String, Json<'a>>,
        prefix: &str,
        problems: &mut Problems,
    ) -> BTreeMap<&'a str, Self> {
        let read = Observed::read_all(observed, prefix, problems);
        read.into_iter()
            .map(|(name, one)| (name, Self(one)))
            .collect()
    }

    /// The id of the object's current EC2 instance; none if it has none.
    pub fn current_id(&self) -> Option<&str> {
        self.last_known_id().filter(|_| self.is_current())
    }

    /// The id of the object's current EC2 instance or, while the object is not Ready, of its last
    /// one.
    pub fn last_known_id(&self) -> Option<&str> {
        self.at_provider.id.as_deref()
    }

    /// Whether the object had an EC2 instance that no longer exists.
    pub fn is_lost(&self) -> bool {
        self.last_known_id().is_some() && !self.is_current()
    }

    /// The EC2 state of the current instance; none if it is not known.
    pub fn state(&self) -> Option<InstanceState> {
        InstanceState::parse(self.state_word()?)
    }

    /// The EC2 state of the current instance, in EC2's words.
    pub fn state_word(&self) -> Option<&str> {
        self.current_id()?;
        self.at_provider.instance_state.as_deref()
    }

    /// Whether the current instance has the EC2 state `running`.
    pub fn runs(&self) -> bool {
        self.state() == Some(InstanceState::Running)
    }

    /// The last observed availability zone.
    pub fn zone(&self) -> Option<&str> {
        self.at_provider.availability_zone.as_deref()
    }

    /// The subnet in the spec; none if the spec names none.
    pub fn subnet(&self) -> Option<&str> {
        self.for_provider.subnet_id.as_deref()
    }

    /// The last observed instance type or, before that, the type in the spec.
    pub fn instance_type(&self) -> &str {
        let seen = self.at_provider.instance_type.as_deref();
        seen.unwrap_or(&self.for_provider.type_)
    }

    /// The last report of the agent, from the instance's tag.
    pub fn report(&self) -> Option<&str> {
        self.tag(REPORT)
    }

    /// The SSH host key, which the agent writes to the instance's tag.
    pub fn host_key(&self) -> Option<&str> {
        self.tag(HOST_KEY)
    }

    /// Whether the instance started with the tag for the result of its setup.
    pub fn reports_setup(&self) -> bool {
        let tags = self.init_provider.tags.as_ref();
        tags.is_some_and(|tags| tags.contains_key(SETUP))
    }

    /// The result of the setup, which the agent writes to the instance's tag.
    pub fn setup(&self) -> Option<&str> {
        self.tag(SETUP)
    }

    /// Whether the owner may have worked on the instance: it exists and is neither pending nor
    /// ending.
    pub fn may_hold_work(&self) -> bool {
        self.current_id().is_some() && finding::may_hold_work(self.state())
    }

    /// While the object is not Ready, `status.atProvider` is that of its last instance.
    fn is_current(&self) -> bool {
        self.failing(READY).is_none()
    }

    fn tag(&self, key: &str) -> Option<&str> {
        let value = self.at_provider.tags_all.get(key)?;
        Some(value.as_str()).filter(|value| !["", UNWRITTEN].contains(value))
    }
}

impl<'a> Deref for OnDemandInstance<'a> {
    type Target = Observed<'a, ec2::Instance>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
