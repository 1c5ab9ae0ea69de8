//! Composition resource names, by which Crossplane identifies composed resources.
//!
//! If the kind under a name changes, Crossplane never deletes the old resource. A name therefore
//! always belongs to the same kind. Names are RFC 1123 labels, because Crossplane uses them in the
//! names of objects. Values that EC2 cannot change are part of the name, so another value gives
//! another resource.

use sha2::{Digest, Sha256};

/// A name that consists of `prefix` and a hash of the parts. Its 32 bits are enough for parts that
/// no developer can choose freely.
pub fn hashed<'a>(prefix: &str, parts: impl IntoIterator<Item = &'a str>) -> String {
    format!("{prefix}{:08x}", hash(parts) >> 32)
}

/// A name that consists of `prefix` and a hash of the parts with 64 bits, for parts that a
/// developer can choose. A second text with the same 32 bits takes minutes to find.
pub fn hashed_wide<'a>(prefix: &str, parts: impl IntoIterator<Item = &'a str>) -> String {
    format!("{prefix}{:016x}", hash(parts))
}

fn hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        // The lengths distinguish ("ab", "c") from ("a", "bc").
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let first = hash.finalize().into_iter().take(8);
    first.fold(0, |number, byte| (number << 8) | u64::from(byte))
}

/// Whether a name has the prefix and a hash as [`hashed`] writes it.
pub fn is_hashed(prefix: &str, name: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.strip_prefix(prefix)
        .is_some_and(|hash| hash.len() == 8 && hash.bytes().all(is_hex))
}

/// The number after the prefix; none unless the number is written without signs and leading zeros.
pub fn number(prefix: &str, name: &str) -> Option<i32> {
    let number: i32 = name.strip_prefix(prefix)?.parse().ok()?;
    (number >= 0 && format!("{prefix}{number}") == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_unambiguous_across_parts() {
        let one = hashed("", ["ab", "c"]);
        assert_ne!(one, hashed("", ["a", "bc"]));
        assert_eq!(one, hashed("", ["ab", "c"]));
    }
}
