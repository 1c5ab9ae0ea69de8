//! The kinds of upbound's provider-aws-ec2 v2.5 that this function composes
//! (`ec2.aws.m.upbound.io/v1beta1`), with the fields that it writes or reads.

use std::collections::BTreeMap;

use api::managed::{ManagementAction, ProviderConfigReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

/// The API's group and version.
pub const API_VERSION: &str = "ec2.aws.m.upbound.io/v1beta1";

/// A kind of the provider, by its `spec.forProvider`.
pub trait Parameters: Serialize {
    /// The name of the kind.
    const KIND: &'static str;
}

/// A kind that the function also reads. Fields that it only writes are not read.
pub trait Observable: Parameters + DeserializeOwned + Default {
    /// The kind's `status.atProvider`.
    type Observation: DeserializeOwned + Default;
}

/// A desired managed resource.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Managed<'a, P> {
    api_version: &'static str,
    kind: &'static str,
    /// Namespace, labels and annotations. Crossplane sets the name.
    pub metadata: ObjectMeta,
    /// The spec of the managed resource.
    pub spec: Spec<'a, P>,
}

/// The spec of a managed resource.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec<'a, P> {
    /// The provider configuration to use.
    pub provider_config_ref: &'a ProviderConfigReference,
    /// The desired fields.
    pub for_provider: P,
    /// Fields that count at creation only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_provider: Option<Initial>,
    /// The actions that the provider may take; `None` allows all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub management_policies: Option<&'static [ManagementAction]>,
}

impl<'a, P: Parameters> Managed<'a, P> {
    /// A managed resource in a namespace.
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

/// The `spec.initProvider` of an `Instance`. provider-aws does not change fields later that only
/// this names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Initial {
    /// The tags at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// An EC2 instance.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Instance {
    /// AWS region.
    pub region: String,
    /// The AMI id.
    pub ami: String,
    /// The instance type, for example `g5.xlarge`.
    #[serde(rename = "instanceType")]
    pub type_: String,
    /// cloud-init user data.
    pub user_data: String,
    /// The availability zone. With `None`, EC2 or the subnet decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// The subnet. With `None`, EC2 chooses one in the default VPC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// Selects the composed security group, if the workspace has its own.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub vpc_security_group_id_selector: Option<OfSameComposite>,
    /// The security groups in the catalogue, if it names some.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub vpc_security_group_ids: Option<Vec<String>>,
    /// The name of the IAM instance profile.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub iam_instance_profile: Option<String>,
    /// Access to the instance metadata service.
    #[serde(skip_deserializing)]
    pub metadata_options: MetadataOptions,
    /// The root volume.
    #[serde(skip_deserializing)]
    pub root_block_device: RootBlockDevice,
    /// The tags of all attached volumes.
    #[serde(skip_deserializing)]
    pub volume_tags: BTreeMap<String, String>,
    /// The tags of the instance.
    #[serde(skip_deserializing)]
    pub tags: BTreeMap<String, String>,
}

/// Selects the resource of the needed kind that the same composite composes.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfSameComposite {
    match_controller_ref: bool,
}

impl OfSameComposite {
    /// The only value.
    pub const SELECTOR: Self = Self {
        match_controller_ref: true,
    };
}

/// Access to the instance metadata service.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// `enabled` or `disabled`.
    pub http_endpoint: String,
    /// With `required`, only `IMDSv2` is allowed.
    pub http_tokens: String,
    /// The largest number of network hops of a response.
    pub http_put_response_hop_limit: i64,
    /// `enabled` or `disabled`: whether the metadata contain the instance's tags.
    pub instance_metadata_tags: String,
}

/// The root volume of an instance.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RootBlockDevice {
    /// Whether the volume is encrypted.
    pub encrypted: bool,
    /// The volume type, for example `gp3`.
    pub volume_type: String,
    /// Whether EC2 deletes the volume with the instance.
    pub delete_on_termination: bool,
    /// The size in GiB. With `None`, the size in the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_size: Option<i32>,
}

/// The observed EC2 instance. provider-aws leaves unknown text fields empty.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceObservation {
    /// The instance id in EC2.
    #[serde(deserialize_with = "non_empty")]
    pub id: Option<String>,
    /// The EC2 state, for example `running`.
    #[serde(deserialize_with = "non_empty")]
    pub instance_state: Option<String>,
    /// The instance type.
    #[serde(deserialize_with = "non_empty")]
    pub instance_type: Option<String>,
    /// The availability zone.
    #[serde(deserialize_with = "non_empty")]
    pub availability_zone: Option<String>,
    /// Public IPv4 address.
    #[serde(deserialize_with = "non_empty")]
    pub public_ip: Option<String>,
    /// Private IPv4 address.
    #[serde(deserialize_with = "non_empty")]
    pub private_ip: Option<String>,
    /// All tags, including those of other writers.
    pub tags_all: BTreeMap<String, String>,
}

impl Parameters for Instance {
    const KIND: &'static str = "Instance";
}

impl Observable for Instance {
    type Observation = InstanceObservation;
}

/// Keeps an EC2 instance running or stopped.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceState {
    /// AWS region.
    #[serde(skip_deserializing)]
    pub region: String,
    /// The instance id in EC2.
    #[serde(skip_deserializing)]
    pub instance_id: String,
    /// `running` or `stopped`.
    #[serde(skip_deserializing)]
    pub state: String,
}

/// The observed state of such an instance.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct InstanceStateObservation {
    /// The state that the instance has reached.
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
    #[serde(skip_deserializing)]
    pub region: String,
    /// The name, unique in its VPC.
    pub name: String,
    /// The description. EC2 cannot change it.
    pub description: String,
    /// The VPC. With `None`, the default VPC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
    /// The tags of the group.
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
    /// Selects the composed security group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_group_id_selector: Option<OfSameComposite>,
    /// `ingress` or `egress`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `tcp`, or `-1` for all protocols.
    pub protocol: String,
    /// The first port.
    pub from_port: i64,
    /// The last port.
    pub to_port: i64,
    /// The IPv4 networks; empty for a rule about a security group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cidr_blocks: Vec<String>,
    /// The id of the security group whose members may connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_security_group_id: Option<String>,
}

impl Parameters for SecurityGroupRule {
    const KIND: &'static str = "SecurityGroupRule";
}

/// An EBS volume.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EbsVolume {
    /// AWS region.
    #[serde(skip_deserializing)]
    pub region: String,
    /// The availability zone.
    #[serde(deserialize_with = "non_empty")]
    pub availability_zone: Option<String>,
    /// The size in GiB.
    pub size: Option<i64>,
    /// The volume type, for example `gp3`.
    #[serde(rename = "type", skip_deserializing)]
    pub type_: String,
    /// Whether the volume is encrypted.
    #[serde(skip_deserializing)]
    pub encrypted: bool,
    /// Whether the provider creates a snapshot before it deletes the volume.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub final_snapshot: Option<bool>,
    /// The tags of the volume.
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
    #[serde(skip_deserializing)]
    pub region: String,
    /// The device name in EC2.
    #[serde(skip_deserializing)]
    pub device_name: String,
    /// The instance id in EC2.
    #[serde(deserialize_with = "non_empty")]
    pub instance_id: Option<String>,
    /// The volume id in EC2.
    #[serde(skip_deserializing)]
    pub volume_id: String,
    /// Whether the provider stops the instance before it detaches the volume.
    #[serde(skip_deserializing)]
    pub stop_instance_before_detaching: bool,
}

impl Parameters for VolumeAttachment {
    const KIND: &'static str = "VolumeAttachment";
}

impl Observable for VolumeAttachment {
    type Observation = Nothing;
}

/// The observation of a kind of which the function reads nothing.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Nothing {}

fn non_empty<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.filter(|text| !text.is_empty()))
}
