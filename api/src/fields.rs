//! How fields are read, and conditions under which a field is not serialized.

use serde::{Deserialize, Deserializer};

/// Whether a value equals its default, so that the field is left out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads a list without spare room. The provider keeps the status of every pool, and a list that
/// serde reads has room for up to twice its items.
pub(crate) fn exact<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut list = Vec::deserialize(from)?;
    list.shrink_to_fit();
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_kept_for_every_pool_takes_no_room_for_items_that_it_lacks() {
        #[derive(Deserialize)]
        struct Kept {
            #[serde(deserialize_with = "exact")]
            items: Vec<u64>,
        }
        let kept: Kept = serde_json::from_str(r#"{"items": [1, 2, 3, 4, 5]}"#).unwrap();
        assert_eq!(kept.items.capacity(), 5);
    }
}
