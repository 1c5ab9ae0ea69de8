//! The kinds of upbound's provider-aws-ec2 v2.5 that this function composes
//! (`ec2.aws.m.upbound.io/v1beta1`), with the fields that it writes or reads.

use std::collections::BTreeMap;

use api::managed::{ManagementAction, ProviderConfigReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

/// The API's group and version.
pub const API_VERSION: &str = "ec2.aws.m.upbound.io/v1beta1";

/// The `spec.forProvider` of a kind.
pub trait Parameters: Serialize {
    /// The kind.
    const KIND: &'static str;
}

/// A kind that is read as well. Fields that this function only writes are not read.
pub trait Observable: Parameters + DeserializeOwned + Default {
    /// Its `status.atProvider`.
    type Observation: DeserializeOwned + Default;
}

/// A managed resource as it is desired.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Managed<'a, P> {
    api_version: &'static str,
    kind: &'static str,
    /// Its namespace, labels and annotations; Crossplane names it.
    pub metadata: ObjectMeta,
    /// What it is to be.
    pub spec: Spec<'a, P>,
}

/// What a managed resource is to be.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec<'a, P> {
    /// Credentials to use.
    pub provider_config_ref: &'a ProviderConfigReference,
    /// What it is to be now.
    pub for_provider: P,
    /// What it is to be when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_provider: Option<Initial>,
    /// What the provider may do; everything for `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub management_policies: Option<&'static [ManagementAction]>,
}

impl<'a, P: Parameters> Managed<'a, P> {
    /// A managed resource of a namespace.
    pub fn new(namespace: &str, config: &'a ProviderConfigReference, for_provider: P) -> Self {
        Self {
            api_version: API_VERSION,
            kind: P::KIND,
            metadata: ObjectMeta {
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            spec: Spec {
                provider_config_ref: config,
                for_provider,
                init_provider: None,
                management_policies: None,
            },
        }
    }
}

/// The `spec.initProvider` of an `Instance`: provider-aws leaves alone later what only this
/// names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Initial {
    /// Tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// An EC2 instance.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Instance {
    /// AWS region.
    pub region: String,
    /// The image.
    pub ami: String,
    /// For example `g5.xlarge`.
    #[serde(rename = "instanceType")]
    pub type_: String,
    /// cloud-init user data.
    pub user_data: String,
    /// The zone; EC2 or the subnet decides for `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// The subnet; the default VPC's for `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// The composed security group, where the workspace has its own.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub vpc_security_group_id_selector: Option<OfSameComposite>,
    /// The platform's security groups, where it names some.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub vpc_security_group_ids: Option<Vec<String>>,
    /// Name of an IAM instance profile.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub iam_instance_profile: Option<String>,
    /// How the instance reaches its metadata.
    #[serde(skip_deserializing)]
    pub metadata_options: MetadataOptions,
    /// The root volume.
    #[serde(skip_deserializing)]
    pub root_block_device: RootBlockDevice,
    /// The tags of all volumes that are attached.
    #[serde(skip_deserializing)]
    pub volume_tags: BTreeMap<String, String>,
    /// The tags of the instance.
    #[serde(skip_deserializing)]
    pub tags: BTreeMap<String, String>,
}

/// Selects the resource of that kind which the same composite composes.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfSameComposite {
    match_controller_ref: bool,
}

impl OfSameComposite {
    /// The selector.
    pub const SELECTOR: Self = Self {
        match_controller_ref: true,
    };
}

/// How an instance reaches its metadata.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// `enabled` or `disabled`.
    pub http_endpoint: String,
    /// `required` allows `IMDSv2` alone.
    pub http_tokens: String,
    /// How many network hops an answer lives.
    pub http_put_response_hop_limit: i64,
    /// Whether metadata has the instance's tags.
    pub instance_metadata_tags: String,
}

/// A root volume.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RootBlockDevice {
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// The type, for example `gp3`.
    pub volume_type: String,
    /// Whether it goes with the instance.
    pub delete_on_termination: bool,
    /// GiB; the image's for `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_size: Option<i32>,
}

/// What provider-aws saw of an EC2 instance. It leaves texts that it does not know empty.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceObservation {
    /// EC2's id.
    #[serde(deserialize_with = "non_empty")]
    pub id: Option<String>,
    /// EC2's state, for example `running`.
    #[serde(deserialize_with = "non_empty")]
    pub instance_state: Option<String>,
    /// The type.
    #[serde(deserialize_with = "non_empty")]
    pub instance_type: Option<String>,
    /// The zone.
    #[serde(deserialize_with = "non_empty")]
    pub availability_zone: Option<String>,
    /// Public IPv4 address.
    #[serde(deserialize_with = "non_empty")]
    pub public_ip: Option<String>,
    /// Private IPv4 address.
    #[serde(deserialize_with = "non_empty")]
    pub private_ip: Option<String>,
    /// All tags, also those that others wrote.
    pub tags_all: BTreeMap<String, String>,
}

impl Parameters for Instance {
    const KIND: &'static str = "Instance";
}

impl Observable for Instance {
    type Observation = InstanceObservation;
}

/// Whether an EC2 instance is on or off.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceState {
    /// AWS region.
    pub region: String,
    /// EC2's id of the instance.
    pub instance_id: String,
    /// `running` or `stopped`.
    pub state: String,
}

/// What provider-aws saw of an instance that is to be on or off.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct InstanceStateObservation {
    /// The state that it has reached.
    #[serde(deserialize_with = "non_empty")]
    pub state: Option<String>,
}

impl Parameters for InstanceState {
    const KIND: &'static str = "InstanceState";
}

impl Observable for InstanceState {
    type Observation = InstanceStateObservation;
}

/// A security group.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecurityGroup {
    /// AWS region.
    pub region: String,
    /// Its name, unique in its VPC.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its VPC; the default one for `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
    /// Its tags.
    #[serde(skip_deserializing)]
    pub tags: BTreeMap<String, String>,
}

impl Parameters for SecurityGroup {
    const KIND: &'static str = "SecurityGroup";
}

impl Observable for SecurityGroup {
    type Observation = Nothing;
}

/// A rule of a security group.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupRule {
    /// AWS region.
    pub region: String,
    /// The composed security group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_group_id_selector: Option<OfSameComposite>,
    /// `ingress` or `egress`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `tcp`, or `-1` for all.
    pub protocol: String,
    /// The first port.
    pub from_port: i64,
    /// The last port.
    pub to_port: i64,
    /// IPv4 networks.
    pub cidr_blocks: Vec<String>,
}

impl Parameters for SecurityGroupRule {
    const KIND: &'static str = "SecurityGroupRule";
}

/// An EBS volume.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EbsVolume {
    /// AWS region.
    pub region: String,
    /// Its zone.
    #[serde(deserialize_with = "non_empty")]
    pub availability_zone: Option<String>,
    /// GiB.
    pub size: Option<i64>,
    /// The type, for example `gp3`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// Whether its deletion leaves a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_snapshot: Option<bool>,
    /// Its tags.
    pub tags: Option<BTreeMap<String, String>>,
}

impl Parameters for EbsVolume {
    const KIND: &'static str = "EBSVolume";
}

impl Observable for EbsVolume {
    type Observation = Nothing;
}

/// The attachment of a volume to an instance.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeAttachment {
    /// AWS region.
    pub region: String,
    /// The device that EC2 calls it by.
    pub device_name: String,
    /// EC2's id of the instance.
    #[serde(deserialize_with = "non_empty")]
    pub instance_id: Option<String>,
    /// EC2's id of the volume.
    pub volume_id: String,
    /// Whether the instance is stopped first.
    pub stop_instance_before_detaching: bool,
}

impl Parameters for VolumeAttachment {
    const KIND: &'static str = "VolumeAttachment";
}

impl Observable for VolumeAttachment {
    type Observation = Nothing;
}

/// An observation of which this function reads nothing.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Nothing {}

fn non_empty<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.filter(|text| !text.is_empty()))
}
