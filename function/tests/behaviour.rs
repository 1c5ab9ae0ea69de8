//! What a behaviour version rendered once, it renders for ever: an upgrade of the
//! function must not touch a single running workspace.
//!
//! `tests/behaviour/<version>.yaml` has a digest of each case's desired state.
//! New cases are added by
//!
//! ```text
//! FREEZE_BEHAVIOUR=1 cargo test --workspace --test behaviour
//! ```
//!
//! which never changes a digest that is there. A change of what is rendered needs
//! another behaviour version.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use case::answer;

const VERSIONS: [&str; 2] = ["v1", "v2"];

/// A digest of the desired state in this version, in the form in which goldens
/// are written.
fn digest(name: &str, version: &str) -> String {
    let mut request = case::request_json(name);
    if let Some(input) = request.pointer_mut("/input/behaviourVersion") {
        *input = version.into();
    }
    let response = case::golden(&answer(&case::parse(request)));
    let desired = serde_json::to_string(&response["desired"]).unwrap();
    let first = Sha256::digest(desired.as_bytes()).into_iter().take(8);
    let number = first.fold(0_u64, |number, byte| (number << 8) | u64::from(byte));
    format!("{number:016x}")
}

#[test]
fn an_upgraded_function_renders_what_the_one_before_rendered() {
    for version in VERSIONS {
        let changed = changed(version);
        assert!(
            changed.is_empty(),
            "{version} renders {changed:?} differently: running workspaces would change"
        );
    }
}

/// The frozen cases that are rendered differently.
fn changed(version: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/behaviour");
    let path = folder.join(format!("{version}.yaml"));
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut frozen: BTreeMap<String, String> = serde_yaml::from_str(&text).unwrap_or_default();
    if std::env::var_os("FREEZE_BEHAVIOUR").is_some() {
        for name in case::names() {
            let fresh = || digest(&name, version);
            frozen.entry(name.clone()).or_insert_with(fresh);
        }
        fs::create_dir_all(&folder).unwrap();
        fs::write(&path, serde_yaml::to_string(&frozen).unwrap()).unwrap();
    }
    assert!(frozen.len() >= 42, "{}: {}", path.display(), frozen.len());
    frozen
        .into_iter()
        .filter(|(name, digest)| self::digest(name, version) != *digest)
        .map(|(name, _)| name)
        .collect()
}
