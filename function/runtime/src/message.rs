//! The length of messages for people.

/// The longest message in characters. Values in claims and messages of providers may be as long as
/// etcd allows, and each message is written to several places.
const LONGEST: usize = 4096;

/// A message that is cut off after 4096 characters. Conditions and events have no longer ones.
pub fn bounded(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(LONGEST) {
        message.truncate(end);
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_off() {
        let message = bounded("ä".repeat(LONGEST + 1));
        assert_eq!(message, "ä".repeat(LONGEST) + "…");
        assert_eq!(bounded("ä".repeat(LONGEST)), "ä".repeat(LONGEST));
    }
}
