//! Composition resource names, by which Crossplane tells composed resources apart.
//!
//! Crossplane never deletes a resource whose kind changes under its name, so a name
//! belongs to one kind of composed resource for ever. Names are RFC 1123 labels, since
//! Crossplane puts them into the names of objects. What cannot change in EC2 is part of
//! the name: another value is another resource.

use sha2::{Digest, Sha256};

/// A name by the hash of what the resource is made of.
pub fn hashed<'a>(prefix: &str, parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // Lengths keep ("ab", "c") apart from ("a", "bc").
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let first = hash.finalize().into_iter().take(4);
    let number = first.fold(0_u32, |number, byte| (number << 8) | u32::from(byte));
    format!("{prefix}{number:08x}")
}

/// Whether [`hashed`] makes names like this one with the prefix.
pub fn is_hashed(prefix: &str, name: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.strip_prefix(prefix)
        .is_some_and(|hash| hash.len() == 8 && hash.bytes().all(is_hex))
}

/// The number behind the prefix, where the name is written as it would be here.
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
