//! The compressed size of a function's image: registries store images compressed, and nodes pull
//! them so.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use crate::Outcome;

/// The certificate authorities. Every image has them, so that the function can make TLS calls.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The size in bytes of an image that has one static binary and no base image.
pub(crate) fn of_binary(binary: &Path, scratch: &Path) -> Outcome<f64> {
    compressed(scratch, |layer| {
        layer.append_path_with_name(binary, "function")?;
        layer.append_path_with_name(CERTIFICATES, &CERTIFICATES[1..])
    })
}

/// The bytes that a folder adds to an image. For a Python environment, this does not count Python
/// itself, which is in a layer below.
pub(crate) fn of_folder(folder: &Path, scratch: &Path) -> Outcome<f64> {
    compressed(scratch, |layer| {
        layer.follow_symlinks(false);
        layer.append_dir_all("function", folder)
    })
}

/// The size in bytes of a layer, compressed at gzip's fastest level, as Crossplane's command line
/// pushes it.
fn compressed(
    scratch: &Path,
    fill: impl FnOnce(&mut tar::Builder<File>) -> std::io::Result<()>,
) -> Outcome<f64> {
    let archive = scratch.join("layer.tar");
    let mut layer = tar::Builder::new(File::create(&archive)?);
    fill(&mut layer)?;
    layer.finish()?;
    let mut gzip = Command::new("gzip");
    gzip.args(["-1", "--force"]).arg(&archive);
    crate::program::finish(&mut gzip)?;
    let bytes = fs::metadata(scratch.join("layer.tar.gz"))?.len();
    #[allow(clippy::cast_precision_loss, reason = "far smaller than 2^52")]
    Ok(bytes as f64)
}
