//! `Idempotency-Key`: a request that was sent twice makes one workspace.
//!
//! There is no store of keys. The claim itself has the digests of the key and of the body, so every replica knows
//! them, for as long as the claim exists.

use std::collections::BTreeMap;

use devctl_core::object::text;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::problem::Problem;

/// The annotation of a claim with the digests.
pub const ANNOTATION: &str = "platform.acme.io/portal-request";
/// The longest key, in bytes.
const LONGEST: usize = 255;
/// How much of a digest is kept, in bytes.
const KEPT: usize = 16;

/// A key, and the body that was sent with it, as digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    key: String,
    body: String,
}

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The claim was made by another request.
    Foreign,
    /// The claim was made by this request.
    Same,
    /// The claim was made with this key and another body.
    Reused,
}

impl Key {
    /// The key of a request.
    ///
    /// # Errors
    ///
    /// The key is empty or too long.
    pub fn new(key: &str, body: &Value) -> Result<Self, Problem> {
        if key.is_empty() || key.len() > LONGEST {
            let detail = format!("Idempotency-Key: must have 1 to {LONGEST} characters");
            return Err(Problem::new(400, "invalid", "The key is wrong", detail));
        }
        Ok(Self {
            key: digest(key),
            body: digest(&ordered(body).to_string()),
        })
    }

    /// The value of the annotation.
    pub fn annotation(&self) -> String {
        format!("{}.{}", self.key, self.body)
    }

    /// Some characters of the key's digest, for a name.
    pub fn suffix(&self) -> &str {
        &self.key[..12]
    }

    /// What a claim knows of the key.
    pub fn known(&self, claim: &Value) -> Known {
        let pointer = format!("/metadata/annotations/{}", ANNOTATION.replace('/', "~1"));
        let found = text(claim, &pointer).and_then(|found| found.split_once('.'));
        match found {
            Some((key, body)) if key == self.key && body == self.body => Known::Same,
            Some((key, _)) if key == self.key => Known::Reused,
            _ => Known::Foreign,
        }
    }

    /// The refusal of a key with another body.
    pub fn reused() -> Problem {
        let detail = "this Idempotency-Key was sent with another body: take a new key";
        Problem::new(422, "key-reused", "The key is used", detail)
    }
}

fn digest(text: &str) -> String {
    hex::encode(&Sha256::digest(text)[..KEPT])
}

/// The same value with the fields of each object sorted by name. Features of `serde_json` decide about the order
/// otherwise.
fn ordered(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<_, _> = fields.iter().collect();
            let fields = sorted.into_iter();
            fields
                .map(|(name, value)| (name.clone(), ordered(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(ordered).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_knows_the_request_that_made_it() {
        let key = |key: &str, name: &str| Key::new(key, &json!({"name": name})).unwrap();
        let made = key("k", "a");
        let claim = json!({"metadata": {"annotations": {ANNOTATION: made.annotation()}}});
        assert_eq!(key("k", "a").known(&claim), Known::Same);
        assert_eq!(key("k", "b").known(&claim), Known::Reused);
        assert_eq!(key("l", "a").known(&claim), Known::Foreign);
        assert_eq!(made.known(&json!({})), Known::Foreign);
    }

    #[test]
    fn the_order_of_fields_makes_no_other_body() {
        let one: Value = serde_json::from_str(r#"{"a": 1, "b": 2}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"b": 2, "a": 1}"#).unwrap();
        assert_eq!(Key::new("k", &one).unwrap(), Key::new("k", &other).unwrap());
    }

    #[test]
    fn a_key_has_a_length() {
        for wrong in [String::new(), "x".repeat(256)] {
            assert_eq!(Key::new(&wrong, &json!({})).unwrap_err().status, 400);
        }
    }
}
