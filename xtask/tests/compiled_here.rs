//! Two checkouts that use one target folder.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot prepare its case fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// A folder with two checkouts of one file each, an hour old, and a target folder.
struct Folders(PathBuf);

impl Folders {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("compiled-here-{}", std::process::id()));
        let folders = Self(folder);
        for checkout in ["one", "two"] {
            fs::create_dir_all(folders.0.join(checkout)).unwrap();
            fs::write(folders.source(checkout), "").unwrap();
            folders.age(checkout);
        }
        folders
    }

    fn source(&self, checkout: &str) -> PathBuf {
        self.0.join(checkout).join("main.rs")
    }

    fn age(&self, checkout: &str) {
        let file = fs::File::options()
            .write(true)
            .open(self.source(checkout))
            .unwrap();
        file.set_modified(SystemTime::now() - Duration::from_hours(1))
            .unwrap();
    }

    /// Runs the script in a checkout, and says whether the file of the checkout is young then.
    fn is_young_in(&self, checkout: &str) -> bool {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("compiled_here.sh");
        let ran = Command::new("sh")
            .arg(script)
            .arg(self.0.join("target"))
            .current_dir(self.0.join(checkout))
            .status()
            .unwrap();
        assert!(ran.success());
        let modified = fs::metadata(self.source(checkout)).unwrap().modified();
        modified.unwrap().elapsed().unwrap_or_default() < Duration::from_mins(30)
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn what_another_checkout_compiled_is_compiled_again() {
    let folders = Folders::new();
    assert!(folders.is_young_in("one"));
    folders.age("one");
    assert!(!folders.is_young_in("one"), "nobody else used the folder");
    assert!(folders.is_young_in("two"));
    folders.age("one");
    assert!(folders.is_young_in("one"));
}
