//! A behaviour version renders a case the same way for ever. An upgrade of the function must not
//! change a running workspace.
//!
//! `tests/behaviour/<version>.yaml` has a digest of the composed resources that each case wants.
//! The digest does not cover status, conditions and results. Only the goldens do. This command adds
//! new cases:
//!
//! ```text
//! FREEZE_BEHAVIOUR=1 cargo test --workspace --test behaviour
//! ```
//!
//! The command never changes an existing digest. A change of the composed resources needs another
//! behaviour version.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod case;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use case::answer;

const VERSIONS: [&str; 2] = ["v1", "v2"];

#[test]
fn an_upgraded_function_composes_what_the_one_before_composed() {
    for version in VERSIONS {
        let mut changed = frozen(version);
        changed.retain(|name, frozen| digest(name, version) != *frozen);
        let changed: Vec<String> = changed.into_keys().collect();
        assert!(
            changed.is_empty(),
            "{version} composes {changed:?} differently: running workspaces would change"
        );
    }
}

#[test]
fn every_case_is_frozen() {
    let cases = case::names();
    for version in VERSIONS {
        let frozen: Vec<String> = frozen(version).into_keys().collect();
        let new: Vec<&String> = cases.iter().filter(|c| !frozen.contains(c)).collect();
        let gone: Vec<&String> = frozen.iter().filter(|f| !cases.contains(f)).collect();
        assert!(
            new.is_empty() && gone.is_empty(),
            "{}: not frozen (FREEZE_BEHAVIOUR=1 adds them): {new:?}; frozen without a case: {gone:?}",
            path(version).display()
        );
    }
}

/// The digest of every frozen case in this version. With `FREEZE_BEHAVIOUR`, the first call writes
/// each file once.
fn frozen(version: &str) -> BTreeMap<String, String> {
    static READ: LazyLock<Vec<BTreeMap<String, String>>> =
        LazyLock::new(|| VERSIONS.iter().map(|version| read(version)).collect());
    let index = VERSIONS.iter().position(|known| *known == version).unwrap();
    READ[index].clone()
}

fn read(version: &str) -> BTreeMap<String, String> {
    let path = path(version);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut frozen: BTreeMap<String, String> = serde_yaml::from_str(&text).unwrap();
    if std::env::var_os("FREEZE_BEHAVIOUR").is_some() {
        for name in case::names() {
            let fresh = || digest(&name, version);
            frozen.entry(name.clone()).or_insert_with(fresh);
        }
        fs::write(&path, serde_yaml::to_string(&frozen).unwrap()).unwrap();
    }
    frozen
}

fn path(version: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/behaviour");
    folder.join(format!("{version}.yaml"))
}

/// A digest of the composed resources that a case wants in this version. The digest covers only the
/// names of the pods' programs, because their text may change between releases of the function. It
/// does not cover the record of a namespaced workspace, which holds the status.
fn digest(name: &str, version: &str) -> String {
    let mut request = case::request_json(name);
    if let Some(input) = request.pointer_mut("/input/behaviourVersion") {
        *input = version.into();
    }
    let mut response = case::programs_by_name(&answer(&case::parse(request)));
    if let Some(resources) = response["desired"]["resources"].as_object_mut() {
        resources.remove(case::RECORD);
    }
    let resources = serde_json::to_string(&response["desired"]["resources"]).unwrap();
    let first = Sha256::digest(resources.as_bytes()).into_iter().take(8);
    let number = first.fold(0_u64, |number, byte| (number << 8) | u64::from(byte));
    format!("{number:016x}")
}
