//! Certificates of OpenSSH (`PROTOCOL.certkeys`): those by which people log in here, and those by which the
//! bastion logs in to workspaces for them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use signature::Signer;
use ssh_encoding::Encode as _;
use ssh_key::certificate::{Builder, CertType, Certificate};
use ssh_key::private::Ed25519Keypair;
use ssh_key::{HashAlg, PrivateKey, Signature};

/// How long a certificate of the bastion is valid. A login takes seconds.
pub const LIFE_SECONDS: u64 = 120;
/// How far the clock of a workspace may be behind the bastion's.
const CLOCK_SECONDS: u64 = 60;
/// The longest name that an authority may give a certificate.
const LONGEST_ID: usize = 256;
/// The critical options that sshd knows (`sshd(8)`). It takes the command of the bastion's own line.
const OPTIONS: [&str; 2] = ["source-address", "verify-required"];

/// A certificate by which a person logs in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shown {
    /// The fingerprint of the authority's key: `SHA256:…`.
    pub authority: String,
    /// The name that the authority gave the certificate.
    pub id: String,
    /// The number that the authority gave the certificate.
    pub serial: u64,
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            authority,
            id,
            serial,
        } = self;
        write!(f, "certificate {id:?} {serial} of {authority}")
    }
}

/// Why a certificate opens no account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// It is none, or its signature is wrong.
    Unreadable,
    /// It is for hosts.
    HostCertificate,
    /// Its principals are not the account alone: there is none, another one, or more than one.
    Principals,
    /// Its time has not begun, or is over.
    Time,
    /// It has a critical option that the bastion does not know.
    Option,
    /// Its name is too long, or has characters that control a terminal.
    Id,
}

/// Reads the certificate that a client shows for an account, in base64. sshd checks before the login that
/// the platform trusts the authority. A certificate for several people would not say who logs in, so it
/// opens no account.
pub fn shown(blob: &str, user: &str, now: Timestamp) -> Result<Shown, Rejected> {
    let bytes = STANDARD.decode(blob).map_err(|_| Rejected::Unreadable)?;
    let certificate = Certificate::from_bytes(&bytes).map_err(|_| Rejected::Unreadable)?;
    if certificate.cert_type() != CertType::User {
        return Err(Rejected::HostCertificate);
    }
    if certificate.valid_principals() != [user] {
        return Err(Rejected::Principals);
    }
    let now = u64::try_from(now.as_second()).map_err(|_| Rejected::Time)?;
    if !(certificate.valid_after()..certificate.valid_before()).contains(&now) {
        return Err(Rejected::Time);
    }
    let mut options = certificate.critical_options().keys();
    if !options.all(|option| OPTIONS.contains(&option.as_str())) {
        return Err(Rejected::Option);
    }
    let id = certificate.key_id();
    if id.len() > LONGEST_ID || id.chars().any(char::is_control) {
        return Err(Rejected::Id);
    }
    Ok(Shown {
        authority: certificate
            .signature_key()
            .fingerprint(HashAlg::Sha256)
            .to_string(),
        id: id.to_owned(),
        serial: certificate.serial(),
    })
}

/// A key with a certificate, which lives in the memory of the broker.
pub struct Identity {
    key: Ed25519Keypair,
    /// The certificate, as the agent's protocol has it.
    pub certificate: Vec<u8>,
}

impl Identity {
    /// Makes a key and a certificate with which a person logs in to workspaces from now on, for two
    /// minutes. It allows a terminal and forwards nothing. `seed` and `nonce` are random.
    pub fn issue(
        authority: &PrivateKey,
        user: &str,
        id: &str,
        seed: &[u8; 32],
        nonce: &[u8; 32],
        now: Timestamp,
    ) -> Result<Self, ssh_key::Error> {
        let key = Ed25519Keypair::from_seed(seed);
        let now = u64::try_from(now.as_second()).map_err(|_| ssh_key::Error::Time)?;
        let after = now.saturating_sub(CLOCK_SECONDS);
        let before = now.saturating_add(LIFE_SECONDS);
        let mut builder = Builder::new(*nonce, key.public, after, before)?;
        builder
            .cert_type(CertType::User)?
            .key_id(id)?
            .valid_principal(user)?
            .extension("permit-pty", "")?;
        let certificate = builder.sign(authority)?.to_bytes()?;
        Ok(Self { key, certificate })
    }

    /// Signs what a client asks for, as the agent's protocol has it.
    pub fn sign(&self, data: &[u8]) -> Result<Vec<u8>, ssh_key::Error> {
        sign(&self.key, data)
    }
}

/// Signs with a key, as the agent's protocol has it.
pub fn sign(key: &impl Signer<Signature>, data: &[u8]) -> Result<Vec<u8>, ssh_key::Error> {
    let signature: Signature = key.try_sign(data)?;
    let mut encoded = Vec::new();
    signature.encode(&mut encoded)?;
    Ok(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn now() -> Timestamp {
        Timestamp::from_second(NOW).unwrap()
    }

    fn key(seed: u8) -> PrivateKey {
        PrivateKey::from(Ed25519Keypair::from_seed(&[seed; 32]))
    }

    /// A certificate for alice that opens her account, but for one change.
    fn made(change: impl FnOnce(&mut Builder)) -> String {
        let of = Ed25519Keypair::from_seed(&[2; 32]).public;
        let valid = u64::try_from(NOW).unwrap();
        made_within(of, valid, valid + 60, CertType::User, change)
    }

    fn made_within(
        of: ssh_key::public::Ed25519PublicKey,
        after: u64,
        before: u64,
        kind: CertType,
        change: impl FnOnce(&mut Builder),
    ) -> String {
        let mut builder = Builder::new([3; 32], of, after, before).unwrap();
        builder.cert_type(kind).unwrap().serial(7).unwrap();
        change(&mut builder);
        STANDARD.encode(builder.sign(&key(1)).unwrap().to_bytes().unwrap())
    }

    fn alice(builder: &mut Builder) {
        builder.valid_principal("alice").unwrap();
        builder.key_id("alice@idp").unwrap();
    }

    #[test]
    fn a_certificate_for_one_person_opens_the_account_of_that_person() {
        let blob = made(alice);
        let found = shown(&blob, "alice", now()).unwrap();
        let authority = key(1).fingerprint(HashAlg::Sha256).to_string();
        assert_eq!(
            found.to_string(),
            format!("certificate \"alice@idp\" 7 of {authority}")
        );
        assert_eq!(shown(&blob, "bob", now()), Err(Rejected::Principals));
    }

    #[test]
    fn every_other_certificate_opens_no_account() {
        let of = Ed25519Keypair::from_seed(&[2; 32]).public;
        let valid = u64::try_from(NOW).unwrap();
        let two = |builder: &mut Builder| {
            alice(builder);
            builder.valid_principal("bob").unwrap();
        };
        let nobody = |builder: &mut Builder| {
            builder.all_principals_valid().unwrap();
        };
        let with = |option: &'static str| {
            move |builder: &mut Builder| {
                alice(builder);
                builder.critical_option(option, "x").unwrap();
            }
        };
        let named = |id: String| {
            move |builder: &mut Builder| {
                builder.valid_principal("alice").unwrap();
                builder.key_id(id).unwrap();
            }
        };
        let within = |after, before| made_within(of, after, before, CertType::User, alice);
        let host = made_within(of, valid, valid + 60, CertType::Host, alice);
        let mut cut = made(alice);
        cut.truncate(cut.len() / 2 / 4 * 4);
        for (blob, why) in [
            (made(two), Rejected::Principals),
            (made(nobody), Rejected::Principals),
            (host, Rejected::HostCertificate),
            (within(valid - 60, valid), Rejected::Time),
            (within(valid + 1, valid + 60), Rejected::Time),
            (made(with("force-command")), Rejected::Option),
            (made(with("x@example.com")), Rejected::Option),
            (made(named("alice\n{}".into())), Rejected::Id),
            (made(named("a\u{1b}[2J".into())), Rejected::Id),
            (made(named("a".repeat(LONGEST_ID + 1))), Rejected::Id),
            (cut, Rejected::Unreadable),
            ("AAAA".into(), Rejected::Unreadable),
            ("not base64".into(), Rejected::Unreadable),
        ] {
            assert_eq!(shown(&blob, "alice", now()), Err(why), "{blob}");
        }
        for option in OPTIONS {
            assert!(shown(&made(with(option)), "alice", now()).is_ok());
        }
    }

    #[test]
    fn the_bastions_own_certificate_is_for_one_person_and_two_minutes() {
        let identity = Identity::issue(
            &key(1),
            "alice",
            "gpu-bastion s1",
            &[4; 32],
            &[5; 32],
            now(),
        )
        .unwrap();
        let certificate = Certificate::from_bytes(&identity.certificate).unwrap();
        let authority = key(1).fingerprint(HashAlg::Sha256);
        let valid = u64::try_from(NOW).unwrap();
        for (at, is_valid) in [
            (valid - 61, false),
            (valid - 60, true),
            (valid + 119, true),
            (valid + 120, false),
        ] {
            let checked = certificate.validate_at(at, [&authority]);
            assert_eq!(checked.is_ok(), is_valid, "{at}");
        }
        assert_eq!(certificate.valid_principals(), ["alice"]);
        assert_eq!(certificate.key_id(), "gpu-bastion s1");
        let extensions: Vec<_> = certificate.extensions().keys().collect();
        assert_eq!(extensions, ["permit-pty"]);
    }

    #[test]
    fn a_signature_is_the_certificates_own() {
        use signature::Verifier as _;
        use ssh_encoding::Decode as _;
        let identity = Identity::issue(&key(1), "alice", "s1", &[4; 32], &[5; 32], now()).unwrap();
        let encoded = identity.sign(b"data").unwrap();
        let signature = Signature::decode(&mut encoded.as_slice()).unwrap();
        let certificate = Certificate::from_bytes(&identity.certificate).unwrap();
        let public = ssh_key::PublicKey::from(certificate.public_key().clone());
        let public = public.key_data();
        assert!(public.verify(b"data", &signature).is_ok());
        assert!(public.verify(b"other", &signature).is_err());
    }
}
