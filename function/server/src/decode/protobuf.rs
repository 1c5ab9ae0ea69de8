//! Reads protobuf messages field by field, without copies.
//!
//! The SDK's types need a hash map for each JSON object and a string for each field, thousands for
//! one request. To read JSON from them copies them again. This took most of the time of a call,
//! although a decision reads only about a hundred fields.

/// The bytes are not a message, or a field that must occur once occurs twice. protobuf merges such
/// fields, which is left to prost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The content of a field.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// An integer, a boolean or an enum.
    Varint(u64),
    /// A double.
    Double(f64),
    /// A string, a message or bytes.
    Bytes(&'a [u8]),
    /// A 32-bit value or a group. The protocol has no such fields.
    Other,
}

/// The largest field number in protobuf's encoding.
const LARGEST: u64 = (1 << 29) - 1;
/// The key of field 1, if it is a text or a message.
const FIRST: u8 = 0x0a;
/// The deepest nesting of groups, as in prost.
const GROUPS: u32 = 100;

/// The remaining fields of a message.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields of a message.
    pub fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// Reads the number and the content of the next field; none at the end of the message.
    ///
    /// # Errors
    ///
    /// The next bytes are not a field.
    #[inline]
    pub fn next_field(&mut self) -> Result<Option<(u64, Content<'a>)>, Malformed> {
        // Almost every field of JSON is a text or a message.
        if let [key @ 0x08..0x80, rest @ ..] = self.0
            && key & 7 == 2
            && let Some((content, rest)) = delimited(rest)
        {
            self.0 = rest;
            return Ok(Some((u64::from(key >> 3), Content::Bytes(content))));
        }
        self.any_field()
    }

    /// Reads the next message in field 1: an entry of a map, or an item of a list.
    ///
    /// # Errors
    ///
    /// The next bytes are not a field, or field 1 is no message.
    #[inline]
    pub fn next_message(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        if let [FIRST, rest @ ..] = self.0
            && let Some((content, rest)) = delimited(rest)
        {
            self.0 = rest;
            return Ok(Some(content));
        }
        self.any_message()
    }

    fn any_message(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        while let Some(field) = self.any_field()? {
            match field {
                (1, Content::Bytes(bytes)) => return Ok(Some(bytes)),
                (1, _) => return Err(Malformed),
                _ => {}
            }
        }
        Ok(None)
    }

    /// How many messages in field 1 follow each other; more may come after other fields.
    #[inline]
    pub fn messages(mut self) -> usize {
        let mut count = 0;
        while let [FIRST, rest @ ..] = self.0
            && let Some((_, rest)) = delimited(rest)
        {
            self.0 = rest;
            count += 1;
        }
        count
    }

    fn any_field(&mut self) -> Result<Option<(u64, Content<'a>)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.key()?;
        Ok(Some((number, self.content(number, kind, GROUPS)?)))
    }

    /// Reads the content of a field. Groups may nest `levels` deeper.
    #[inline]
    fn content(&mut self, number: u64, kind: u64, levels: u32) -> Result<Content<'a>, Malformed> {
        Ok(match kind {
            0 => Content::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?.try_into().map_err(|_| Malformed)?;
                Content::Double(f64::from_le_bytes(bytes))
            }
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                Content::Bytes(self.take(length)?)
            }
            3 => {
                self.skip_group(number, levels)?;
                Content::Other
            }
            5 => {
                self.take(4)?;
                Content::Other
            }
            _ => return Err(Malformed),
        })
    }

    /// Reads the number and the wire type of a field.
    #[inline]
    fn key(&mut self) -> Result<(u64, u64), Malformed> {
        let key = self.varint()?;
        match key >> 3 {
            number @ 1..=LARGEST => Ok((number, key & 7)),
            _ => Err(Malformed),
        }
    }

    /// Skips a group. It ends with an end tag of the same number.
    fn skip_group(&mut self, group: u64, levels: u32) -> Result<(), Malformed> {
        let inner = levels.checked_sub(1).ok_or(Malformed)?;
        loop {
            match self.key()? {
                (number, 4) if number == group => return Ok(()),
                (number, kind) => self.content(number, kind, inner)?,
            };
        }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        if let [first @ ..0x80, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(u64::from(*first));
        }
        let mut value = 0;
        for (n, byte) in self.0.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * n);
            if n == 9 && *byte > 1 {
                // The number has more than 64 bits.
                return Err(Malformed);
            }
            if *byte < 0x80 {
                self.0 = &self.0[n + 1..];
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = tail;
        Ok(head)
    }
}

/// The content whose length the first bytes say, and the bytes after it. None if the bytes are too
/// few, or the length needs more than two bytes, which [`Fields::content`] reads.
#[inline]
fn delimited(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    match bytes {
        [length @ ..0x80, rest @ ..] => rest.split_at_checked(usize::from(*length)),
        [low, high @ ..0x80, rest @ ..] => {
            rest.split_at_checked(usize::from(low & 0x7f) | usize::from(*high) << 7)
        }
        _ => None,
    }
}

/// The only field of a message, if it is a text or a message: its number and its content.
#[inline]
pub fn only(message: &[u8]) -> Option<(u64, &[u8])> {
    let [key @ 0x08..0x80, rest @ ..] = message else {
        return None;
    };
    match delimited(rest) {
        Some((content, [])) if key & 7 == 2 => Some((u64::from(key >> 3), content)),
        _ => None,
    }
}

/// The key and the value of an entry that has both in this order, as encoders write it.
#[inline]
fn usual_entry(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let [FIRST, rest @ ..] = message else {
        return None;
    };
    let (key, rest) = delimited(rest)?;
    let [0x12, rest @ ..] = rest else {
        return None;
    };
    match delimited(rest)? {
        (value, []) => Some((key, value)),
        _ => None,
    }
}

/// Reads an entry of a map with string keys: its key, and the bytes of its value.
///
/// # Errors
///
/// The message is not such an entry.
#[inline]
pub fn entry(message: &[u8]) -> Result<(&str, &[u8]), Malformed> {
    if let Some((key, value)) = usual_entry(message) {
        return Ok((text(key)?, value));
    }
    let (mut key, mut value) = (None, None);
    let mut fields = Fields::of(message);
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Content::Bytes(bytes)) => once(&mut key, text(bytes)?)?,
            (2, Content::Bytes(bytes)) => once(&mut value, bytes)?,
            (1 | 2, _) => return Err(Malformed),
            _ => {}
        }
    }
    Ok((key.unwrap_or_default(), value.unwrap_or_default()))
}

/// Reads a string.
///
/// # Errors
///
/// The bytes are not UTF-8.
#[inline]
pub fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed)
}

/// Stores a field that may occur only once.
///
/// # Errors
///
/// The field has occurred before.
#[inline]
pub fn once<T>(field: &mut Option<T>, value: T) -> Result<(), Malformed> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(Malformed),
    }
}
