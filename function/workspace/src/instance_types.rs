//! Patterns of EC2 instance types in policies: an exact name, or a family with `.*`.

/// Whether a pattern allows a type. For another pattern: whether it allows every type of it.
pub fn allows(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix(".*") {
        Some(family) => name.split_once('.').is_some_and(|(of, _)| of == family),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_allows_its_sizes_and_no_other_family() {
        assert!(allows("g5.*", "g5.xlarge"));
        assert!(allows("g5.*", "g5.*"));
        assert!(allows("g5.xlarge", "g5.xlarge"));
        assert!(!allows("g5.*", "g5g.xlarge"));
        assert!(!allows("g5.xlarge", "g5.2xlarge"));
        assert!(!allows("g5.xlarge", "g5.*"));
    }
}
