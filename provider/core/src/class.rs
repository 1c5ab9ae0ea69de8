//! The classes of EC2's errors.

use std::fmt;

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
    /// The class of an EC2 error code, from AWS's "Error codes for the Amazon EC2 API". An unknown
    /// code is [`Self::Transient`], which is the safe choice because EC2 may have acted.
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
