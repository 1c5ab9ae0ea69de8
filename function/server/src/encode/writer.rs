//! Writes protobuf messages from their end to their start.
//!
//! The length of a message is therefore known when its head is written, and no pass is needed to
//! measure it.

use std::collections::HashMap;

/// The wire types of protobuf's encoding.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    SixtyFourBit = 1,
    LengthDelimited = 2,
}

/// A buffer that is written from its end: `bytes[start..]` is already written.
pub struct Writer {
    bytes: Vec<u8>,
    start: usize,
}

impl AsRef<[u8]> for Writer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl Writer {
    /// An empty buffer. It grows if it needs more than `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            bytes: vec![0; capacity],
            start: capacity,
        }
    }

    fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    fn prepend(&mut self, bytes: &[u8]) {
        if self.start < bytes.len() {
            let mut larger = vec![0; (self.bytes.len() * 2).max(self.len() + bytes.len())];
            let start = larger.len() - self.len();
            larger[start..].copy_from_slice(self.as_ref());
            self.bytes = larger;
            self.start = start;
        }
        let end = self.start;
        self.start -= bytes.len();
        self.bytes[self.start..end].copy_from_slice(bytes);
    }

    #[inline]
    fn varint(&mut self, value: u64) {
        // Almost all numbers and lengths take one byte.
        match (u8::try_from(value), self.start.checked_sub(1)) {
            (Ok(byte @ ..0x80), Some(start)) => {
                self.start = start;
                self.bytes[start] = byte;
            }
            _ => self.long_varint(value),
        }
    }

    fn long_varint(&mut self, mut value: u64) {
        let mut bytes = [0; 10];
        let mut length = 0;
        loop {
            let seven = value.to_le_bytes()[0] & 0x7f;
            value >>= 7;
            let more = if value == 0 { 0 } else { 0x80 };
            bytes[length] = seven | more;
            length += 1;
            if value == 0 {
                return self.prepend(&bytes[..length]);
            }
        }
    }

    fn key(&mut self, field: u32, wire: Wire) {
        self.varint(u64::from(field << 3 | wire as u32));
    }

    /// A string, bytes, or an encoded message.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.prepend(bytes);
        self.varint(bytes.len() as u64);
        self.key(field, Wire::LengthDelimited);
    }

    /// A double, even if it is zero.
    pub fn double(&mut self, field: u32, value: f64) {
        self.prepend(&value.to_le_bytes());
        self.key(field, Wire::SixtyFourBit);
    }

    /// A signed number. protobuf requires ten bytes for a negative one.
    fn signed(&mut self, field: u32, value: i64) {
        self.varint(value.cast_unsigned());
        self.key(field, Wire::Varint);
    }

    /// A number without field presence: zero is not written.
    pub fn number(&mut self, field: u32, value: i64) {
        if value != 0 {
            self.signed(field, value);
        }
    }

    /// A number with field presence.
    pub fn optional_number(&mut self, field: u32, value: Option<i32>) {
        if let Some(value) = value {
            self.signed(field, i64::from(value));
        }
    }

    /// A string without field presence: an empty string is not written.
    pub fn text(&mut self, field: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    /// A string with field presence.
    pub fn optional_text(&mut self, field: u32, text: Option<&str>) {
        if let Some(text) = text {
            self.bytes(field, text.as_bytes());
        }
    }

    /// A message that `write` writes, from its last field to its first.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let behind = self.len();
        write(self);
        self.varint((self.len() - behind) as u64);
        self.key(field, Wire::LengthDelimited);
    }

    /// A message with field presence.
    pub fn optional<T>(&mut self, field: u32, message: Option<&T>, write: impl Fn(&mut Self, &T)) {
        if let Some(message) = message {
            self.message(field, |w| write(w, message));
        }
    }

    /// A list of messages.
    pub fn repeated<T>(&mut self, field: u32, messages: &[T], write: impl Fn(&mut Self, &T)) {
        for message in messages.iter().rev() {
            self.message(field, |w| write(w, message));
        }
    }

    /// A map of prost, with its entries in the order of their keys.
    pub fn map<T>(
        &mut self,
        field: u32,
        entries: &HashMap<String, T>,
        write: impl Fn(&mut Self, &T),
    ) {
        let mut entries: Vec<_> = entries.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        self.sorted(field, entries.into_iter(), write);
    }

    /// A map with its entries in the order of `entries`. Each entry is a message with the key (1)
    /// and the value (2), which `write` writes. Both are written even if they are empty, as in
    /// every implementation except prost.
    pub fn sorted<'a, T>(
        &mut self,
        field: u32,
        entries: impl DoubleEndedIterator<Item = (&'a String, T)>,
        write: impl Fn(&mut Self, T),
    ) {
        for (key, value) in entries.rev() {
            self.message(field, |w| {
                write(w, value);
                w.bytes(1, key.as_bytes());
            });
        }
    }
}
