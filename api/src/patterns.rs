//! Patterns of strings, each with a message for people.
//!
//! The API server shows a pattern as it is to the author of a wrong value. So the definitions of
//! kinds have a rule with the message in place of the pattern, where that is possible: see
//! `xtask/src/codegen/patterns.rs`. A pattern in an attribute of a field is one of these constants.

use std::fmt;

/// A pattern of strings, and what to write instead of a string that does not match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// The regular expression. Go, Rust and Python read it alike.
    regex: &'static str,
    /// What to write instead, with an example.
    pub(crate) message: &'static str,
}

/// The regular expression, which is what a schema contains.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.regex)
    }
}

/// The message of the pattern with this regular expression.
pub fn message(regex: &str) -> Option<&'static str> {
    let pattern = ALL.iter().find(|pattern| pattern.regex == regex);
    pattern.map(|pattern| pattern.message)
}

const ALL: &[Pattern] = &[
    ABSOLUTE_PATH,
    AGENT_URL,
    CERTIFICATE,
    CONTAINER_IMAGE,
    CPU,
    DATE,
    DATE_TIME,
    DNS_LABEL,
    DNS_NAME,
    DURATION,
    ENDPOINT,
    EXTERNAL_ID,
    GPU_NAME,
    GPU_PRODUCT,
    GPU_RESOURCE,
    INSTANCE_TYPE,
    INSTANCE_TYPES,
    IPV4_NETWORK,
    LEASE_KEY,
    MACHINE_IMAGE,
    MEMORY,
    MOUNT_PATH,
    NAMESPACE_PREFIX,
    OPENCV_VERSION,
    OWNER,
    PACKAGE_INDEX,
    KMS_KEY,
    POOL_KEY,
    PUBLIC_KEY,
    PYTORCH_VERSION,
    REGION,
    ROLE_ARN,
    SECURITY_GROUP,
    SESSION_NAME,
    SHA256,
    SUB_PATH,
    TAINT_EFFECT,
    TIMER,
    TOLERATION_OPERATOR,
    VOLUME_SIZE,
];

pub(crate) const ABSOLUTE_PATH: Pattern = Pattern {
    regex: r"^/.+$",
    message: "write an absolute path, for example /var/run/tokens/aws",
};

pub(crate) const AGENT_URL: Pattern = Pattern {
    regex: r"^https?://[A-Za-z0-9._~:/?&=%@+-]+$",
    message: "write a URL, for example https://downloads.example.org/gpu-workspace-agent",
};

pub(crate) const CERTIFICATE: Pattern = Pattern {
    regex: r"^-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+\n-----END CERTIFICATE-----\n?$",
    message: "write one certificate in PEM, from -----BEGIN CERTIFICATE----- to \
              -----END CERTIFICATE-----",
};

pub(crate) const CONTAINER_IMAGE: Pattern = Pattern {
    regex: r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$",
    message: "write a container image, for example registry.example.org/workspace:1.0.0",
};

/// CPUs in cores or thousandths of a core.
pub(crate) const CPU: Pattern = Pattern {
    regex: r"^[1-9][0-9]{0,5}m?$",
    message: "write CPU cores or thousandths of a core, for example 4 or 1500m",
};

pub(crate) const DATE: Pattern = Pattern {
    regex: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    message: "write a date as year, month and day, for example 2026-11-01",
};

/// A time in RFC 3339. The format `date-time` of the API server admits more than a process can
/// read: ten digits of a second, and times after the last one that it knows.
pub(crate) const DATE_TIME: Pattern = Pattern {
    regex: r"^2[0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
    message: "write a date and time of the years 2000 to 2999, for example 2026-12-24T18:00:00Z",
};

/// A name in the form of a DNS label.
pub(crate) const DNS_LABEL: Pattern = Pattern {
    regex: r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
    message: "write lower-case letters, digits and -, with a letter or digit first and \
              last, for example team-vision",
};

/// A name in the form of a DNS subdomain.
pub(crate) const DNS_NAME: Pattern = Pattern {
    regex: r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
    message: "write lower-case letters, digits, - and ., with a letter or digit first and \
              last, for example gpu-large",
};

/// A duration of whole seconds, minutes, hours and days.
pub(crate) const DURATION: Pattern = Pattern {
    regex: r"^([0-9]{1,5}[smhd]){1,4}$",
    message: "write a duration in days, hours, minutes or seconds, for example 90m or 1d12h",
};

pub(crate) const ENDPOINT: Pattern = Pattern {
    regex: r"^https?://[^\s/]+.*$",
    message: "write a URL, for example https://vpce-0123.ec2.us-east-1.vpce.amazonaws.com",
};

/// An external id of a role's trust policy: the characters that AWS allows.
pub(crate) const EXTERNAL_ID: Pattern = Pattern {
    regex: r"^[\w+=,.@:/-]*$",
    message: "write letters, digits and the characters _+=,.@:/- only, for example \
              team-vision-42",
};

/// A name of a GPU, as AWS writes it.
pub(crate) const GPU_NAME: Pattern = Pattern {
    regex: r"^[A-Za-z0-9]([A-Za-z0-9 ._-]*[A-Za-z0-9])?$",
    message: "write the name of a GPU, for example T4 or A10G",
};

/// The value of a node's label `nvidia.com/gpu.product`.
pub(crate) const GPU_PRODUCT: Pattern = Pattern {
    regex: r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
    message: "write the value of the node's label nvidia.com/gpu.product, for example \
              NVIDIA-A10G",
};

pub(crate) const GPU_RESOURCE: Pattern = Pattern {
    regex: r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$",
    message: "write a domain, a slash and a name, for example nvidia.com/gpu",
};

pub(crate) const INSTANCE_TYPE: Pattern = Pattern {
    regex: r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$",
    message: "write an EC2 instance type, for example g4dn.xlarge",
};

/// An instance type, or all types of a family.
pub(crate) const INSTANCE_TYPES: Pattern = Pattern {
    regex: r"^[a-z][a-z0-9-]*\.([a-z0-9-]+|\*)$",
    message: "write an EC2 instance type or a whole family, for example g5.xlarge or g5.*",
};

pub(crate) const IPV4_NETWORK: Pattern = Pattern {
    regex: r"^([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}$",
    message: "write an IPv4 network, for example 203.0.113.0/24",
};

/// An OpenSSH public key that fits into one tag of an instance.
pub(crate) const LEASE_KEY: Pattern = Pattern {
    regex: r"^(ssh-ed25519|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]+={0,2}$",
    message: "write an OpenSSH public key without its comment and not of type RSA, for \
              example ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
};

pub(crate) const MACHINE_IMAGE: Pattern = Pattern {
    regex: r"^ami-[0-9a-f]{8,17}$",
    message: "write the id of a machine image (AMI), for example ami-0123456789abcdef0",
};

/// Memory in mebibytes or gibibytes.
pub(crate) const MEMORY: Pattern = Pattern {
    regex: r"^[1-9][0-9]{0,6}(Mi|Gi)$",
    message: "write a whole number and Mi or Gi, for example 512Mi or 16Gi",
};

pub(crate) const MOUNT_PATH: Pattern = Pattern {
    regex: r"^/[A-Za-z0-9._/-]+$",
    message: "write an absolute path of letters, digits and the characters ._/- only, for \
              example /data",
};

pub(crate) const NAMESPACE_PREFIX: Pattern = Pattern {
    regex: r"^[a-z0-9][a-z0-9-]*$",
    message: "write lower-case letters, digits and -, with a letter or digit first, for \
              example dev-",
};

pub(crate) const OPENCV_VERSION: Pattern = Pattern {
    regex: r"^[0-9]+\.[0-9]+\.[0-9]+(\.[0-9]+)?$",
    message: "write an OpenCV release of three or four numbers, for example 4.8.0",
};

pub(crate) const OWNER: Pattern = Pattern {
    regex: r"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$",
    message: "write lower-case letters, digits, ., _ and -, with a letter or digit first \
              and last, for example alice; of an e-mail address, write the part before @",
};

pub(crate) const PACKAGE_INDEX: Pattern = Pattern {
    regex: r"^https?://[!-~]+$",
    message: "write a URL, for example https://pypi.example.org/simple",
};

/// An OpenSSH public key without comment. A key of type RSA takes several tags of an instance.
pub(crate) const KMS_KEY: Pattern = Pattern {
    regex: r"^(arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/|alias/)?[A-Za-z0-9/_-]+$",
    message: "write the id, the ARN or the alias of a key of AWS KMS, for example \
              alias/gpu-volumes",
};

pub(crate) const POOL_KEY: Pattern = Pattern {
    regex: r"^(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com) [A-Za-z0-9+/]+={0,2}$",
    message: "write an OpenSSH public key without its comment, for example ssh-ed25519 \
              AAAAC3NzaC1lZDI1NTE5",
};

/// An OpenSSH public key: type, base64 data and an optional comment.
pub(crate) const PUBLIC_KEY: Pattern = Pattern {
    regex: r"^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]+={0,2}( [A-Za-z0-9@._+-]+)?$",
    message: "write an OpenSSH public key with at most one word after it, for example \
              ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 alice@laptop",
};

pub(crate) const PYTORCH_VERSION: Pattern = Pattern {
    regex: r"^[0-9]+\.[0-9]+\.[0-9]+$",
    message: "write a PyTorch release of three numbers, for example 2.12.1",
};

pub(crate) const REGION: Pattern = Pattern {
    regex: r"^[a-z]{2}(-[a-z]+)+-[0-9]$",
    message: "write an AWS region, for example us-east-1",
};

pub(crate) const ROLE_ARN: Pattern = Pattern {
    regex: r"^arn:[a-z-]+:iam::[0-9]{12}:role/.+$",
    message: "write the ARN of an IAM role, for example \
              arn:aws:iam::123456789012:role/gpu-workspaces",
};

pub(crate) const SECURITY_GROUP: Pattern = Pattern {
    regex: r"^sg-[0-9a-f]{8,17}$",
    message: "write the id of a security group, for example sg-0123456789abcdef0",
};

/// The name of a role's session: the characters that AWS allows.
pub(crate) const SESSION_NAME: Pattern = Pattern {
    regex: r"^[\w+=,.@-]{2,64}$",
    message: "write 2 to 64 letters, digits and characters of _+=,.@- only, for example \
              gpu-workspaces",
};

pub(crate) const SHA256: Pattern = Pattern {
    regex: r"^[0-9a-f]{64}$",
    message: "write a SHA-256 as 64 digits and letters from a to f, as sha256sum prints it",
};

pub(crate) const SUB_PATH: Pattern = Pattern {
    regex: r"^[A-Za-z0-9][A-Za-z0-9._/-]*$",
    message: "write a relative path of letters, digits and the characters ._/- only, for \
              example data/images",
};

pub(crate) const TAINT_EFFECT: Pattern = Pattern {
    regex: r"^(NoSchedule|PreferNoSchedule|NoExecute)$",
    message: "write NoSchedule, PreferNoSchedule or NoExecute",
};

/// A duration, or no end.
pub(crate) const TIMER: Pattern = Pattern {
    regex: r"^(Never|([0-9]{1,5}[smhd]){1,4})$",
    message: "write a duration in days, hours, minutes or seconds, for example 90m or 1d12h, or Never",
};

pub(crate) const TOLERATION_OPERATOR: Pattern = Pattern {
    regex: r"^(Exists|Equal)$",
    message: "write Exists or Equal",
};

/// A size of a volume.
pub(crate) const VOLUME_SIZE: Pattern = Pattern {
    regex: r"^[1-9][0-9]{0,4}(Gi|Ti)$",
    message: "write a whole number and Gi or Ti, for example 100Gi",
};
