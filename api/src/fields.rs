//! Patterns of fields that several types have, and conditions under which a field is not serialized.

/// The pattern of an AWS region, for example `us-east-1`.
pub(crate) const REGION: &str = r"^[a-z]{2}(-[a-z]+)+-[0-9]$";

/// The pattern of an IPv4 network, for example `10.0.0.0/8`.
pub(crate) const IPV4_NETWORK: &str = r"^([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}$";

/// Whether a value equals its default, so that the field is left out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
