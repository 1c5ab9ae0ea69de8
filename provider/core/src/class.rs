//! What an error of EC2 means for a pool.

use std::fmt;

/// The six classes. Each has its own behaviour; see [`crate::UnavailableOfferings`] for
/// how long a refusal lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorClass {
    /// This offering has no capacity: try the next one, rest this one.
    Capacity,
    /// The account's limit for this market and family is reached: rest them all.
    Quota,
    /// Too many calls: wait, ask the same again.
    Throttled,
    /// The credentials may not do this: tell, retry slowly.
    Denied,
    /// The spec cannot work: tell, wait for another spec.
    Configuration,
    /// AWS failed, or nobody knows whether it did: ask the same again, with the
    /// same token.
    Transient,
}

impl ErrorClass {
    /// The class of an EC2 error code, from AWS's "Error codes for the Amazon EC2
    /// API". An unknown code is the spec's fault only when nothing else can be: the
    /// safe reading of an unknown answer is that EC2 may have acted.
    pub fn of(code: &str) -> Self {
        match code {
            "InsufficientInstanceCapacity"
            | "InsufficientCapacity"
            | "InsufficientHostCapacity"
            | "InsufficientReservedInstanceCapacity"
            | "InsufficientFreeAddressesInSubnet"
            | "UnfulfillableCapacity"
            | "ReservationCapacityExceeded"
            | "InsufficientVolumeCapacity"
            | "SpotMaxPriceTooLow"
            // The type is not sold in that zone.
            | "Unsupported" => Self::Capacity,

            "MaxSpotInstanceCountExceeded"
            | "VcpuLimitExceeded"
            | "InstanceLimitExceeded"
            | "MaxFleetCountExceeded"
            | "VolumeLimitExceeded"
            | "MaxIOPSLimitExceeded"
            | "SnapshotLimitExceeded"
            | "SnapshotCreationPerVolumeRateExceeded"
            | "ConcurrentSnapshotLimitExceeded"
            | "PendingSnapshotLimitExceeded"
            | "AttachmentLimitExceeded"
            | "SecurityGroupLimitExceeded"
            | "RulesPerSecurityGroupLimitExceeded"
            | "SecurityGroupsPerInstanceLimitExceeded" => Self::Quota,

            "RequestLimitExceeded"
            | "Throttling"
            | "ThrottlingException"
            | "TooManyRequestsException"
            | "EC2ThrottledException" => Self::Throttled,

            "UnauthorizedOperation"
            | "AuthFailure"
            | "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
            | "AccessDenied"
            | "AccessDeniedException"
            | "Blocked"
            | "ExpiredToken"
            | "ExpiredTokenException"
            | "IDPRejectedClaim"
            | "IncompleteSignature"
            | "InvalidClientTokenId"
            | "InvalidIdentityToken"
            | "MissingAuthenticationToken"
            | "OptInRequired"
            | "PackedPolicyTooLarge"
            | "PendingVerification"
            | "RegionDisabledException"
            | "RequestExpired"
            | "SignatureDoesNotMatch"
            | "UnrecognizedClientException" => Self::Denied,

            "InvalidAMIID.Malformed"
            | "InvalidAMIID.NotFound"
            | "InvalidAMIID.Unavailable"
            | "InvalidBlockDeviceMapping"
            | "InvalidFleetConfiguration"
            | "InvalidGroup.NotFound"
            | "InvalidInstanceType"
            | "InvalidInstanceType.NotFound"
            | "InvalidKeyPair.NotFound"
            | "InvalidParameter"
            | "InvalidParameterCombination"
            | "InvalidParameterValue"
            | "InvalidPermission.Malformed"
            | "InvalidSecurityGroupID.NotFound"
            | "InvalidSubnetID.NotFound"
            | "InvalidUserData.Malformed"
            | "InvalidVolume.ZoneMismatch"
            | "InvalidVpcID.NotFound"
            | "InvalidZone.NotFound"
            | "KmsKeyNotAccessibleException"
            | "InvalidKmsKeyId"
            | "MissingParameter"
            | "NoSuchEntity"
            | "OperationNotPermitted"
            | "UnsupportedOperation"
            | "ValidationError"
            | "VPCIdNotSpecified"
            | "DefaultVpcDoesNotExist"
            | "InvalidAction" => Self::Configuration,

            _ => Self::Transient,
        }
    }

    /// Whether trying again cannot help: a person has to change configuration, permissions
    /// or a quota.
    pub fn needs_person(self) -> bool {
        match self {
            Self::Quota | Self::Denied | Self::Configuration => true,
            Self::Capacity | Self::Throttled | Self::Transient => false,
        }
    }

    /// The class of a condition's reason, where it is one.
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

    /// The word used as a condition's reason.
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

    /// Whether EC2 certainly did nothing. Where it may have acted, the same
    /// request must be repeated with the same token.
    pub fn is_definite(self) -> bool {
        !matches!(self, Self::Transient | Self::Throttled)
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One error of EC2, classified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its class.
    pub class: ErrorClass,
    /// EC2's error code, for example `InsufficientInstanceCapacity`.
    pub code: String,
    /// For people, without request ids, so that it is stable.
    pub message: String,
}
