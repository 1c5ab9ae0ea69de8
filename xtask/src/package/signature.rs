//! Signatures of packages, in the format that Crossplane checks: cosign's of before version 3.
//!
//! cosign signs a text that names the image's digest ("simple signing"). Crossplane 2.4 also wants
//! a record of the signature in a transparency log, signed by the log. It takes the log's key from
//! its configuration, and asks no log. So the signing key can sign the record too: then
//! `SIGSTORE_REKOR_PUBLIC_KEY` of Crossplane is a file with the same public key, and nothing has to
//! be published. Such a record proves nothing beyond the signature.
//!
//! Sources: `verifyInternal` and `VerifyBundle` in `pkg/cosign/verify.go` of cosign v3.0.6, which
//! `pkg/xpkg/signature` of crossplane-runtime v2.4.0 calls.

use std::error::Error;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Map, Value, json};

use super::authorities::block;
use super::image::sha256;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The media type of a signed text in a registry.
pub(super) const MEDIA_TYPE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const RECORD: &str = "dev.sigstore.cosign/bundle";

/// A private key. It has no `Debug`, so that no message contains it.
pub(super) struct SigningKey(EcdsaKeyPair);

/// A signed text, and the annotations with its signature.
pub(super) struct Signed {
    pub(super) text: String,
    pub(super) annotations: Map<String, Value>,
}

impl SigningKey {
    /// Reads an ECDSA key of the curve P-256, in PEM. An error does not quote the text.
    pub(super) fn read(pem: &[u8]) -> Outcome<Self> {
        const WANTED: &str = "an ECDSA key of the curve P-256 in PEM, without a password";
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|_| format!("not {WANTED}"))?;
        let pair =
            EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, key.secret_der());
        Ok(Self(pair.map_err(|_| format!("not {WANTED}"))?))
    }

    /// Signs the manifest with a digest such as `sha256:…` of a repository.
    pub(super) fn sign(&self, repository: &str, digest: &str, at: Timestamp) -> Outcome<Signed> {
        let text = json!({
            "critical": {
                "identity": {"docker-reference": repository},
                "image": {"docker-manifest-digest": digest},
                "type": "cosign container image signature",
            },
            "optional": null,
        })
        .to_string();
        let signature = self.signature(&text)?;
        let record = self.record(&text, &signature, at)?;
        let annotations = Map::from_iter([
            (SIGNATURE.to_owned(), json!(signature)),
            (RECORD.to_owned(), json!(record.to_string())),
        ]);
        Ok(Signed { text, annotations })
    }

    /// The record of a signature, as the log Rekor returns it.
    fn record(&self, text: &str, signature: &str, at: Timestamp) -> Outcome<Value> {
        let public_key = self.public_key()?;
        let entry = json!({
            "apiVersion": "0.0.1",
            "kind": "hashedrekord",
            "spec": {
                "data": {"hash": {"algorithm": "sha256", "value": sha256(text.as_bytes())}},
                "signature": {
                    "content": signature,
                    "publicKey": {
                        "content": STANDARD.encode(block("PUBLIC KEY", public_key.as_ref())),
                    },
                },
            },
        });
        // The log signs the canonical form (RFC 8785): without spaces, sorted by key.
        let payload = json!({
            "body": STANDARD.encode(entry.to_string()),
            "integratedTime": at.as_second(),
            "logID": sha256(public_key.as_ref()),
            "logIndex": 0,
        });
        let signed = self.signature(&payload.to_string())?;
        Ok(json!({"SignedEntryTimestamp": signed, "Payload": payload}))
    }

    fn public_key(&self) -> Outcome<PublicKeyX509Der<'_>> {
        let key = self.0.public_key().as_der();
        Ok(key.map_err(|_| "the public key has no encoding")?)
    }

    /// The signature of a text, in base64.
    fn signature(&self, text: &str) -> Outcome<String> {
        let signature = self.0.sign(&SystemRandom::new(), text.as_bytes());
        let signature = signature.map_err(|_| "the key signs nothing")?;
        Ok(STANDARD.encode(signature.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(pem: &[u8]) -> String {
        SigningKey::read(pem).err().unwrap().to_string()
    }

    #[test]
    fn a_key_that_cannot_be_read_is_not_quoted() {
        let curve = &aws_lc_rs::signature::ECDSA_P384_SHA384_ASN1_SIGNING;
        let other = EcdsaKeyPair::generate(curve).unwrap().to_pkcs8v1().unwrap();
        let other = block("PRIVATE KEY", other.as_ref());
        let texts = [
            "c2VjcmV0",
            "-----BEGIN secret",
            "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nc2VjcmV0\n\
             -----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n",
            &other,
        ];
        for text in texts {
            let said = refusal(text.as_bytes());
            assert!(said.contains("curve P-256"), "{said}");
            assert!(!said.contains("secret") && !said.contains("c2VjcmV0"));
        }
    }
}
