//! Runtime images: one static binary and the certificate authorities, nothing else.
//!
//! An image is written as an archive, without a daemon and without a registry. The same files give
//! the same bytes.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::json;
use sha2::{Digest, Sha256};

use super::authorities;
use super::platform::Platform;

/// Crossplane runs packages as this user and group.
const USER: &str = "2000:2000";

/// Writes the archive of an image whose entrypoint is `binary`. Returns the image's digest, in hex.
pub(super) fn write(
    binary: &Path,
    name: &str,
    platform: Platform,
    to: &Path,
) -> io::Result<String> {
    let layer = layer(binary, name)?;
    let layer_digest = sha256(&layer);
    let config = json!({
        "architecture": platform.architecture(),
        "os": "linux",
        "config": {
            "Entrypoint": [format!("/{name}")],
            "User": USER,
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer_digest}")]},
        "history": [{"created_by": "cargo xtask package"}],
    })
    .to_string();
    let config_digest = sha256(config.as_bytes());
    let manifest = json!([{
        "Config": format!("{config_digest}.json"),
        "RepoTags": [],
        "Layers": [format!("{layer_digest}.tar")],
    }])
    .to_string();

    let mut archive = tar::Builder::new(fs::File::create(to)?);
    append(
        &mut archive,
        &format!("{config_digest}.json"),
        config.as_bytes(),
        0o644,
    )?;
    append(&mut archive, &format!("{layer_digest}.tar"), &layer, 0o644)?;
    append(&mut archive, "manifest.json", manifest.as_bytes(), 0o644)?;
    archive.into_inner()?;
    Ok(config_digest)
}

/// The digest of some bytes, in hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The files of an image, as an archive: the program, and the certificate authorities.
pub(crate) fn layer(binary: &Path, name: &str) -> io::Result<Vec<u8>> {
    let mut layer = tar::Builder::new(Vec::new());
    append(&mut layer, name, &fs::read(binary)?, 0o755)?;
    append(
        &mut layer,
        authorities::PATH,
        authorities::PEM.as_bytes(),
        0o644,
    )?;
    layer.into_inner()
}

fn append<W: io::Write>(
    archive: &mut tar::Builder<W>,
    path: &str,
    content: &[u8],
    mode: u32,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(u64::try_from(content.len()).map_err(io::Error::other)?);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_cksum();
    archive.append_data(&mut header, path, content)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject as _;

    use super::*;

    /// The machine that builds may trust an authority that reads its network's traffic.
    #[test]
    fn a_program_trusts_no_authority_of_the_machine_that_built_its_image() {
        let binary = std::env::temp_dir().join(format!("trusting-{}", std::process::id()));
        fs::write(&binary, b"not really one").unwrap();
        let layer = layer(&binary, "program").unwrap();
        let mut archive = tar::Archive::new(layer.as_slice());
        let is_list = |entry: &tar::Entry<'_, &[u8]>| {
            entry.path().unwrap().as_ref() == Path::new(authorities::PATH)
        };
        let mut list = archive
            .entries()
            .unwrap()
            .map(Result::unwrap)
            .find(is_list)
            .unwrap();
        let mut text = String::new();
        list.read_to_string(&mut text).unwrap();
        let trusted: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(text.as_bytes())
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(trusted, webpki_root_certs::TLS_SERVER_ROOT_CERTS);
        fs::remove_file(&binary).unwrap();
    }

    #[test]
    fn the_same_binary_gives_the_same_image() {
        let folder = std::env::temp_dir().join(format!("image-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let binary = folder.join("program");
        fs::write(&binary, b"not really one").unwrap();
        let (a, b) = (folder.join("a.tar"), folder.join("b.tar"));
        let first = write(&binary, "program", Platform::Amd64, &a).unwrap();
        let second = write(&binary, "program", Platform::Amd64, &b).unwrap();
        assert_eq!(first, second);
        assert_eq!(fs::read(&a).unwrap(), fs::read(&b).unwrap());
        let other = write(&binary, "program", Platform::Arm64, &b).unwrap();
        assert_ne!(first, other, "a node would run another machine's program");
        fs::remove_dir_all(&folder).unwrap();
    }
}
