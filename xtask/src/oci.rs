//! OCI image layouts: folders with the parts of an image, each named by its digest. The same parts
//! give the same layout.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::package::image::sha256;
use crate::process::output;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A layer, compressed by gzip.
pub(crate) struct Layer {
    /// The file. `write` moves it into the layout.
    pub(crate) file: PathBuf,
    /// The file's digest, in hex.
    pub(crate) digest: String,
    /// The digest of the decompressed contents, in hex.
    pub(crate) content: String,
}

impl Layer {
    /// Compresses an archive of tar. `tar` is the path of a file that does not exist yet.
    pub(crate) fn compress(archive: &[u8], tar: &Path) -> Result<Self, Box<dyn Error>> {
        fs::write(tar, archive)?;
        output(Command::new("gzip").args(["--no-name", "--best"]).arg(tar))?;
        let file = tar.with_extension("tar.gz");
        Ok(Self {
            digest: sha256(&fs::read(&file)?),
            content: sha256(archive),
            file,
        })
    }
}

/// Writes the layout of one image into an empty folder. `config` is the configuration that its
/// containers run with. Returns the digest of the image's manifest, in hex.
pub(crate) fn write(layers: Vec<Layer>, config: &Value, to: &Path) -> io::Result<String> {
    let blobs = to.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let contents: Vec<String> = layers
        .iter()
        .map(|layer| format!("sha256:{}", layer.content))
        .collect();
    let mut descriptors = Vec::new();
    for layer in layers {
        let size = fs::metadata(&layer.file)?.len();
        descriptors.push(descriptor(
            "application/vnd.oci.image.layer.v1.tar+gzip",
            &layer.digest,
            size,
        ));
        fs::rename(&layer.file, blobs.join(&layer.digest))?;
    }
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": contents},
    });
    let config = add(&blobs, CONFIG, &config.to_string())?;
    finish(&blobs, &config, &json!(descriptors), to)
}

/// Writes the layout of an image that is no container's: one text as its only layer, with
/// annotations, into an empty folder. Returns the digest of the image's manifest, in hex.
pub(crate) fn write_artifact(
    media_type: &str,
    text: &str,
    annotations: Map<String, Value>,
    to: &Path,
) -> io::Result<String> {
    let blobs = to.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let mut layer = add(&blobs, media_type, text)?;
    layer["annotations"] = Value::Object(annotations);
    let config = json!({
        "architecture": "",
        "os": "",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    });
    let config = add(&blobs, CONFIG, &config.to_string())?;
    finish(&blobs, &config, &json!([layer]), to)
}

/// Writes the manifest and the files that make a layout of a folder. Returns the manifest's digest.
fn finish(blobs: &Path, config: &Value, layers: &Value, to: &Path) -> io::Result<String> {
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": layers,
    });
    let manifest = manifest.to_string();
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [add(blobs, MANIFEST, &manifest)?],
    });
    fs::write(to.join("index.json"), index.to_string())?;
    let version = json!({"imageLayoutVersion": "1.0.0"});
    fs::write(to.join("oci-layout"), version.to_string())?;
    Ok(sha256(manifest.as_bytes()))
}

fn add(blobs: &Path, kind: &str, content: &str) -> io::Result<Value> {
    let digest = sha256(content.as_bytes());
    fs::write(blobs.join(&digest), content)?;
    let size = u64::try_from(content.len()).map_err(io::Error::other)?;
    Ok(descriptor(kind, &digest, size))
}

fn descriptor(kind: &str, digest: &str, size: u64) -> Value {
    json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": size})
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_layout_is_where_its_digest_says() {
        let folder = std::env::temp_dir().join(format!("oci-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("layer.tar.gz");
        fs::write(&file, b"not really one").unwrap();
        let layer = Layer {
            file,
            digest: sha256(b"not really one"),
            content: sha256(b"what is in it"),
        };
        let digest = write(vec![layer], &json!({"User": "1000:1000"}), &folder).unwrap();

        let blobs = folder.join("blobs/sha256");
        let read =
            |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
        let index = read(&folder.join("index.json"));
        assert_eq!(index["manifests"][0]["digest"], format!("sha256:{digest}"));
        let manifest = read(&blobs.join(&digest));
        let parts = [&manifest["config"], &manifest["layers"][0]];
        for part in parts.into_iter().chain([&index["manifests"][0]]) {
            let digest = part["digest"].as_str().unwrap();
            let content = fs::read(blobs.join(digest.trim_start_matches("sha256:"))).unwrap();
            assert_eq!(format!("sha256:{}", sha256(&content)), digest);
            assert_eq!(part["size"], content.len());
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
