//! A session at rest: only the cookie in the person's browser decrypts it.
//!
//! The cookie is a random key. The name of the Secret is its hash, and the contents are encrypted with a
//! key that is derived from it. So nobody gets a session by reading Secrets.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The length of a cookie's key in bytes.
const KEY: usize = 32;

/// The key of a session, which only the person's browser has.
pub(crate) struct Cookie([u8; KEY]);

impl Cookie {
    /// A new one; none if the system has no random numbers.
    pub(crate) fn random() -> Option<Self> {
        let mut key = [0; KEY];
        rand::fill(&mut key).ok()?;
        Some(Self(key))
    }

    /// The one that a browser sent.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let key = URL_SAFE_NO_PAD.decode(text).ok()?;
        Some(Self(key.try_into().ok()?))
    }

    /// The value for the browser.
    pub(crate) fn value(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// The name of the Secret: 32 hexadecimal digits of the hash.
    pub(crate) fn name(&self) -> String {
        let hash = digest(&SHA256, &self.0);
        let (start, _) = hash.as_ref().split_at(16);
        format!("gpu-portal-session-{}", hex::encode(start))
    }

    /// The token that the portal's own page sends with each write.
    pub(crate) fn token(&self) -> Option<String> {
        let mut token = [0; KEY];
        self.derive(b"xsrf", &mut token)?;
        Some(URL_SAFE_NO_PAD.encode(token))
    }

    /// Encrypts the contents of the session.
    pub(crate) fn seal(&self, contents: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = contents.to_vec();
        let aad = Aad::from(self.name());
        let nonce = self
            .encryption()?
            .seal_in_place_append_tag(aad, &mut sealed)
            .ok()?;
        sealed.splice(0..0, *nonce.as_ref());
        Some(sealed)
    }

    /// Decrypts the contents of the session; none if they are not what was sealed.
    pub(crate) fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut contents = rest.to_vec();
        let aad = Aad::from(self.name());
        let key = self.encryption()?;
        let length = key.open_in_place(nonce, aad, &mut contents).ok()?.len();
        contents.truncate(length);
        Some(contents)
    }

    fn encryption(&self) -> Option<RandomizedNonceKey> {
        let mut key = [0; KEY];
        self.derive(b"contents", &mut key)?;
        RandomizedNonceKey::new(&AES_256_GCM, &key).ok()
    }

    fn derive(&self, purpose: &[u8], key: &mut [u8; KEY]) -> Option<()> {
        let extracted = Salt::new(HKDF_SHA256, b"gpu-portal").extract(&self.0);
        let purpose = [purpose];
        let expanded = extracted.expand(&purpose, HKDF_SHA256).ok()?;
        expanded.fill(key).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_cookie_opens_a_session() {
        let cookie = Cookie::random().unwrap();
        let sealed = cookie.seal(b"alice").unwrap();
        assert!(!sealed.windows(5).any(|window| window == b"alice"));
        let same = Cookie::parse(&cookie.value()).unwrap();
        assert_eq!(same.open(&sealed).unwrap(), b"alice");
        assert_eq!(Cookie::random().unwrap().open(&sealed), None);
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert_eq!(cookie.open(&changed), None, "byte {place}");
        }
        assert_eq!(cookie.open(&sealed[..NONCE_LEN]), None);
        assert_eq!(cookie.open(b""), None);
    }

    #[test]
    fn the_name_and_the_token_do_not_tell_the_cookie_or_each_other() {
        let cookie = Cookie::random().unwrap();
        let (name, token) = (cookie.name(), cookie.token().unwrap());
        assert_ne!(token, cookie.value());
        assert!(!name.contains(&cookie.value()));
        assert_eq!(
            Cookie::parse(&token)
                .unwrap()
                .open(&cookie.seal(b"x").unwrap()),
            None
        );
        let other = Cookie::random().unwrap();
        assert_ne!(other.name(), name);
        assert_ne!(other.token().unwrap(), token);
    }

    #[test]
    fn what_is_no_cookie_is_refused() {
        for text in ["", "a", "%%%", &"a".repeat(42), &"a".repeat(44), "é"] {
            assert!(Cookie::parse(text).is_none(), "{text}");
        }
    }
}
