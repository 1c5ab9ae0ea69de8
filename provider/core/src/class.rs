//! The classes of EC2's errors.

use std::fmt;

use crate::Offering;

/// Part of EC2's message about a type that a zone does not have on a market.
const NOT_IN_ZONE: &str = "is not supported in your requested Availability Zone";

/// The six classes of errors. The provider reacts to each class in its own way;
/// [`crate::UnavailableOfferings`] says how long a refusal lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorClass {
    /// This offering has no capacity: the planner tries the next one, and this one is unavailable
    /// for some time.
    Capacity,
    /// The account's limit for this market and family is reached: all offerings that count against
    /// it are unavailable for some time.
    Quota,
    /// Too many calls: the provider waits and repeats the same request.
    Throttled,
    /// The credentials do not allow this: the condition says so, and the provider retries slowly.
    Denied,
    /// The spec cannot work: the condition says so, and the provider waits for another spec.
    Configuration,
    /// AWS failed, or it is unknown whether it did: the provider repeats the same request with the
    /// same token.
    Transient,
}

impl ErrorClass {
    /// The class of an error of EC2. Some codes mean different things, and only the message tells
    /// which.
    pub fn of_error(code: &str, message: &str) -> Self {
        match code {
            // The zone has the type, but not on this market: kubernetes-sigs/karpenter#2243.
            "InvalidFleetConfiguration" if message.contains(NOT_IN_ZONE) => Self::Capacity,
            // The owner of the image has not shared it.
            "AuthFailure" if message.contains("Not authorized for images") => Self::Configuration,
            // The reasons of a launch that EC2 ended.
            "Client.InternalError" => Self::Configuration,
            _ => Self::of(code.trim_start_matches("Client.")),
        }
    }

    /// The class of an EC2 error code, from AWS's "Error codes for the Amazon EC2 API". An unknown
    /// code is [`Self::Transient`], which is the safe choice because EC2 may have acted.
    pub fn of(code: &str) -> Self {
        let mut classes = CODES.iter();
        let found = classes.find(|(_, codes)| codes.contains(&code));
        found.map_or(Self::Transient, |(class, _)| *class)
    }

    /// Whether a retry cannot help: a person has to change configuration, permissions or a quota.
    pub fn needs_person(self) -> bool {
        match self {
            Self::Quota | Self::Denied | Self::Configuration => true,
            Self::Capacity | Self::Throttled | Self::Transient => false,
        }
    }

    /// The class with this name, if there is one.
    pub fn parse(reason: &str) -> Option<Self> {
        [
            Self::Capacity,
            Self::Quota,
            Self::Throttled,
            Self::Denied,
            Self::Configuration,
            Self::Transient,
        ]
        .into_iter()
        .find(|class| class.as_str() == reason)
    }

    /// The name of the class, used as the reason of a condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Capacity => "Capacity",
            Self::Quota => "Quota",
            Self::Throttled => "Throttled",
            Self::Denied => "Denied",
            Self::Configuration => "Configuration",
            Self::Transient => "Transient",
        }
    }

    /// Whether EC2 certainly did nothing. Otherwise EC2 may have acted, and the same request must
    /// be repeated with the same token.
    pub fn is_definite(self) -> bool {
        !matches!(self, Self::Transient | Self::Throttled)
    }
}

/// The codes of each class. Every other code is transient.
const CODES: &[(ErrorClass, &[&str])] = &[
    (
        ErrorClass::Capacity,
        &[
            "InsufficientAddressCapacity",
            "InsufficientCapacity",
            "InsufficientFreeAddressesInSubnet",
            "InsufficientHostCapacity",
            "InsufficientInstanceCapacity",
            "InsufficientReservedInstanceCapacity",
            "InsufficientReservedInstancesCapacity",
            "InsufficientVolumeCapacity",
            "ReservationCapacityExceeded",
            "SpotMaxPriceTooLow",
            "UnfulfillableCapacity",
            // The type is not sold in that zone.
            "Unsupported",
            "VolumeTypeNotAvailableInZone",
        ],
    ),
    (
        ErrorClass::Quota,
        &[
            "AttachmentLimitExceeded",
            "ConcurrentSnapshotLimitExceeded",
            "InstanceLimitExceeded",
            "MaxFleetCountExceeded",
            "MaxIOPSLimitExceeded",
            "MaxSpotInstanceCountExceeded",
            "MaxTemplateLimitExceeded",
            "MaxTemplateVersionLimitExceeded",
            "NetworkInterfaceLimitExceeded",
            "PendingSnapshotLimitExceeded",
            "PrivateIpAddressLimitExceeded",
            "RequestResourceCountExceeded",
            "ResourceCountExceeded",
            "ResourceLimitExceeded",
            "RulesPerSecurityGroupLimitExceeded",
            "SecurityGroupLimitExceeded",
            "SecurityGroupsPerInstanceLimitExceeded",
            "SecurityGroupsPerInterfaceLimitExceeded",
            "SnapshotCreationPerVolumeRateExceeded",
            "SnapshotLimitExceeded",
            "TagLimitExceeded",
            "VcpuLimitExceeded",
            "VolumeIOPSLimit",
            "VolumeLimitExceeded",
            "VolumeModificationSizeLimitExceeded",
        ],
    ),
    (
        ErrorClass::Throttled,
        &[
            "BandwidthLimitExceeded",
            "EC2ThrottledException",
            "RequestLimitExceeded",
            "Throttling",
            "ThrottlingException",
            "TooManyRequestsException",
        ],
    ),
    (
        ErrorClass::Denied,
        &[
            "AccessDenied",
            "AccessDeniedException",
            "AccountDisabled",
            "AuthFailure",
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
            "Blocked",
            "CustomerKeyHasBeenRevoked",
            "ExpiredToken",
            "ExpiredTokenException",
            "IDPRejectedClaim",
            "IncompleteSignature",
            "InvalidClientTokenId",
            "InvalidIdentityToken",
            "InvalidSecurity.RequestHasExpired",
            "MissingAuthenticationToken",
            "OptInRequired",
            "PackedPolicyTooLarge",
            "PendingVerification",
            "RegionDisabledException",
            "RequestExpired",
            "SignatureDoesNotMatch",
            "TagPolicyViolation",
            "UnauthorizedOperation",
            "UnrecognizedClientException",
        ],
    ),
    (
        ErrorClass::Configuration,
        &[
            "DefaultVpcDoesNotExist",
            "EncryptedVolumesNotSupported",
            "FilterLimitExceeded",
            "InvalidAMIID.Malformed",
            "InvalidAMIID.NotFound",
            "InvalidAMIID.Unavailable",
            "InvalidAction",
            "InvalidAvailabilityZone",
            "InvalidBlockDeviceMapping",
            "InvalidFleetConfig",
            "InvalidFleetConfiguration",
            "InvalidGroup.NotFound",
            "InvalidGroupId.Malformed",
            "InvalidIamInstanceProfileArn.Malformed",
            "InvalidInstanceType",
            "InvalidInstanceType.NotFound",
            "InvalidKeyPair.NotFound",
            "InvalidKmsKeyId",
            "InvalidParameter",
            "InvalidParameterCombination",
            "InvalidParameterDependency",
            "InvalidParameterValue",
            "InvalidPermission.Malformed",
            "InvalidSecurityGroupID.NotFound",
            "InvalidSecurityGroupId.Malformed",
            "InvalidSnapshot.NotFound",
            "InvalidSubnetID.Malformed",
            "InvalidSubnetID.NotFound",
            "InvalidSubnetId.NotFound",
            "InvalidTagKey.Malformed",
            "InvalidUserData.Malformed",
            "InvalidVolume.ZoneMismatch",
            "InvalidVolumeID.ZoneMismatch",
            "InvalidVpcID.NotFound",
            "InvalidZone.NotFound",
            "KmsKeyNotAccessibleException",
            "MissingParameter",
            "NoSuchEntity",
            "OperationNotPermitted",
            "UnknownParameter",
            "UnknownVolumeType",
            "UnsupportedOperation",
            "UnsupportedTenancy",
            "VPCIdNotSpecified",
            "VPCResourceNotSpecified",
            "ValidationError",
        ],
    ),
];

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One error of EC2, with its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The class of the error.
    pub class: ErrorClass,
    /// EC2's error code, for example `InsufficientInstanceCapacity`.
    pub code: String,
    /// EC2's message without request ids, so that it is stable.
    pub message: String,
}

impl Refusal {
    /// The refusal with this code and message.
    pub fn of(code: &str, message: &str) -> Self {
        Self {
            class: ErrorClass::of_error(code, message),
            code: code.to_owned(),
            message: message.to_owned(),
        }
    }

    /// Whether EC2 does not find a security group. It may be too young for EC2 ("Eventual
    /// consistency in the Amazon EC2 API").
    pub fn is_group_missing(&self) -> bool {
        matches!(
            self.code.as_str(),
            "InvalidGroup.NotFound" | "InvalidSecurityGroupID.NotFound"
        )
    }

    /// Whether EC2 ended an instance at its birth, probably because of the key of its disks ("Instance
    /// terminates immediately" in the Amazon EC2 User Guide).
    pub fn may_be_of_volume_key(&self) -> bool {
        self.code == "Client.InternalError"
    }

    /// What a person has to do about a limit.
    pub fn limit_to_raise(&self, offering: &Offering) -> String {
        match self.code.trim_start_matches("Client.") {
            "MaxSpotInstanceCountExceeded" | "VcpuLimitExceeded" | "InstanceLimitExceeded" => {
                offering.vcpus_to_raise()
            }
            "MaxFleetCountExceeded" => {
                "ask AWS Support: AWS has not verified the account for this many requests"
                    .to_owned()
            }
            "VolumeLimitExceeded" | "VolumeIOPSLimit" | "MaxIOPSLimitExceeded" => {
                "raise the quotas for gp3 volumes of Amazon EBS in this region".to_owned()
            }
            _ => "raise this limit in Service Quotas".to_owned(),
        }
    }

    /// Whether AWS does not sell the offering to this account: not now, and not in half an hour.
    pub fn is_unsold(&self) -> bool {
        matches!(
            self.code.as_str(),
            "Unsupported" | "InvalidFleetConfiguration"
        )
    }

    /// Whether the account lacks EC2's role for spot instances. It can still buy on demand.
    pub fn lacks_spot_role(&self) -> bool {
        self.code == "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
    }
}

#[cfg(test)]
#[path = "class_tests.rs"]
mod tests;
