//! The image of the agent, which reports who uses a workspace. Pods run it.

use std::error::Error;
use std::fs;
use std::path::Path;

use local_cluster::progress::Progress;
use serde_json::json;

use crate::standalone::{self, Shape};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The agent's program.
pub(crate) const PROGRAM: &str = "gpu-workspace-agent";

/// Writes an OCI image layout that contains only the program. Returns the digest of its manifest,
/// in hexadecimal digits.
pub(crate) fn image(shape: &Shape, to: &Path, progress: &Progress) -> Outcome<String> {
    let config = json!({
        "Entrypoint": [format!("/{PROGRAM}")],
        "Cmd": ["watch"],
        // The same user as in the image of workspaces, because the agent reads their home folders.
        "User": "1000:1000",
    });
    standalone::image(PROGRAM, shape, &config, to, progress, files)
}

fn files(program: &Path) -> Outcome<Vec<u8>> {
    let content = fs::read(program)?;
    let mut header = tar::Header::new_gnu();
    header.set_size(u64::try_from(content.len())?);
    header.set_mode(0o755);
    header.set_mtime(0);
    header.set_cksum();
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, PROGRAM, content.as_slice())?;
    Ok(archive.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oci;

    fn layer(program: &Path, tar: &Path) -> Outcome<oci::Layer> {
        oci::Layer::compress(&files(program)?, tar)
    }

    #[test]
    fn the_same_program_gives_the_same_layer() {
        let folder = std::env::temp_dir().join(format!("agent-layer-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("program");
        fs::write(&program, b"not really one").unwrap();
        let first = layer(&program, &folder.join("a.tar")).unwrap();
        let second = layer(&program, &folder.join("b.tar")).unwrap();
        assert_eq!(first.digest, second.digest);
        assert_eq!(first.content, second.content);
        assert_ne!(first.content, first.digest);
        fs::remove_dir_all(&folder).unwrap();
    }
}
