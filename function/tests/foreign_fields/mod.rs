//! Adds fields that no version of the protocol has to every message of a request.

use crate::dice::Dice;

/// The types of messages in a request, after Crossplane's `run_function.proto` and protobuf's
/// `struct.proto`.
#[derive(Clone, Copy)]
enum Of {
    Request,
    State,
    Resource,
    Resources,
    /// An entry of a map whose values are messages of this type.
    Entry(&'static Of),
    Struct,
    Value,
    List,
    /// A message that contains no further messages.
    Leaf,
}

impl Of {
    /// The type of the message in a field. `None` for a scalar and for an unknown field.
    fn field(self, number: u64) -> Option<Self> {
        Some(match (self, number) {
            (Self::Request, 1) => Self::Leaf,
            (Self::Request, 2 | 3) => Self::State,
            (Self::Request, 4 | 5) | (Self::Resource, 1) | (Self::Value, 5) => Self::Struct,
            (Self::Request, 6 | 8) => Self::Entry(&Self::Resources),
            (Self::State | Self::Resources, 1) => Self::Resource,
            (Self::State, 2) => Self::Entry(&Self::Resource),
            (Self::Entry(value), 2) => *value,
            (Self::Struct, 1) => Self::Entry(&Self::Value),
            (Self::Value, 6) => Self::List,
            (Self::List, 1) => Self::Value,
            _ => return None,
        })
    }
}

/// Returns the request with unknown fields before, between and behind the known ones.
pub fn add(request: &[u8], dice: &mut Dice) -> Vec<u8> {
    message(Of::Request, request, dice)
}

fn message(of: Of, mut encoded: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut whole = Vec::new();
    while !encoded.is_empty() {
        unknown(&mut whole, dice);
        let (key, rest) = varint(encoded);
        let (kind, number) = (key & 7, key >> 3);
        let length = match kind {
            0 => rest.len() - varint(rest).1.len(),
            1 => 8,
            2 => {
                let (length, content) = varint(rest);
                let (content, left) = content.split_at(usize::try_from(length).unwrap());
                let content = match of.field(number) {
                    Some(inner) => message(inner, content, dice),
                    None => content.to_vec(),
                };
                write(&mut whole, key);
                write(&mut whole, content.len() as u64);
                whole.extend(content);
                encoded = left;
                continue;
            }
            other => panic!("prost writes no wire type {other}"),
        };
        let (content, left) = rest.split_at(length);
        write(&mut whole, key);
        whole.extend(content);
        encoded = left;
    }
    unknown(&mut whole, dice);
    whole
}

/// In a quarter of the calls, writes a field with any wire type and a high number.
fn unknown(whole: &mut Vec<u8>, dice: &mut Dice) {
    if !dice.percent(25) {
        return;
    }
    let number = *dice.pick(&[15, 16, 1000, (1 << 29) - 1]);
    let key = |kind: u64| number << 3 | kind;
    match dice.below(5) {
        0 => {
            write(whole, key(0));
            write(whole, *dice.pick(&[0, 1, 300, u64::MAX]));
        }
        1 => {
            write(whole, key(1));
            whole.extend(f64::to_le_bytes(0.5));
        }
        2 => {
            write(whole, key(2));
            let text = *dice.pick(&["", "a", "a text that is no message"]);
            write(whole, text.len() as u64);
            whole.extend(text.as_bytes());
        }
        3 => {
            // A group may hold fields and further groups.
            write(whole, key(3));
            unknown(whole, dice);
            unknown(whole, dice);
            write(whole, key(4));
        }
        _ => {
            write(whole, key(5));
            whole.extend(u32::to_le_bytes(7));
        }
    }
}

fn varint(bytes: &[u8]) -> (u64, &[u8]) {
    let length = bytes.iter().position(|byte| *byte < 0x80).unwrap() + 1;
    let parts = bytes[..length].iter().enumerate();
    let value = parts
        .map(|(n, byte)| u64::from(byte & 0x7f) << (7 * n))
        .sum();
    (value, &bytes[length..])
}

fn write(whole: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        whole.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    whole.push(value.to_le_bytes()[0]);
}
