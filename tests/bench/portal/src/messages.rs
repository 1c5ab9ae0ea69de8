//! Server-sent events as they arrive (HTML, "Server-sent events"). The portal ends lines by LF.

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) event: String,
    /// The version of the change; none for messages without one.
    pub(crate) version: Option<u64>,
    pub(crate) data: String,
}

/// The bytes that have arrived and are no whole message yet.
#[derive(Debug, Default)]
pub(crate) struct Messages(Vec<u8>);

impl Messages {
    /// Takes bytes, and returns the messages that are whole now. Comments are none.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Message> {
        self.0.extend_from_slice(bytes);
        let mut whole = Vec::new();
        while let Some(end) = self.0.windows(2).position(|two| two == b"\n\n") {
            let rest = self.0.split_off(end + 2);
            let block = std::mem::replace(&mut self.0, rest);
            whole.extend(message(&String::from_utf8_lossy(&block)));
        }
        whole
    }
}

fn message(block: &str) -> Option<Message> {
    let mut message = Message::default();
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("event", event)) => event.clone_into(&mut message.event),
            Some(("id", id)) => message.version = id.parse().ok(),
            Some(("data", data)) => data.clone_into(&mut message.data),
            _ => {}
        }
    }
    (!message.event.is_empty()).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_whole_wherever_the_network_cuts_it() {
        let text = b"id: 7\nevent: put\ndata: {\"name\":\"a: b\"}\n\n: keep-alive\n\nevent: reset\ndata: {}\n\n";
        let put = Message {
            event: "put".to_owned(),
            version: Some(7),
            data: "{\"name\":\"a: b\"}".to_owned(),
        };
        let reset = Message {
            event: "reset".to_owned(),
            version: None,
            data: "{}".to_owned(),
        };
        for cut in 0..text.len() {
            let (start, end) = text.split_at(cut);
            let mut messages = Messages::default();
            let mut found = messages.take(start);
            found.extend(messages.take(end));
            assert_eq!(found, [put.clone(), reset.clone()], "cut at {cut}");
        }
    }
}
