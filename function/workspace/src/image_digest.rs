//! Digests in references of container images.

/// Whether a reference names an image by digest. The digest decides which image a node runs,
/// whatever tag is before it.
pub fn is_in(image: &str) -> bool {
    image.split_once("@sha256:").is_some_and(|(name, digest)| {
        !name.is_empty()
            && digest.len() == 64
            && digest
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_looks_like_a_digest_is_none() {
        let digest = "0a".repeat(32);
        assert!(is_in(&format!("registry.test:5000/a@sha256:{digest}")));
        assert!(is_in(&format!("registry.test/a:v1@sha256:{digest}")));
        for image in [
            "registry.test/a:v1",
            "registry.test/a@sha256:0a",
            "registry.test/a:sha256-0a",
            &format!("@sha256:{digest}"),
            &format!("a@sha256:{}", digest.to_uppercase()),
            &format!("a@sha256:{digest}0"),
            &format!("a@sha512:{digest}"),
        ] {
            assert!(!is_in(image), "{image}");
        }
    }
}
