//! Conditions under which a field is not serialized.

/// Whether a value equals its default, so that the field is left out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
