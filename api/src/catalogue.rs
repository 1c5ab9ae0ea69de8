//! The catalogue: the data of the EnvironmentConfigs that a policy names.
//!
//! It holds values that operators change without a change of the Composition: images and networks
//! by region, keys of owners, and prices.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::is_default;
use crate::patterns::{CERTIFICATE, DATE, GPU_NAME, MEMORY, PACKAGE_INDEX};

/// Holds values that operators change without a change of the Composition: images, networks, keys
/// and prices. It is the `data` of an EnvironmentConfig.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Catalogue {
    /// Machine images, by region and then by name.
    #[serde(default)]
    pub images: BTreeMap<String, BTreeMap<String, Image>>,
    /// Descriptions of EC2 instance types, by name, for example `g4dn.xlarge`. A claim that asks for
    /// GPUs gets a type that is described here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub instance_types: BTreeMap<String, InstanceTypeDescription>,
    /// IAM instance profiles of the instances of owners and namespaces. Default: the policy's profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profiles: Option<InstanceProfiles>,
    /// Networks, by region. A region without an entry uses its default VPC.
    #[serde(default)]
    pub networks: BTreeMap<String, Network>,
    /// SSH keys of owners, by the owner's name.
    #[serde(default)]
    pub owners: BTreeMap<String, Owner>,
    /// Sources of the Python packages that machines install, from behaviour version v3 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<Packages>,
    /// Prices of instance types, flavors and homes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// Prices of machines and homes.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// Date of the prices, for example `2026-11-01`.
    #[schemars(regex(pattern = DATE))]
    pub as_of: String,
    /// On-demand prices in US dollars per hour, by region and then by instance type.
    #[serde(default)]
    pub hourly_usd: BTreeMap<String, BTreeMap<String, f64>>,
    /// Spot prices in US dollars per hour, by region and then by instance type. A type without a
    /// spot price counts with its on-demand price.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spot_hourly_usd: BTreeMap<String, BTreeMap<String, f64>>,
    /// Prices of one pod in the cluster in US dollars per hour, by `WorkspaceFlavor`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flavor_hourly_usd: BTreeMap<String, f64>,
    /// Prices of home volumes on EC2 in US dollars for each GiB and month, by region. Homes without
    /// a price cost nothing in status and budgets.
    #[serde(
        default,
        rename = "volumeGiBMonthUsd",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub volume_gib_month_usd: BTreeMap<String, f64>,
    /// Prices of homes in the cluster in US dollars for each GiB and month, by `StorageClass`.
    #[serde(
        default,
        rename = "storageClassGiBMonthUsd",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub storage_class_gib_month_usd: BTreeMap<String, f64>,
}

/// What an EC2 instance type has.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceTypeDescription {
    /// Name of its GPUs, for example `T4`.
    #[schemars(length(max = 32), regex(pattern = GPU_NAME))]
    pub gpu: String,
    /// Number of its GPUs.
    #[schemars(range(min = 1, max = 16))]
    pub gpus: i32,
    /// Memory of each GPU, for example `16Gi`.
    #[schemars(length(max = 32), regex(pattern = MEMORY))]
    pub gpu_memory: String,
    /// Number of its virtual CPUs.
    #[schemars(range(min = 1, max = 1024))]
    pub vcpus: i32,
    /// Its main memory, for example `16Gi`.
    #[schemars(length(max = 32), regex(pattern = MEMORY))]
    pub memory: String,
}

/// IAM instance profiles. A profile gives everybody on the instance the rights of its role.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceProfiles {
    /// Names of instance profiles, by owner. They come before those of namespaces.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub owners: BTreeMap<String, String>,
    /// Names of instance profiles, by the namespace of the claim.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub namespaces: BTreeMap<String, String>,
}

/// A machine image.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    /// Id of the machine image (AMI), for example `ami-0123456789abcdef0`. Its content never
    /// changes, unlike that of an alias.
    pub id: String,
    /// Text that tells people what the image is for. The function ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Python interpreter of the image from which machines make the workspace's environment, from
    /// behaviour version v3 on. Default: `pytorch.python` where the image's PyTorch is used, else
    /// `/usr/bin/python3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// OpenCV installation in the image, which `python` imports. Machines install no OpenCV for a
    /// claim of this release, from behaviour version v3 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opencv: Option<ImageOpencv>,
    /// PyTorch installation in the image. Default: the image has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch: Option<ImagePytorch>,
    /// URL of a package index for PyTorch releases that are not in the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pytorch_index_url: Option<String>,
}

/// OpenCV installation in an image.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageOpencv {
    /// OpenCV release, for example `4.12.0`. A claim without `opencvVersion` gets it.
    pub version: String,
    /// Whether the installation has OpenCV's contrib modules.
    #[serde(default, skip_serializing_if = "is_default")]
    pub contrib: bool,
}

/// PyTorch installation in an image.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImagePytorch {
    /// PyTorch release in the image, for example `2.12.1`.
    pub version: String,
    /// Python interpreter that has PyTorch, for example `/opt/pytorch/bin/python3`.
    pub python: String,
}

/// Sources of the Python packages that machines install.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Packages {
    /// URL of the package index, for example of an internal mirror of PyPI. Default: the index in
    /// the image's pip configuration. A machine installs a file of the index only if its digest is
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), regex(pattern = PACKAGE_INDEX))]
    pub index_url: Option<String>,
    /// Lines of a pip requirements file by OpenCV release, for releases that the function does not
    /// know, and instead of those that it knows. Each line has an exact release and a digest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub opencv: BTreeMap<String, Vec<String>>,
    /// The same lines for claims with `opencvContrib`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub opencv_contrib: BTreeMap<String, Vec<String>>,
    /// Certificates of certification authorities that machines trust in addition to their own, each
    /// in PEM, for example that of an internal mirror. They are part of the user data, which EC2
    /// bounds: a machine has room for one or two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(max = 8192), regex(pattern = CERTIFICATE)))]
    pub ca_certificates: Vec<String>,
}

/// Network for the instances of a region.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Network {
    /// Subnets of one VPC. Default: the subnets of the default VPC. An on-demand workspace of
    /// `ProviderAws` uses the first subnet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnet_ids: Vec<String>,
    /// VPC of the subnets. Required if an on-demand workspace of `ProviderAws` needs its own security
    /// group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpc_id: Option<String>,
    /// Existing security groups to use. Default: one new group for each workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_group_ids: Vec<String>,
}

/// Data of an owner.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Owner {
    /// OpenSSH public keys of the owner, in addition to those of the claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub public_keys: Vec<String>,
}
