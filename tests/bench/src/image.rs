//! How large a function's image is where it is stored and pulled: compressed.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use crate::Outcome;

/// Every image holds them, for calls out.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The image of one static binary, with nothing under it.
pub(crate) fn of_binary(binary: &Path, scratch: &Path) -> Outcome<f64> {
    compressed(scratch, |layer| {
        layer.append_path_with_name(binary, "function")?;
        layer.append_path_with_name(CERTIFICATES, &CERTIFICATES[1..])
    })
}

/// What a folder adds to an image. Below a Python environment lies Python itself,
/// which is not counted.
pub(crate) fn of_folder(folder: &Path, scratch: &Path) -> Outcome<f64> {
    compressed(scratch, |layer| {
        layer.follow_symlinks(false);
        layer.append_dir_all("function", folder)
    })
}

/// The size of a layer as Crossplane's command line pushes it: with gzip's
/// quickest level.
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
