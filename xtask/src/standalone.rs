//! `cargo xtask agent` and `cargo xtask devctl`: programs that are in no package, linked statically.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use local_cluster::progress::Progress;
use serde_json::Value;

use crate::oci;
use crate::package::compile;
use crate::package::image::sha256;
use crate::package::platform::Platform;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What is compiled.
#[derive(Args)]
pub(crate) struct Shape {
    /// Optimised and reproducible
    #[arg(long)]
    pub(crate) release: bool,
}

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where to write the program
    path: PathBuf,
    #[command(flatten)]
    shape: Shape,
    /// For this platform instead of this machine's
    #[arg(long)]
    platform: Option<Platform>,
}

/// Writes the program, linked statically. Prints its digest and path in the form of sha256sum.
pub(crate) fn run(program: &str, arguments: &Arguments) -> ExitCode {
    let path = &arguments.path;
    let platform = arguments.platform.unwrap_or_else(Platform::host);
    match write(
        program,
        &arguments.shape,
        platform,
        path,
        &Progress::to_stderr(),
    ) {
        Ok(digest) => {
            println!("{digest}  {}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes a program and returns its digest, in hexadecimal digits.
pub(crate) fn write(
    program: &str,
    shape: &Shape,
    platform: Platform,
    to: &Path,
    progress: &Progress,
) -> Outcome<String> {
    let step = progress.begin(&format!("compile {program}"));
    compile::write(program, shape.release, platform, to)?;
    step.end("");
    Ok(sha256(&fs::read(to)?))
}

/// Writes an OCI image layout of one program. `files` makes the archive of the image's files from the path of
/// the program. Returns the digest of the manifest, in hexadecimal digits.
pub(crate) fn image(
    program: &str,
    shape: &Shape,
    config: &Value,
    to: &Path,
    progress: &Progress,
    files: impl FnOnce(&Path) -> Outcome<Vec<u8>>,
) -> Outcome<String> {
    let parts = to.with_extension("parts");
    fs::create_dir_all(&parts)?;
    let path = parts.join(program);
    write(program, shape, Platform::host(), &path, progress)?;
    let layer = oci::Layer::compress(&files(&path)?, &parts.join("layer.tar"))?;
    let digest = oci::write(vec![layer], config, to)?;
    fs::remove_dir_all(parts)?;
    Ok(digest)
}
