//! Patterns of fields that several types have, and conditions under which a field is not serialized.

/// The pattern of an AWS region, for example `us-east-1`.
pub(crate) const REGION: &str = r"^[a-z]{2}(-[a-z]+)+-[0-9]$";

/// Whether a value equals its default, so that the field is left out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
