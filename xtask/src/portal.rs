//! The image of the portal: the program, with its app inside, and the certificate authorities.

use std::error::Error;
use std::path::Path;

use local_cluster::progress::Progress;
use serde_json::json;

use crate::package::image;
use crate::python;
use crate::standalone::{self, Shape};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The portal's program.
const PROGRAM: &str = "gpu-portal";
/// The user of the container, who owns nothing.
const USER: &str = "65532:65532";

/// Builds the app, and the program with the app. Writes an OCI image layout, and returns the digest of its
/// manifest, in hexadecimal digits.
pub(crate) fn image(shape: &Shape, to: &Path, progress: &Progress) -> Outcome<String> {
    let step = progress.begin("build the portal's app");
    python::script(&crate::root().join("portal/web/build.py"))?;
    step.end("");
    let config = json!({"Entrypoint": [format!("/{PROGRAM}")], "User": USER});
    standalone::image(PROGRAM, shape, &config, to, progress, |program| {
        Ok(image::layer(program, PROGRAM)?)
    })
}
