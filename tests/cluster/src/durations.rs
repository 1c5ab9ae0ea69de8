//! Remembers how long pieces of work took on this machine.

use std::path::PathBuf;
use std::time::Duration;

use crate::cache::{self, Cache};

/// Shorter durations are not remembered. Most of such work came from caches, so the duration does
/// not predict the next one.
const WORTH_REMEMBERING: Duration = Duration::from_mins(1);

/// The usual duration of a named piece of work.
#[derive(Debug)]
pub struct Usual {
    file: PathBuf,
    typical: Duration,
}

impl Usual {
    /// The remembered duration of that name. `typical` is the answer if nothing is remembered.
    pub fn of(cache: &Cache, name: &str, typical: Duration) -> Self {
        Self {
            file: cache.root().join("durations").join(name),
            typical,
        }
    }

    /// The last duration; the typical one if none is remembered.
    pub fn duration(&self) -> Duration {
        let seconds = std::fs::read_to_string(&self.file)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        seconds.map_or(self.typical, Duration::from_secs)
    }

    /// Remembers a duration of a minute or more. A failed write is ignored, because durations only
    /// inform people.
    pub fn record(&self, took: Duration) {
        if took < WORTH_REMEMBERING {
            return;
        }
        if let Some(folder) = self.file.parent() {
            let _ = cache::create_folder(folder);
        }
        let _ = cache::write_whole(&self.file, took.as_secs().to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_time_is_expected_again_and_a_first_time_is_typical() {
        let folder = std::env::temp_dir().join(format!("durations-{}", std::process::id()));
        let cache = Cache::at(&folder);
        let usual = || Usual::of(&cache, "build-cluster", Duration::from_mins(10));
        assert_eq!(usual().duration(), Duration::from_mins(10));
        usual().record(Duration::from_millis(61_900));
        assert_eq!(usual().duration(), Duration::from_secs(61));
        usual().record(Duration::from_secs(1));
        assert_eq!(
            usual().duration(),
            Duration::from_secs(61),
            "a cached build"
        );
        std::fs::write(folder.join("durations/build-cluster"), "soon").unwrap();
        assert_eq!(usual().duration(), Duration::from_mins(10));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
