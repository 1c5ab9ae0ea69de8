//! Text that a tenant's program wrote, in messages of the function.

/// The most characters of such a text.
const MOST: usize = 512;

/// The text in printable ASCII, 512 characters at most. Messages go into status, events and Argo
/// CD's pages, where control characters and long texts hide what the function says itself.
pub fn bounded(text: &str) -> String {
    let printable = |c: char| {
        if c == ' ' || c.is_ascii_graphic() {
            c
        } else {
            '?'
        }
    };
    let mut bounded: String = text.chars().take(MOST).map(printable).collect();
    if text.chars().nth(MOST).is_some() {
        bounded.truncate(MOST - 3);
        bounded.push_str("...");
    }
    bounded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_writes_no_long_or_hidden_text_into_a_message() {
        assert_eq!(bounded("CUDA out of memory"), "CUDA out of memory");
        assert_eq!(bounded("a\u{1b}[2Kb\u{202e}c\nd"), "a?[2Kb?c?d");
        let long = bounded(&"x".repeat(4096));
        assert_eq!(long.len(), 512);
        assert!(long.ends_with("xx..."), "{long}");
        assert_eq!(bounded(&"ü".repeat(512)), "?".repeat(512));
    }
}
