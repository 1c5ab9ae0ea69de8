//! Signs packages in a registry. A signature is an image of its own, with a tag that cosign derives
//! from the digest of what is signed.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::Timestamp;

use super::contents::{ORGANISATION, PACKAGES};
use super::signature::{MEDIA_TYPE, SigningKey};
use crate::oci;
use crate::process::output;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Reads the private key from a file.
pub(super) fn key(file: &Path) -> Outcome<SigningKey> {
    let pem = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    SigningKey::read(&pem).map_err(|e| format!("{}: {e}", file.display()).into())
}

/// The references of this version's packages in a registry.
pub(super) fn released(registry: &str) -> Vec<String> {
    let version = env!("CARGO_PKG_VERSION");
    let reference = |name: &str| format!("{registry}/{ORGANISATION}/{name}:v{version}");
    PACKAGES.iter().map(|one| reference(one.name)).collect()
}

/// Signs what a reference names now, and pushes the signature beside it. Returns the reference by
/// digest. A later signature of the same package replaces this one.
pub(super) fn sign(
    crane: &Path,
    key: &SigningKey,
    reference: &str,
    at: Timestamp,
) -> Outcome<String> {
    let digest = output(Command::new(crane).args(["digest", reference]))?;
    let repository = repository(reference);
    let signed = key.sign(repository, &digest, at)?;
    let layout = scratch(&digest)?;
    oci::write_artifact(MEDIA_TYPE, &signed.text, signed.annotations, &layout)?;
    let tag = digest.replace(':', "-");
    let mut push = Command::new(crane);
    push.arg("push")
        .arg(&layout)
        .arg(format!("{repository}:{tag}.sig"));
    let pushed = output(&mut push);
    fs::remove_dir_all(&layout)?;
    pushed?;
    Ok(format!("{repository}@{digest}"))
}

/// The part of a reference before its tag or digest. A registry's port is no tag.
fn repository(reference: &str) -> &str {
    let named = reference
        .split_once('@')
        .map_or(reference, |(name, _)| name);
    match named.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => named,
    }
}

fn scratch(digest: &str) -> Outcome<PathBuf> {
    let name = format!(
        "signature-{}-{}",
        std::process::id(),
        digest.replace(':', "-")
    );
    let folder = std::env::temp_dir().join(name);
    fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use local_cluster::progress::Progress;
    use serde_json::{Map, Value};

    use super::*;
    use crate::package::test_registry::Registry;

    /// A registry, and Crossplane's check of the packages in it.
    struct World {
        registry: Registry,
        crane: PathBuf,
        signatures: PathBuf,
        folder: PathBuf,
    }

    impl World {
        fn new() -> Self {
            let progress = &Progress::to_stderr();
            let crane = crate::target::crane(progress).unwrap();
            let signatures = crate::target::signatures(progress).unwrap();
            let folder = std::env::temp_dir().join(format!("sign-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            let mut trust = Command::new(&signatures);
            output(trust.arg("trust").arg(folder.join("trust"))).unwrap();
            Self {
                registry: Registry::serve(&crane),
                crane,
                signatures,
                folder,
            }
        }

        /// Makes a pair of keys with openssl. Returns the files of the private and public one.
        fn keys(&self, name: &str) -> (PathBuf, PathBuf) {
            let private = self.folder.join(format!("{name}.key"));
            let public = self.folder.join(format!("{name}.pub"));
            let mut make = Command::new("openssl");
            make.args(["genpkey", "-algorithm", "EC"]);
            make.args(["-pkeyopt", "ec_paramgen_curve:P-256", "-out"]);
            output(make.arg(&private)).unwrap();
            let mut show = Command::new("openssl");
            show.args(["pkey", "-pubout", "-in"]).arg(&private);
            output(show.arg("-out").arg(&public)).unwrap();
            (private, public)
        }

        /// Pushes something that takes the place of a package. Returns its reference.
        fn pushed(&self, name: &str, text: &str) -> String {
            let reference = format!("{}/acme/{name}", self.registry.address);
            self.push(text, Map::new(), &reference);
            reference
        }

        fn push(&self, text: &str, annotations: Map<String, Value>, to: &str) {
            let layout = self.folder.join("layout");
            oci::write_artifact(MEDIA_TYPE, text, annotations, &layout).unwrap();
            let mut push = Command::new(&self.crane);
            output(push.arg("push").arg(&layout).arg(to)).unwrap();
            fs::remove_dir_all(&layout).unwrap();
        }

        /// The place of a package's signature.
        fn signature(&self, reference: &str) -> String {
            let mut digest = Command::new(&self.crane);
            let digest = output(digest.args(["digest", reference])).unwrap();
            format!("{reference}:{}.sig", digest.replace(':', "-"))
        }

        /// Why Crossplane would not install a package, if it would not.
        fn refusal(&self, reference: &str, public: &Path) -> Option<String> {
            let mut verify = Command::new(&self.signatures);
            verify
                .env("TUF_ROOT", self.folder.join("trust"))
                .env("SIGSTORE_REKOR_PUBLIC_KEY", public)
                .args(["verify", reference])
                .arg(public);
            output(&mut verify).err().map(|error| error.to_string())
        }
    }

    impl Drop for World {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn crossplane_takes_what_we_signed_and_nothing_else() {
        let world = World::new();
        let (private, public) = world.keys("ours");
        let ours = key(&private).unwrap();
        let package = world.pushed("package", "the package");
        let refused = |reference: &str, public: &Path, reason: &str| {
            let said = world.refusal(reference, public);
            assert!(
                said.as_ref().is_some_and(|said| said.contains(reason)),
                "{reference}: not because of {reason}: {said:?}"
            );
        };
        refused(&package, &public, "no signatures found");

        let now = Timestamp::now();
        let signed = sign(&world.crane, &ours, &package, now).unwrap();

        assert!(
            signed.starts_with(&format!("{package}@sha256:")),
            "{signed}"
        );
        assert_eq!(world.refusal(&package, &public), None);
        assert_eq!(world.refusal(&signed, &public), None);
        let (_, others) = world.keys("others");
        refused(&package, &others, "comparing public key");

        // The signature of another package.
        let other = world.pushed("other", "another package");
        let mut copy = Command::new(&world.crane);
        copy.args(["copy", &world.signature(&package)]);
        output(copy.arg(world.signature(&other))).unwrap();
        refused(&other, &public, "digest in claim");

        // A signed text that somebody changed: it names the other package.
        let mut digest = Command::new(&world.crane);
        let digest = output(digest.args(["digest", &other])).unwrap();
        let mut forged = ours.sign(&package, "sha256:0", now).unwrap();
        forged.text = forged.text.replace("sha256:0", &digest);
        world.push(&forged.text, forged.annotations, &world.signature(&other));
        refused(&other, &public, "matching bundle to payload");

        // Without the log's record, Crossplane takes no signature.
        let mut bare = ours.sign(&other, &digest, now).unwrap();
        bare.annotations
            .retain(|name, _| name.contains("signature"));
        world.push(&bare.text, bare.annotations, &world.signature(&other));
        refused(&other, &public, "rekor client not provided");
    }

    #[test]
    fn the_port_of_a_registry_is_no_tag() {
        for (reference, expected) in [
            ("localhost:5000/acme/a:v1", "localhost:5000/acme/a"),
            ("localhost:5000/acme/a", "localhost:5000/acme/a"),
            ("localhost:5000/acme/a@sha256:0", "localhost:5000/acme/a"),
            ("registry.test/acme/a:v1@sha256:0", "registry.test/acme/a"),
        ] {
            assert_eq!(repository(reference), expected);
        }
    }
}
