//! Protobuf messages, read field by field where they lie.
//!
//! Reading into the SDK's types builds a hash map per JSON object and a text per
//! field, thousands for one request, and reading JSON out of them copies them: it
//! took most of a call's time. A decision looks at a hundred fields.

/// Bytes that are no message, or one in which a field comes twice, which protobuf merges:
/// that is left to prost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A field's content.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A number, a truth value, an enum.
    Varint(u64),
    /// A double.
    Double(f64),
    /// A text, a message, bytes.
    Bytes(&'a [u8]),
    /// 32 bits or a group: no field of the protocol.
    Other,
}

/// The largest number of a field, by protobuf's encoding.
const LARGEST: u64 = (1 << 29) - 1;
/// How deep groups may nest, as in prost.
const GROUPS: u32 = 100;

/// The fields of a message that have not been read yet.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields of a message.
    pub fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// The next field: its number and content.
    ///
    /// # Errors
    ///
    /// What follows is no field.
    #[inline]
    pub fn next_field(&mut self) -> Result<Option<(u64, Content<'a>)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.key()?;
        Ok(Some((number, self.content(number, kind, GROUPS)?)))
    }

    /// The content of a field, of which groups may nest so many levels more.
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

    /// A field's number and wire type.
    #[inline]
    fn key(&mut self) -> Result<(u64, u64), Malformed> {
        let key = self.varint()?;
        match key >> 3 {
            number @ 1..=LARGEST => Ok((number, key & 7)),
            _ => Err(Malformed),
        }
    }

    /// Passes over a group, which ends with its own number.
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
                // More than 64 bits.
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

/// An entry of a map whose keys are texts: its key and its value's message.
///
/// # Errors
///
/// The message is no such entry.
#[inline]
pub fn entry(message: &[u8]) -> Result<(&str, &[u8]), Malformed> {
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

/// A text.
///
/// # Errors
///
/// It is not UTF-8.
#[inline]
pub fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed)
}

/// Notes a field that may come once.
///
/// # Errors
///
/// It came before.
#[inline]
pub fn once<T>(field: &mut Option<T>, value: T) -> Result<(), Malformed> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(Malformed),
    }
}
